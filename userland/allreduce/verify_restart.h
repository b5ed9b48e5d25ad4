/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sums of floats that are not on record, where workers may have been restarted. */
#ifndef VERIFY_RESTART_H
#define VERIFY_RESTART_H

#include "verify_state.h"

/**
 * struct verify_restart - what a sum is compared with
 * @sent: what worker @w contributes to round @r at place @i if it was restarted in round @since
 * @right: is @out the mean of the @n contributions @c, give or take @off in the sum?
 * @off: how far the sum on record may be from the exact one
 */
struct verify_restart {
	double (*sent)(const struct verify *v, unsigned int w, uint32_t since, uint32_t r, uint64_t i);
	bool (*right)(const struct verify *v, const double *c, unsigned int n, float out, double off);
	double off;
};

/* A worker that was restarted in round @since, as far as a result says. */
struct verify_restarted {
	unsigned int w;
	uint32_t since;
};

/*
 * A result that is not on record is right (with @v->restarts) or unknown if a restart of one or two
 * other workers explains it, else wrong.  Counts it; @sentence describes it.
 *
 * @out: [n] the result of segment @segment: a mean, whose contributors @g has
 * @v->sums: [workers][payload] what each has contributed by the record
 * @found: the workers whose restart explains it
 *
 * Return: how many of @found are set
 */
unsigned int verify_restart_judge(struct verify *v, uint32_t segment, const struct saina_segment *g,
			  const float *out, uint32_t n, const struct verify_restart *how,
			  const char *sentence, struct verify_restarted found[2]);

#endif /* VERIFY_RESTART_H */
