/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What kfunc_test.c and its programs share. */
#ifndef SAINA_KFUNC_TEST_H
#define SAINA_KFUNC_TEST_H

#define ELEMS	256

/* What to do, and what came of it: map `io`, entry 0. */
struct io {
	__u32 job, worker;
	int ret;
	__u32 found;
	struct saina_binding binding;
	struct saina_policy policy;
	__u64 active;
	__u32 generation;
	struct saina_event ev;
	__u64 tag;
};

struct vec {
	struct saina_slot_256 slot;
	__u32 msg[ELEMS];
	__u16 half[ELEMS];
};

#endif /* SAINA_KFUNC_TEST_H */
