// SPDX-License-Identifier: GPL-2.0
#include "core/os.h"
#include "core/policy.h"
#include "linux/saina.h"

static const char *const late_words[] = {
	[SAINA_LATE_RESIDUAL] = "residual",
	[SAINA_LATE_DROP] = "drop",
};

#define FIELD(f)                                     \
	.offset = offsetof(struct saina_policy, f), \
	.size = sizeof(((struct saina_policy *)0)->f)

#define KEY_K(n, f, first) \
	{ .name = n, FIELD(f), .kind = SAINA_KEY_WORKERS, \
	  .min = 1, .max = SAINA_WORKERS_MAX, .preset = first }

#define KEY_LATE \
	{ .name = "late", FIELD(late), .kind = SAINA_KEY_WORD, .words = late_words, \
	  .min = SAINA_LATE_RESIDUAL, .max = SAINA_LATE_DROP, .preset = SAINA_LATE_RESIDUAL, \
	  .quiet = 1, .allowed = "must be residual or drop" }

#define TIMEOUT_MIN 1000
#define TIMEOUT_MAX 60000000

#define KEY_TIMEOUT(...) \
	{ .name = "timeout", FIELD(timeout_us), .kind = SAINA_KEY_TIME, .min = TIMEOUT_MIN, \
	  .max = TIMEOUT_MAX, .allowed = "must be 1ms..60s, as in 10ms, 1500us or 2s", __VA_ARGS__ }

#define LEAD_MAX (SAINA_RING_MAX - 2)

#define KEY_LEAD \
	{ .name = "lead", FIELD(lead), .kind = SAINA_KEY_NUMBER, .zero = "", .quiet = 1, .min = 1, \
	  .max = LEAD_MAX, .none = SAINA_LEAD_NONE, \
	  .allowed = "must be 1..62 rounds, at most the job's ring - 2, or none" }
_Static_assert(LEAD_MAX == 62, "what KEY_LEAD says is allowed");

static const struct saina_policy_key fastest_keys[] = {
	KEY_K("k", k, 0),
	KEY_TIMEOUT(.zero = "", .quiet = 1),
	{ .name = "kmin", FIELD(k_min), .kind = SAINA_KEY_WORKERS, .zero = "",
	  .min = 1, .max = SAINA_WORKERS_MAX, .quiet = 1 },
	KEY_LATE,
	KEY_LEAD,
};

static const struct saina_policy_key timeout_keys[] = {
	KEY_TIMEOUT(.bare = 1),
	KEY_K("kmin", k_min, 1),
	KEY_LATE,
	KEY_LEAD,
};

static const struct saina_policy_key external_keys[] = {
	KEY_K("k0", k, 0),
	KEY_LATE,
	KEY_LEAD,
};

static const struct saina_policy_key coded_keys[] = {
	{ .name = "s", FIELD(spread), .kind = SAINA_KEY_NUMBER, .min = 1, .max = 7,
	  .allowed = "must be 1..7 (s + 1 workers compute the same part)" },
	KEY_LEAD,
};

static const struct saina_policy_key ssp_keys[] = {
	{ .name = "w", FIELD(window), .kind = SAINA_KEY_NUMBER, .bare = 1, .min = 0,
	  .max = SAINA_WINDOW_MAX, .preset = SAINA_WINDOW_NONE,
	  .allowed = "must be 0..65535 steps that a worker may be ahead; for no bound use asp" },
};

static const struct saina_policy_key grouped_keys[] = {
	{ .name = "g", FIELD(groups), .kind = SAINA_KEY_WORKERS, .min = 1,
	  .max = SAINA_WORKERS_MAX },
	{ .name = "groups", FIELD(group), .kind = SAINA_KEY_GROUPS, .quiet = 1,
	  .allowed = "must name each worker once, as 0-3/4-7 or 0+2/1+3" },
};

static const struct saina_policy_key sfcd_keys[] = {
	KEY_K("k0", k, 1),
	KEY_K("kmin", k_min, 1),
	{ .name = "kmax", FIELD(k_max), .kind = SAINA_KEY_WORKERS, .zero = "",
	  .min = 1, .max = SAINA_WORKERS_MAX, .quiet = 1 },
	{ .name = "sth", FIELD(s_th), .kind = SAINA_KEY_SHARE, .max = 1000, .preset = 500,
	  .allowed = "must be 0..1 with at most three decimals, as 0.5" },
	{ .name = "cth", FIELD(c_th), .kind = SAINA_KEY_NUMBER, .zero = "k",
	  .min = 1, .max = 65535, .preset = 5,
	  .allowed = "must be 1..65535 rounds, or k (as many as k is now)" },
	{ .name = "stride", FIELD(stride), .kind = SAINA_KEY_POWER,
	  .min = 1, .max = 64, .preset = 32,
	  .allowed = "must be 1, 2, 4, 8, 16, 32 or 64 elements" },
	KEY_LATE,
	KEY_LEAD,
	{ .name = "parity", FIELD(flags), .kind = SAINA_KEY_FLAG,
	  .max = SAINA_POLICY_F_PARITY, .quiet = 1 },
	{ .name = "down", FIELD(flags), .kind = SAINA_KEY_FLAG,
	  .max = SAINA_POLICY_F_DOWN, .quiet = 1 },
};

static int fastest_check(const struct saina_policy *p, int workers, struct saina_core_err *err)
{
	if (p->k_min && !p->timeout_us)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: kmin=%d needs a time-out: add one, as in timeout=10ms",
				    p->k_min);
	if (p->k_min > p->k)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: kmin=%d is above k=%d", p->k_min, p->k);
	return 0;
}

static int adapted_check(const struct saina_policy *p, int workers, struct saina_core_err *err)
{
	if (p->k < p->k_min)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: k0=%d is below kmin=%d", p->k, p->k_min);
	if (p->k_max && p->k > p->k_max)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: k0=%d is above kmax=%d", p->k, p->k_max);
	if ((p->flags & SAINA_POLICY_F_PARITY) && p->stride != 32)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: parity needs stride=32, not stride=%d",
				    p->stride);
	return 0;
}

static int coded_check(const struct saina_policy *p, int workers, struct saina_core_err *err)
{
	if (workers && workers % (p->spread + 1))
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: s=%d: %d workers cannot be divided into groups of %d",
				    p->spread, workers, p->spread + 1);
	return 0;
}

/* Is each worker in the group that it has where nobody says another? */
static int is_dealt(const struct saina_policy *p)
{
	int w;

	for (w = 0; w < SAINA_WORKERS_MAX; w++)
		if (p->group[w] != (p->groups ? w % p->groups : 0))
			return 0;
	return 1;
}

void saina_policy_deal(struct saina_policy *p)
{
	int w;

	for (w = 0; w < SAINA_WORKERS_MAX; w++)
		p->group[w] = p->groups ? w % p->groups : 0;
}

static int grouped_check(const struct saina_policy *p, int workers, struct saina_core_err *err)
{
	__u64 there = 0;
	int w;

	if (is_dealt(p))
		return 0;
	for (w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (p->group[w] < p->groups)
			there |= 1ull << p->group[w];
		else if (p->group[w] != SAINA_GROUP_NONE)
			return saina_refuse(err, -ERANGE, SAINA_A_JOB_POLICY,
					    "policy: groups: worker %d is in group %d: must be 0..%d, of g=%d",
					    w, p->group[w], p->groups - 1, p->groups);
		if (workers && w < workers && p->group[w] == SAINA_GROUP_NONE)
			return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
					    "policy: groups: worker %d is in none: each of 0..%d must be in one",
					    w, workers - 1);
		if (workers && w >= workers && p->group[w] != SAINA_GROUP_NONE)
			return saina_refuse(err, -ERANGE, SAINA_A_JOB_POLICY,
					    "policy: groups: there is no worker %d: must be 0..%d",
					    w, workers - 1);
	}
	for (w = 0; w < p->groups; w++)
		if (!(there >> w & 1))
			return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
					    "policy: groups: group %d of g=%d has no worker", w,
					    p->groups);
	return 0;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KEYS(keys)   keys, COUNT(keys)

const struct saina_policy_row saina_policy_rows[] = {
	{ "bsp", "bsp", NULL, 0, SAINA_POLICY_BSP, 0, NULL },
	{ "fastest", "fastest:k=K", KEYS(fastest_keys), SAINA_POLICY_FASTEST, 0, fastest_check },
	{ "sfcd", "sfcd:k0=K,...", KEYS(sfcd_keys), SAINA_POLICY_SFCD, 0, adapted_check },
	{ "timeout", "timeout:T", KEYS(timeout_keys), SAINA_POLICY_TIMEOUT, 0, NULL },
	{ "external", "external:k0=K", KEYS(external_keys), SAINA_POLICY_EXTERNAL, 0, NULL },
	{ "coded", "coded:s=S", KEYS(coded_keys), SAINA_POLICY_CODED, 0, coded_check },
	{ "ssp", "ssp:W", KEYS(ssp_keys), SAINA_POLICY_SSP, 0, NULL },
	{ "asp", "asp", NULL, 0, SAINA_POLICY_ASP, SAINA_WINDOW_NONE, NULL },
	{ "grouped", "grouped:g=G", KEYS(grouped_keys), SAINA_POLICY_GROUPED, 0, grouped_check },
};

const int saina_policy_rows_n = COUNT(saina_policy_rows);

const struct saina_policy_row *saina_policy_row(unsigned int mode)
{
	int i;

	for (i = 0; i < saina_policy_rows_n; i++)
		if (saina_policy_rows[i].mode == mode)
			return &saina_policy_rows[i];
	return NULL;
}

unsigned int saina_policy_get(const struct saina_policy *p, const struct saina_policy_key *key)
{
	const void *field = (const char *)p + key->offset;
	unsigned int value;

	if (key->kind == SAINA_KEY_GROUPS)
		return !is_dealt(p);
	value = key->size == 1 ? *(const __u8 *)field :
		key->size == 2 ? *(const __u16 *)field : *(const __u32 *)field;

	return key->kind == SAINA_KEY_FLAG ? (value & key->max) != 0 : value;
}

void saina_policy_put(struct saina_policy *p, const struct saina_policy_key *key,
		      unsigned int value)
{
	void *field = (char *)p + key->offset;

	if (key->kind == SAINA_KEY_GROUPS)
		return;
	if (key->kind == SAINA_KEY_FLAG)
		*(__u8 *)field = (*(__u8 *)field & ~key->max) | (value ? key->max : 0);
	else if (key->size == 1)
		*(__u8 *)field = value;
	else if (key->size == 2)
		*(__u16 *)field = value;
	else
		*(__u32 *)field = value;
}

void saina_policy_preset(const struct saina_policy_row *row, struct saina_policy *p)
{
	int i;

	memset(p, 0, sizeof(*p));
	p->mode = row->mode;
	p->window = row->window;
	p->late = SAINA_LATE_RESIDUAL;
	for (i = 0; i < row->n_keys; i++)
		saina_policy_put(p, &row->keys[i], row->keys[i].preset);
}

int saina_policy_same_groups(const struct saina_policy *a, const struct saina_policy *b)
{
	return a->groups == b->groups && !memcmp(a->group, b->group, sizeof(a->group));
}

int saina_policy_same(const struct saina_policy *a, const struct saina_policy *b)
{
	struct saina_policy c = *b;

	c.seq = a->seq;
	return !memcmp(a, &c, sizeof(c));
}

/**
 * saina_policy_value_check() - may a key have this value?
 * @key: of a row
 * @value: any
 * @workers: of the job, 0: not known
 *
 * Return: 0 or -ERANGE
 */
int saina_policy_value_check(const struct saina_policy_key *key, unsigned int value, int workers)
{
	unsigned int max = key->max;

	if (key->kind == SAINA_KEY_GROUPS || (!value && key->zero) ||
	    (key->none && value == key->none))
		return 0;
	if (key->kind == SAINA_KEY_WORKERS && workers)
		max = workers;
	if (key->kind == SAINA_KEY_FLAG)
		max = 1;
	if (value < key->min || value > max ||
	    (key->kind == SAINA_KEY_POWER && (value & (value - 1))))
		return -ERANGE;
	return 0;
}

/* What a key may be, for refusals; @text of @size bytes may be needed for it. */
const char *saina_policy_allowed(const struct saina_policy_key *key, int workers, char *text,
				 unsigned long size)
{
	if (key->allowed)
		return key->allowed;
	snprintf(text, size, "must be 1..%d, the workers of the job",
		 workers ? workers : SAINA_WORKERS_MAX);
	return text;
}

/**
 * saina_policy_check() - can a job have this policy?
 * @p: any bytes; seq is not looked at
 * @workers: of the job, the bound of every k; 1..64, 0: not known
 * @err: out on failure: names the key and what is allowed; may be NULL
 *
 * Return: 0, -EINVAL or -ERANGE
 */
int saina_policy_check(const struct saina_policy *p, int workers, struct saina_core_err *err)
{
	const struct saina_policy_row *row = saina_policy_row(p->mode);
	struct saina_policy rest;
	char allowed[48];
	int i;

	if (!row)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: mode %u is unknown", p->mode);
	saina_policy_preset(row, &rest);
	if (row->n_keys && saina_policy_get(p, &row->keys[0]) == row->keys[0].preset &&
	    saina_policy_value_check(&row->keys[0], row->keys[0].preset, workers))
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: %s needs %s, as in '%s': %s %s", row->name,
				    row->keys[0].name, row->usage, row->keys[0].name,
				    saina_policy_allowed(&row->keys[0], workers, allowed,
							 sizeof(allowed)));
	for (i = 0; i < row->n_keys; i++) {
		const struct saina_policy_key *key = &row->keys[i];
		unsigned int value = saina_policy_get(p, key);

		if (saina_policy_value_check(key, value, workers))
			return saina_refuse(err, -ERANGE, SAINA_A_JOB_POLICY,
					    "policy: '%s=%u%s': %s",
					    key->name, value,
					    key->kind == SAINA_KEY_SHARE ? "/1000" :
					    key->kind == SAINA_KEY_TIME	 ? "us" : "",
					    saina_policy_allowed(key, workers, allowed,
								 sizeof(allowed)));
		saina_policy_put(&rest, key, value);
	}
	if (row->mode == SAINA_POLICY_GROUPED)
		memcpy(rest.group, p->group, sizeof(rest.group));
	if (!saina_policy_same(p, &rest))
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: a setting is given that %s does not have", row->name);
	return row->check ? row->check(p, workers, err) : 0;
}

/**
 * saina_policy_lead_check() - does the job keep enough rounds for the policy's lead?
 * @p: has passed saina_policy_check()
 * @ring: rounds kept by the job
 * @err: out on failure; may be NULL
 *
 * Return: 0 or -ERANGE
 */
int saina_policy_lead_check(const struct saina_policy *p, __u32 ring, struct saina_core_err *err)
{
	struct saina_policy most = *p;

	most.lead = 0;
	if (p->lead == SAINA_LEAD_NONE || p->lead <= saina_policy_lead(&most, ring, 0))
		return 0;
	return saina_refuse(err, -ERANGE, SAINA_A_JOB_POLICY,
			    "policy: lead=%u: the job keeps %u rounds (ring), so lead must be 1..%u, or none",
			    p->lead, ring, saina_policy_lead(&most, ring, 0));
}

/* As attributes: what the policy does not use is there as 0, but GROUPS and GROUP are absent. */
void saina_policy_show(const struct saina_policy *p, struct saina_policy_attrs *a)
{
	memset(a, 0, sizeof(*a));
	SAINA_PUT(a, SAINA_A_POLICY_MODE, mode, p->mode);
	SAINA_PUT(a, SAINA_A_POLICY_LATE, late, p->late);
	SAINA_PUT(a, SAINA_A_POLICY_K, k, p->k);
	SAINA_PUT(a, SAINA_A_POLICY_K_MIN, k_min, p->k_min);
	SAINA_PUT(a, SAINA_A_POLICY_K_MAX, k_max, p->k_max);
	SAINA_PUT(a, SAINA_A_POLICY_FLAGS, flags, p->flags);
	SAINA_PUT(a, SAINA_A_POLICY_S_TH, s_th, p->s_th);
	SAINA_PUT(a, SAINA_A_POLICY_C_TH, c_th, p->c_th);
	SAINA_PUT(a, SAINA_A_POLICY_STRIDE, stride, p->stride);
	SAINA_PUT(a, SAINA_A_POLICY_TIMEOUT_US, timeout_us, p->timeout_us);
	SAINA_PUT(a, SAINA_A_POLICY_SPREAD, spread, p->spread);
	SAINA_PUT(a, SAINA_A_POLICY_WINDOW, window, p->window);
	SAINA_PUT(a, SAINA_A_POLICY_LEAD, lead, p->lead);
	if (!p->groups)
		return;
	SAINA_PUT(a, SAINA_A_POLICY_GROUPS, groups, p->groups);
	if (is_dealt(p))
		return;
	memcpy(a->group, p->group, sizeof(a->group));
	SAINA_SET(a, SAINA_A_POLICY_GROUP);
}

/**
 * saina_policy_read() - the policy that attributes ask for
 * @a: what is absent has the preset of the mode
 * @p: out, unchecked; seq is 0
 */
void saina_policy_read(const struct saina_policy_attrs *a, struct saina_policy *p)
{
	const struct saina_policy_row *row = saina_policy_row(a->mode);

	memset(p, 0, sizeof(*p));
	if (row)
		saina_policy_preset(row, p);
	p->mode = a->mode;
	if (SAINA_HAS(a, SAINA_A_POLICY_LATE))
		p->late = a->late;
	if (SAINA_HAS(a, SAINA_A_POLICY_K))
		p->k = a->k;
	if (SAINA_HAS(a, SAINA_A_POLICY_K_MIN))
		p->k_min = a->k_min;
	if (SAINA_HAS(a, SAINA_A_POLICY_K_MAX))
		p->k_max = a->k_max;
	if (SAINA_HAS(a, SAINA_A_POLICY_FLAGS))
		p->flags = a->flags;
	if (SAINA_HAS(a, SAINA_A_POLICY_S_TH))
		p->s_th = a->s_th;
	if (SAINA_HAS(a, SAINA_A_POLICY_C_TH))
		p->c_th = a->c_th;
	if (SAINA_HAS(a, SAINA_A_POLICY_STRIDE))
		p->stride = a->stride;
	if (SAINA_HAS(a, SAINA_A_POLICY_TIMEOUT_US))
		p->timeout_us = a->timeout_us;
	if (SAINA_HAS(a, SAINA_A_POLICY_SPREAD))
		p->spread = a->spread;
	if (SAINA_HAS(a, SAINA_A_POLICY_WINDOW))
		p->window = a->window;
	if (SAINA_HAS(a, SAINA_A_POLICY_LEAD))
		p->lead = a->lead;
	if (SAINA_HAS(a, SAINA_A_POLICY_GROUPS))
		p->groups = a->groups;
	if (SAINA_HAS(a, SAINA_A_POLICY_GROUP))
		memcpy(p->group, a->group, sizeof(p->group));
	else
		saina_policy_deal(p);
}
