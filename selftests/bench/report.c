// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report.h"

void sample_add(struct sample *s, double v)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->v = realloc(s->v, s->room * sizeof(*s->v));
		if (!s->v)
			abort();
	}
	s->v[s->n++] = v;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double sample_median(const struct sample *s)
{
	double m, below = 0, equal = 0;

	if (!s->n)
		return NAN;
	qsort(s->v, s->n, sizeof(*s->v), compare);
	m = s->v[s->n / 2];
	if (m != floor(m))
		return m;
	/* interpolate in grouped data: the kernel reports whole ns */
	for (size_t i = 0; i < s->n; i++) {
		below += s->v[i] < m;
		equal += s->v[i] == m;
	}
	return m - .5 + (s->n / 2. - below) / equal;
}

double sample_spread(const struct sample *s)
{
	if (s->n < 4)
		return NAN;
	qsort(s->v, s->n, sizeof(*s->v), compare);
	return s->v[s->n * 3 / 4] - s->v[s->n / 4];
}

double sample_net(const struct sample *batch, const struct sample *driver,
		  const struct sample *empty)
{
	return sample_median(batch) - sample_median(driver) + sample_median(empty);
}

void report_progress(unsigned int cycle, unsigned int cycles)
{
	if (cycle % 10 == 0)
		fprintf(stderr, "bench-datapath: cycle %u of %u\n", cycle + 1, cycles);
}

void report_open(struct report *r, bool json)
{
	r->json = json;
	r->root = json_pack("{s:[], s:[]}", "rows", "verdicts");
	if (!r->root)
		abort();
}

void report_method(struct report *r, const char *text, const char *ratio)
{
	json_object_set_new(r->root, "method", json_string(text));
	if (!r->json)
		printf("%s\n\n%8s  %-28s %9s  %s\n", text, "elements", "branch", "ns/packet",
		       ratio);
}

void report_row(struct report *r, unsigned int elems, const char *name, double ns, double base)
{
	double ratio = ns / base;

	json_array_append_new(json_object_get(r->root, "rows"),
			      json_pack("{s:i, s:s, s:f, s:f}", "elements", (int)elems, "branch",
					name, "ns", ns, "ratio", ratio));
	if (!r->json)
		printf("%8u  %-28s %9.1f  %.2f\n", elems, name, ns, ratio);
}

static void verdict_add(struct report *r, const char *what, double value, double limit, bool reached)
{
	if (!r->json && !json_array_size(json_object_get(r->root, "verdicts")))
		putchar('\n');
	json_array_append_new(json_object_get(r->root, "verdicts"),
			      json_pack("{s:s, s:f, s:f, s:b}", "what", what, "value", value,
					"limit", limit, "reached", reached));
}

void report_verdict(struct report *r, const char *what, double value, double limit)
{
	bool reached = value <= limit;

	verdict_add(r, what, value, limit, reached);
	if (!r->json)
		printf("%-7s %s: %.2f (at most %.2f)\n", reached ? "reached" : "MISSED", what,
		       value, limit);
}

void report_equal(struct report *r, const char *what, double a, double b, double tolerance)
{
	double ratio = b / a;
	bool reached = fabs(ratio - 1) <= tolerance; /* false also if one is no number */

	verdict_add(r, what, ratio, 1 + tolerance, reached);
	if (!r->json)
		printf("%-7s %s: %.1f and %.1f ns, ratio %.2f (1 +- %.2f, the noise of this run)\n",
		       reached ? "reached" : "MISSED", what, a, b, ratio, tolerance);
}

int report_close(struct report *r, const char *path)
{
	int status = 0;

	if (r->json) {
		json_dumpf(r->root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
		putchar('\n');
	}
	if (path && json_dump_file(r->root, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6))) {
		fprintf(stderr, "%s: cannot write %s: %s\n", program_invocation_short_name, path,
			 strerror(errno));
		status = 1;
	}
	json_decref(r->root);
	return status;
}
