// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policies of the simulation: their words, and how k changes.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"
#include "train_sim_policy.h"

#define STRIDE_DEFAULT 32
#define INTERVAL_MS    1000 /* as in tools/saina/controller.c */

/* SFCD, the rule of the data path: the signs of the sums have converged to noise. */
static void next_sfcd(struct sim_policy *p, const struct sim_seen *seen)
{
	if (!seen->observed)
		return;
	if (seen->flips >= p->s_th * seen->observed)
		p->converged++;
	else if (p->converged)
		p->converged--;
	if (p->converged < (p->cth_k ? p->k : p->c_th))
		return;
	p->converged = 0;
	if (p->k < p->k_max)
		p->k++;
}

static int bucket(double us)
{
	int b = 0;

	while (b < SAINA_ARRIVAL_BUCKETS - 1 && us >= saina_arrival_end_us(b))
		b++;
	return b;
}

/*
 * `saina policy control': adds the arrival times of a round to @p->arrivals.  True: a measurement is
 * complete; arrivals_forget() is due.
 */
static bool arrivals_measure(struct sim_policy *p, const struct sim_seen *seen)
{
	double first = INFINITY, now = seen->decided_ms;
	struct arrivals *a = &p->arrivals;

	for (int w = 0; w < p->workers; w++)
		first = fmin(first, seen->arrival_ms[w]);
	for (int w = 0; w < p->workers; w++)
		if (isfinite(seen->arrival_ms[w]))
			a->late[w][bucket((seen->arrival_ms[w] - first) * 1000)]++;
	a->rounds++;
	if (a->rounds < ARRIVALS_ROUNDS_MIN || now - p->since_ms < INTERVAL_MS)
		return false;
	a->round_us = (now - p->since_ms) * 1000 / a->rounds;
	p->since_ms = now;
	return true;
}

static void arrivals_forget(struct sim_policy *p)
{
	p->arrivals = (struct arrivals){.workers = p->workers};
}

/* The controller of policy external: k by arrival times. */
static void next_dbw(struct sim_policy *p, const struct sim_seen *seen)
{
	struct dbw d = {.k = p->k, .noise = p->noise};
	bool trial;

	if (!arrivals_measure(p, seen))
		return;
	d.arrivals = p->arrivals;
	p->k = dbw_next(&d, &p->trials, seen->decided_ms / 1000, &trial);
	arrivals_forget(p);
}

/* The controller of policy timeout: T and kmin by arrival times. */
static void next_deadline(struct sim_policy *p, const struct sim_seen *seen)
{
	struct deadline_setting set;

	if (!arrivals_measure(p, seen))
		return;
	deadline_observe(&p->deadline, &p->arrivals);
	set = deadline_choose(&p->deadline).set;
	p->timeout_ms = set.timeout_us / 1000.;
	p->k_min = set.k_min;
	arrivals_forget(p);
}

static bool number(const char *text, double *v)
{
	char *end;

	*v = strtod(text, &end);
	return end != text && !*end;
}

static bool milliseconds(const char *text, double *v)
{
	char *end;

	*v = strtod(text, &end);
	if (end == text)
		return false;
	if (!strcmp(end, "us"))
		*v /= 1000;
	else if (!strcmp(end, "s"))
		*v *= 1000;
	else if (strcmp(end, "ms"))
		return false;
	return *v > 0;
}

static bool whole(const char *text, int *v)
{
	double d;

	if (!number(text, &d) || d != (int)d)
		return false;
	*v = d;
	return true;
}

/* One word after the colon.  False: there is no such word, or its value is bad. */
static bool word_parse(struct sim_policy *p, const char *name, const char *value)
{
	if (!strcmp(name, "k") || !strcmp(name, "k0"))
		return whole(value, &p->k);
	if (!strcmp(name, "kmin"))
		return whole(value, &p->k_min);
	if (!strcmp(name, "kmax"))
		return whole(value, &p->k_max);
	if (!strcmp(name, "timeout"))
		return milliseconds(value, &p->timeout_ms);
	if (!strcmp(name, "sth"))
		return number(value, &p->s_th);
	if (!strcmp(name, "cth")) {
		p->cth_k = !strcmp(value, "k");
		return p->cth_k || whole(value, &p->c_th);
	}
	if (!strcmp(name, "stride"))
		return whole(value, &p->stride);
	if (!strcmp(name, "noise"))
		return number(value, &p->noise) && p->noise > 0;
	if (!strcmp(name, "keep"))
		return number(value, &p->keep);
	if (!strcmp(name, "late")) {
		p->fresh = !strcmp(value, "fresh");
		p->keep = strcmp(value, "drop") != 0;
		return p->fresh || !p->keep || !strcmp(value, "residual");
	}
	if (!strcmp(name, "mean")) {
		p->mean_all = !strcmp(value, "all");
		return p->mean_all || !strcmp(value, "k");
	}
	if (!strcmp(name, "g"))
		return whole(value, &p->groups);
	return false;
}

/* What comes before the colon.  @first: the word after it, if that has no name. */
static bool name_parse(struct sim_policy *p, const char *name, const char *first)
{
	if (!strcmp(name, "bsp") || !strcmp(name, "fastest"))
		return !first;
	if (!strcmp(name, "sfcd")) {
		p->next = next_sfcd;
		p->k = 1;
		return !first;
	}
	if (!strcmp(name, "external")) {
		p->next = next_dbw;
		return !first;
	}
	if (!strcmp(name, "timeout"))
		return first && milliseconds(first, &p->timeout_ms);
	p->steps = train_has_steps(name);
	if (!strcmp(name, "ssp"))
		return first && number(first, &p->window);
	p->groups = !strcmp(name, "grouped");
	return p->steps && !first;
}

int sim_policy_parse(const char *text, int workers, struct sim_policy *p)
{
	char copy[128], *at, *word, *first = NULL, *save;

	*p = (struct sim_policy){
		.workers = workers,
		.keep = 1,
		.k = workers,
		.k_min = 1,
		.k_max = workers,
		.c_th = 5,
		.s_th = 0.5,
		.stride = STRIDE_DEFAULT,
		.window = INFINITY,
		.arrivals.workers = workers,
	};
	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	at = strchr(copy, ':');
	if (at)
		*at++ = 0;
	word = at ? strtok_r(at, ",", &save) : NULL;
	if (word && !strchr(word, '=')) {
		first = word;
		word = strtok_r(NULL, ",", &save);
	}
	if (!name_parse(p, copy, first))
		return -EINVAL;
	for (; word; word = strtok_r(NULL, ",", &save)) {
		char *value = strchr(word, '=');

		if (!value)
			return -EINVAL;
		*value++ = 0;
		if (!word_parse(p, word, value))
			return -EINVAL;
	}
	if (p->k < 1 || p->k > workers || p->k_min < 1 || p->k_min > workers)
		return -EINVAL;
	if (p->c_th < 1 || p->stride < 1 || p->window < 0 || p->groups < 0 || p->groups > workers)
		return -EINVAL;
	if (p->timeout_ms && p->noise) {
		p->next = next_deadline;
		p->deadline = (struct deadline){
			.workers = workers,
			.noise = p->noise,
			.set = {p->timeout_ms * 1000, p->k_min},
		};
	} else if (!p->noise) {
		p->noise = workers;
	}
	return 0;
}
