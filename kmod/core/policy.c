// SPDX-License-Identifier: GPL-2.0
/*
 * Policy strings: what people write <-> struct saina_policy.
 *
 *	bsp
 *	fastest:k=6[,late=residual|drop]
 *	sfcd[:k0=1,kmin=1,kmax=8,sth=0.5,cth=5|k,stride=32,late=residual|drop,parity]
 *
 * The canonical form lists every setting that matters, in this order, leaving
 * out late=residual (the default for all) and kmax when it is the number of
 * members.  Parsing the canonical form gives the same policy again.
 */
#include "core/os.h"
#include "core/core.h"

#define POLICY_S_TH_DEFAULT   500
#define POLICY_C_TH_DEFAULT   5
#define POLICY_STRIDE_DEFAULT 32
#define POLICY_STRIDE_MAX     64

/* A word of the string: not terminated, only delimited. */
struct word {
	const char *s;
	int len;
};

/* Long words are cut in refusals so that what is allowed still fits. */
#define WORD_SHOWN   24
#define WORD_ARGS(w) saina_min((w).len, WORD_SHOWN), (w).s

static int word_is(struct word w, const char *text)
{
	return w.len == (int)strlen(text) && !memcmp(w.s, text, w.len);
}

static struct word word_until(const char **at, const char *stops)
{
	struct word w = { .s = *at };

	while (w.s[w.len] && !strchr(stops, w.s[w.len]))
		w.len++;
	*at += w.len;
	return w;
}

static int word_number(struct word w, __u32 max, __u32 *out)
{
	__u32 n = 0;
	int i;

	if (!w.len || w.len > 9)
		return -EINVAL;
	for (i = 0; i < w.len; i++) {
		if (w.s[i] < '0' || w.s[i] > '9')
			return -EINVAL;
		n = n * 10 + (w.s[i] - '0');
	}
	if (n > max)
		return -ERANGE;
	*out = n;
	return 0;
}

/* "0.5" -> 500: a share of one with at most three decimals. */
static int word_permille(struct word w, __u32 *out)
{
	__u32 n, scale = 100;
	int i;

	if (w.len < 1 || (w.s[0] != '0' && w.s[0] != '1'))
		return -EINVAL;
	n = (w.s[0] - '0') * 1000;
	if (w.len > 1 && (w.s[1] != '.' || w.len == 2 || w.len > 5))
		return -EINVAL;
	for (i = 2; i < w.len; i++) {
		if (w.s[i] < '0' || w.s[i] > '9')
			return -EINVAL;
		n += (w.s[i] - '0') * scale;
		scale /= 10;
	}
	if (n > 1000)
		return -ERANGE;
	*out = n;
	return 0;
}

static const char *policy_keys(const struct saina_policy *p)
{
	return p->mode == SAINA_POLICY_SFCD
		       ? "k0=, kmin=, kmax=, sth=, cth=, stride=, late=, parity"
		       : "k=, late=";
}

static int policy_bad(struct saina_core_err *err, int error, struct word key, struct word value,
		      const char *allowed)
{
	return saina_refuse(err, error, SAINA_A_JOB_POLICY, "policy: '%.*s=%.*s': %s",
			    WORD_ARGS(key), WORD_ARGS(value), allowed);
}

/* A number of workers, 1..@workers. */
static int policy_k(struct saina_core_err *err, struct word key, struct word value, int workers,
		    __u8 *out)
{
	char allowed[48];
	__u32 n = 0;
	int ret;

	ret = word_number(value, workers, &n);
	if (ret || !n) {
		snprintf(allowed, sizeof(allowed), "must be 1..%d, the workers of the job",
			 workers);
		return policy_bad(err, ret ? ret : -ERANGE, key, value, allowed);
	}
	*out = n;
	return 0;
}

static int policy_late(struct saina_core_err *err, struct word key, struct word value, __u8 *late)
{
	if (word_is(value, "residual"))
		*late = SAINA_LATE_RESIDUAL;
	else if (word_is(value, "drop"))
		*late = SAINA_LATE_DROP;
	else
		return policy_bad(err, -EINVAL, key, value, "must be residual or drop");
	return 0;
}

/* Returns 1 if @key is not one of SFCD's own. */
static int policy_sfcd_key(struct saina_core_err *err, struct word key, struct word value,
			   int workers, struct saina_policy *p)
{
	__u32 n = 0;

	if (word_is(key, "k0"))
		return policy_k(err, key, value, workers, &p->k);
	if (word_is(key, "kmin"))
		return policy_k(err, key, value, workers, &p->k_min);
	if (word_is(key, "kmax"))
		return policy_k(err, key, value, workers, &p->k_max);
	if (word_is(key, "sth")) {
		if (word_permille(value, &n))
			return policy_bad(err, -EINVAL, key, value,
					  "must be 0..1 with at most three decimals, as 0.5");
		p->s_th = n;
		return 0;
	}
	if (word_is(key, "cth")) {
		if (word_is(value, "k")) {
			p->flags |= SAINA_POLICY_F_CTH_K;
			p->c_th = 0;
			return 0;
		}
		if (word_number(value, 65535, &n) || !n)
			return policy_bad(err, -EINVAL, key, value,
					  "must be 1..65535 rounds, or k (as many as k is now)");
		p->flags &= ~SAINA_POLICY_F_CTH_K;
		p->c_th = n;
		return 0;
	}
	if (word_is(key, "stride")) {
		if (word_number(value, POLICY_STRIDE_MAX, &n) || !n || (n & (n - 1)))
			return policy_bad(err, -EINVAL, key, value,
					  "must be 1, 2, 4, 8, 16, 32 or 64 elements");
		p->stride = n;
		return 0;
	}
	return 1;
}

static int policy_option(struct saina_core_err *err, struct word key, struct word value,
			 int has_value, int workers, struct saina_policy *p)
{
	int ret = 1;

	if (!has_value) {
		if (p->mode == SAINA_POLICY_SFCD && word_is(key, "parity")) {
			p->flags |= SAINA_POLICY_F_PARITY;
			return 0;
		}
	} else if (word_is(key, "late")) {
		ret = policy_late(err, key, value, &p->late);
	} else if (p->mode == SAINA_POLICY_SFCD) {
		ret = policy_sfcd_key(err, key, value, workers, p);
	} else if (word_is(key, "k")) {
		ret = policy_k(err, key, value, workers, &p->k);
	}
	if (ret <= 0)
		return ret;
	return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
			    "policy: '%.*s' is not allowed here; %s takes %s", WORD_ARGS(key),
			    p->mode == SAINA_POLICY_SFCD ? "sfcd" : "fastest", policy_keys(p));
}

/* What only the whole can tell. */
static int policy_check(struct saina_core_err *err, const struct saina_policy *p)
{
	if (p->mode == SAINA_POLICY_FASTEST && !p->k)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: fastest needs k, as in 'fastest:k=6'");
	if (p->mode != SAINA_POLICY_SFCD)
		return 0;
	if (p->k < p->k_min)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: k0=%d is below kmin=%d", p->k, p->k_min);
	if (p->k_max && p->k > p->k_max)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: k0=%d is above kmax=%d", p->k, p->k_max);
	if ((p->flags & SAINA_POLICY_F_PARITY) && p->stride != 32)
		return saina_refuse(
			err, -EINVAL, SAINA_A_JOB_POLICY,
			"policy: parity samples every 32nd element: stride=%d does not go with it",
			p->stride);
	return 0;
}

/**
 * saina_policy_parse() - understand a policy string
 * @text: zero terminated
 * @workers: of the job, the bound of every k; 1..64
 * @p: out; seq is 0.  Untouched on failure
 * @err: out on failure; names the bad word and what is allowed; may be NULL
 *
 * Return: 0, -EINVAL or -ERANGE
 */
int saina_policy_parse(const char *text, int workers, struct saina_policy *p,
		       struct saina_core_err *err)
{
	struct saina_policy q = { .late = SAINA_LATE_RESIDUAL };
	struct word mode, key, value = { 0 }, seen[16];
	int i, n = 0, ret, has_value;
	const char *at = text;

	mode = word_until(&at, ":");
	if (word_is(mode, "bsp")) {
		q.mode = SAINA_POLICY_BSP;
	} else if (word_is(mode, "fastest")) {
		q.mode = SAINA_POLICY_FASTEST;
	} else if (word_is(mode, "sfcd")) {
		q.mode = SAINA_POLICY_SFCD;
		q.k = q.k_min = 1;
		q.s_th = POLICY_S_TH_DEFAULT;
		q.c_th = POLICY_C_TH_DEFAULT;
		q.stride = POLICY_STRIDE_DEFAULT;
	} else {
		return saina_refuse(
			err, -EINVAL, SAINA_A_JOB_POLICY,
			"policy: '%.*s' is unknown; known are bsp, fastest:k=K, sfcd:k0=K,...",
			WORD_ARGS(mode));
	}
	if (*at && q.mode == SAINA_POLICY_BSP)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: bsp takes no settings, but '%.24s' follows it", at);
	while (*at) {
		at++; /* the colon, or a comma */
		key = word_until(&at, "=,");
		has_value = *at == '=';
		if (has_value) {
			at++;
			value = word_until(&at, ",");
		}
		if (!key.len)
			return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
					    "policy: an empty setting in '%.48s'; allowed are %s",
					    text, policy_keys(&q));
		ret = policy_option(err, key, value, has_value, workers, &q);
		if (ret)
			return ret;
		for (i = 0; i < n; i++)
			if (seen[i].len == key.len && !memcmp(seen[i].s, key.s, key.len))
				return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
						    "policy: '%.*s' is given twice",
						    WORD_ARGS(key));
		if (n < (int)(sizeof(seen) / sizeof(seen[0])))
			seen[n++] = key;
	}
	ret = policy_check(err, &q);
	if (!ret)
		*p = q;
	return ret;
}

/**
 * saina_policy_format() - canonical string of a policy
 * @p: a policy from saina_policy_parse()
 * @text: out, zero terminated; 96 bytes always suffice
 * @size: of @text
 */
void saina_policy_format(const struct saina_policy *p, char *text, unsigned long size)
{
	const char *late = p->late == SAINA_LATE_DROP ? ",late=drop" : "";
	char kmax[12] = "", cth[8] = "k", sth[8];

	switch (p->mode) {
	case SAINA_POLICY_BSP:
		snprintf(text, size, "bsp");
		return;
	case SAINA_POLICY_FASTEST:
		snprintf(text, size, "fastest:k=%u%s", p->k, late);
		return;
	case SAINA_POLICY_SFCD:
		break;
	default:
		snprintf(text, size, "unknown");
		return;
	}
	if (p->k_max)
		snprintf(kmax, sizeof(kmax), ",kmax=%u", p->k_max);
	if (!(p->flags & SAINA_POLICY_F_CTH_K))
		snprintf(cth, sizeof(cth), "%u", p->c_th);
	snprintf(sth, sizeof(sth), "%u.%03u", (p->s_th / 1000) % 10, p->s_th % 1000);
	/* 0.500 -> 0.5, 1.000 -> 1 */
	while (sth[strlen(sth) - 1] == '0' && strchr(sth, '.'))
		sth[strlen(sth) - 1] = 0;
	if (sth[strlen(sth) - 1] == '.')
		sth[strlen(sth) - 1] = 0;
	snprintf(text, size, "sfcd:k0=%u,kmin=%u%s,sth=%s,cth=%s,stride=%u%s%s", p->k, p->k_min,
		 kmax, sth, cth, p->stride, late,
		 p->flags & SAINA_POLICY_F_PARITY ? ",parity" : "");
}
