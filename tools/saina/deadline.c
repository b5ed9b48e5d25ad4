// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "deadline.h"

#define BUCKET_STEPS   8	/* integration steps per bucket */
#define FIRST_BUCKET   10	/* its end, 1024 us, is the shortest T */
#define MEMORY         100	/* rounds: older ones are forgotten exponentially */
#define GAIN_MIN       1.02	/* another setting must earn this many times as much per time */
#define TIE            1.001	/* settings whose rates differ by less are equally good */
#define TRIAL_INTERVAL 20	/* trials take at most 1/TRIAL_INTERVAL of the time */

/*
 * @count: [b][n]: probability that n gradients have come by the end of bucket b
 * @wait_us: [b][k]: mean time within bucket b in which fewer than k have come
 */
struct model {
	double count[SAINA_ARRIVAL_BUCKETS][SAINA_WORKERS_MAX + 1];
	double wait_us[SAINA_ARRIVAL_BUCKETS][SAINA_WORKERS_MAX + 1];
};

/*
 * absent[b]: share of the gradients of worker @w that are later than bucket b (Kaplan-Meier
 * estimator). Gradients for which no round has waited count as never coming.
 */
static void absent_shares(const struct deadline *d, unsigned int w, double *absent)
{
	double waited = 0, share = 1;

	for (int b = 0; b < SAINA_ARRIVAL_BUCKETS; b++)
		waited += d->came[w][b] + d->missed[w][b];
	for (int b = 0; b < SAINA_ARRIVAL_BUCKETS; b++) {
		if (waited > 1e-9)
			share *= 1 - d->came[w][b] / waited;
		waited -= d->came[w][b] + d->missed[w][b];
		absent[b] = share > 0 ? share : 0;
	}
}

/*
 * p[n]: probability that n gradients have come, if workers are late independently of each other.
 * At least one has come: time begins with it.
 */
static void count_distribution(unsigned int workers, const double *share, double *p)
{
	double none;

	arrivals_distribution(workers, share, p);
	none = p[0];
	p[0] = 0;
	if (none > 1 - 1e-9)
		p[1] = 1;
	else
		for (unsigned int n = 1; n <= workers; n++)
			p[n] /= 1 - none;
}

/* Assumes that lateness is distributed uniformly within a bucket. */
static void model_init(struct model *m, const struct deadline *d)
{
	double absent[SAINA_WORKERS_MAX][SAINA_ARRIVAL_BUCKETS], share[SAINA_WORKERS_MAX];
	double p[SAINA_WORKERS_MAX + 1], from = 0;

	memset(m, 0, sizeof(*m));
	for (unsigned int w = 0; w < d->workers; w++)
		absent_shares(d, w, absent[w]);
	for (int b = 0; b < SAINA_ARRIVAL_BUCKETS; b++) {
		double step = (saina_arrival_end_us(b) - from) / BUCKET_STEPS;

		for (int i = 0; i < BUCKET_STEPS; i++) {
			double fewer = 0, part = (i + 0.5) / BUCKET_STEPS;

			for (unsigned int w = 0; w < d->workers; w++) {
				double before = b ? absent[w][b - 1] : 1;

				share[w] = 1 - before + part * (before - absent[w][b]);
			}
			count_distribution(d->workers, share, p);
			for (unsigned int k = 1; k <= d->workers; k++) {
				fewer += p[k - 1];
				m->wait_us[b][k] += step * fewer;
			}
		}
		for (unsigned int w = 0; w < d->workers; w++)
			share[w] = 1 - absent[w][b];
		count_distribution(d->workers, share, m->count[b]);
		from = saina_arrival_end_us(b);
	}
}

/* The bucket that ends at @us or after it. */
static int bucket_of(double us)
{
	int b = FIRST_BUCKET;

	while (b < SAINA_ARRIVAL_BUCKETS - 1 && saina_arrival_end_us(b) < us)
		b++;
	return b;
}

/* A round waits for no more than the live workers. */
static unsigned int k_min_of(const struct deadline *d)
{
	return d->set.k_min < d->workers ? d->set.k_min : d->workers;
}

/*
 * Mean time from the first gradient to the end of the round, or to the end of bucket @last if that
 * is earlier. T is the end of bucket @t.
 */
static double mean_end_us(const struct model *m, unsigned int workers, int t, unsigned int k_min, int last)
{
	double us = 0;

	for (int b = 0; b <= last; b++)
		us += m->wait_us[b][b <= t ? workers : k_min];
	return us;
}

static struct deadline_choice expect(const struct deadline *d, const struct model *m, int t, unsigned int k_min)
{
	struct deadline_choice c = { .set = { saina_arrival_end_us(t), k_min } };
	double gain = 0;

	c.round_us = d->rest_us + mean_end_us(m, d->workers, t, k_min, SAINA_ARRIVAL_BUCKETS - 1);
	for (unsigned int n = 0; n <= d->workers; n++) {
		unsigned int in = n > k_min ? n : k_min;

		c.count += m->count[t][n] * in;
		gain += m->count[t][n] * arrivals_gain(in, d->noise);
	}
	c.rate = gain / (c.round_us + 1) * 1e6;
	return c;
}

/* Probability that a round has not ended at the end of bucket @b. */
static double open_share(const struct model *m, int b, unsigned int k_min)
{
	double p = 0;

	for (unsigned int n = 0; n < k_min; n++)
		p += m->count[b][n];
	return p;
}

/*
 * Adds @n gradients of worker @w that had not come when their round ended: at T, or later, with the
 * kmin-th gradient. How often it was later is estimated by the model.
 */
static void add_missed(struct deadline *d, const struct model *m, unsigned int w, double n)
{
	int t = bucket_of(d->set.timeout_us);
	double open = 1;

	for (int b = t; b < SAINA_ARRIVAL_BUCKETS; b++) {
		double then = b == SAINA_ARRIVAL_BUCKETS - 1 || !d->rounds ? 0 : open_share(m, b, k_min_of(d));

		d->missed[w][b] += n * (open - then);
		open = then;
	}
}

/* The bucket of T, or the last one in which a gradient came if that is later. */
static int last_bucket(const struct deadline *d)
{
	int last = bucket_of(d->set.timeout_us);

	for (unsigned int w = 0; w < d->workers; w++)
		for (int b = last + 1; b < SAINA_ARRIVAL_BUCKETS; b++)
			if (d->came[w][b] > 0.01)
				last = b;
	return last;
}

void deadline_observe(struct deadline *d, const struct arrivals *a)
{
	double keep = a->rounds < MEMORY ? (MEMORY - a->rounds) / MEMORY : 0;
	double rest_us;
	struct model m;

	model_init(&m, d);
	for (unsigned int w = 0; w < d->workers; w++) {
		double missing = a->rounds - arrivals_of(a, w);

		for (int b = 0; b < SAINA_ARRIVAL_BUCKETS; b++) {
			d->came[w][b] = keep * d->came[w][b] + a->late[w][b];
			d->missed[w][b] *= keep;
		}
		if (missing > 0)
			add_missed(d, &m, w, missing);
	}
	d->rounds = keep * d->rounds;
	model_init(&m, d);
	/* no round has waited longer than for the latest gradient that came */
	rest_us = a->round_us - mean_end_us(&m, d->workers, bucket_of(d->set.timeout_us), k_min_of(d), last_bucket(d));
	if (rest_us < 0)
		rest_us = 0;
	d->rest_us = (d->rounds * d->rest_us + a->rounds * rest_us) / (d->rounds + a->rounds);
	d->rounds += a->rounds;
	d->elapsed_us += a->rounds * a->round_us;
}

/* Of equally good settings, that with the largest kmin: it loses least if the model is wrong. */
static struct deadline_choice best_setting(const struct deadline *d, const struct model *m)
{
	struct deadline_choice c, best = { 0 };

	for (unsigned int k = d->workers; k; k--) {
		for (int t = FIRST_BUCKET; t < SAINA_ARRIVAL_BUCKETS; t++) {
			c = expect(d, m, t, k);
			if (c.rate > best.rate * TIE)
				best = c;
		}
	}
	return best;
}

/* Share of the gradients whose lateness was not measured. */
static double missed_share(const struct deadline *d)
{
	double came = 0, missed = 0;

	for (unsigned int w = 0; w < d->workers; w++) {
		for (int b = 0; b < SAINA_ARRIVAL_BUCKETS; b++) {
			came += d->came[w][b];
			missed += d->missed[w][b];
		}
	}
	return missed / (came + missed + 1e-9);
}

/*
 * The longest T of a trial. Waiting for all gradients can gain what the missing ones are worth; it
 * does not pay if rounds earn that in less time on average.
 */
static int trial_bucket(const struct deadline *d, const struct deadline_choice *now)
{
	double gain = now->rate * now->round_us / 1e6;

	return bucket_of(now->round_us * (arrivals_gain(d->workers, d->noise) / gain - 1));
}

static bool trial_is_due(const struct deadline *d, const struct deadline_choice *now)
{
	return d->elapsed_us >= d->trial_us && missed_share(d) > 0.01 &&
	       saina_arrival_end_us(trial_bucket(d, now)) > now->set.timeout_us;
}

struct deadline_choice deadline_choose(struct deadline *d)
{
	struct deadline_choice best, now;
	struct model m;

	if (d->trial) {
		d->trial_us = d->elapsed_us + TRIAL_INTERVAL * (d->elapsed_us - d->trial_us);
		d->set = d->before;
		d->trial = false;
	}
	model_init(&m, d);
	best = best_setting(d, &m);
	now = expect(d, &m, bucket_of(d->set.timeout_us), k_min_of(d));
	now.set = d->set;
	if (best.rate >= GAIN_MIN * now.rate) {
		now = best;
	} else if (trial_is_due(d, &now)) {
		now = expect(d, &m, trial_bucket(d, &now), k_min_of(d));
		d->trial = true;
		d->before = d->set;
		d->trial_us = d->elapsed_us;
	}
	d->set = now.set;
	return now;
}
