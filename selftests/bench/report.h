/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples and medians; a table printed as text or JSON. */
#ifndef SAINA_BENCH_REPORT_H
#define SAINA_BENCH_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct sample {
	double	*v;
	size_t	n, room;
};

void sample_add(struct sample *s, double v);
/* Median.  Where it is an integer it is interpolated within its class, so that samples of
 * whole nanoseconds give tenths. */
double sample_median(const struct sample *s);
/* Distance between the quartiles. */
double sample_spread(const struct sample *s);
/* Median of @batch without the driver's time; that of an empty program is included. */
double sample_net(const struct sample *batch, const struct sample *driver,
		  const struct sample *empty);

struct report {
	bool	json;		/* JSON on stdout instead of text */
	json_t	*root;
};

/* Prints every tenth cycle that begins. */
void report_progress(unsigned int cycle, unsigned int cycles);
void report_open(struct report *r, bool json);
/* @ratio: heading of the column with ratios; @base: what a row has its ratio to, in ns */
void report_method(struct report *r, const char *text, const char *ratio);
void report_row(struct report *r, unsigned int elems, const char *name, double ns, double base);
/* @value should be at most @limit. */
void report_verdict(struct report *r, const char *what, double value, double limit);
/* Two figures that should be equal: @b / @a within 1 +- @tolerance. */
void report_equal(struct report *r, const char *what, double a, double b, double tolerance);
/* @path: also write the JSON to this file; NULL: none.  Returns the exit status. */
int report_close(struct report *r, const char *path);

#endif /* SAINA_BENCH_REPORT_H */
