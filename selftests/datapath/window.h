/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What race_window_test.c and its program share. */
#ifndef SAINA_WINDOW_H
#define SAINA_WINDOW_H

#define WINDOW_CPU	64

/**
 * struct window - map `window`, entry 0: holds a worker's gradient or PULL between two locks
 * @worker: 1 + that worker, 0: nobody; the program sets it to 0.  1 + WINDOW_CPU + a CPU: the
 *	gradient that comes there, before the fast path takes its slot's lock
 * @inside: it is held
 * @release: it may go on
 * @expired: it went on by itself, after WINDOW_NS
 */
struct window {
	__u32 worker;
	__u32 inside;
	__u32 release;
	__u32 expired;
};

#define WINDOW_NS	5000000000ull

#endif /* SAINA_WINDOW_H */
