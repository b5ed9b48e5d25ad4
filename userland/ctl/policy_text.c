// SPDX-License-Identifier: GPL-2.0
/*
 * Policy strings: parsing and printing struct saina_policy, by the table of policies
 * (policy.c):
 *
 *	NAME[:KEY=VALUE|FLAG[,...]], as in bsp, fastest:k=6,late=drop
 *	NAME:VALUE[,...], as in timeout:10ms,kmin=4, where the first key of a policy is bare
 *
 * The canonical form has the keys in the order of the table, without quiet keys that have
 * their preset.  Parsing it returns the same policy.
 */
#include "core/os.h"
#include "ctl/policy_text.h"
#include "linux/saina.h"

/* A part of the string, not terminated. */
struct word {
	const char *s;
	int len;
};

/* In refusals long words are cut, so that the allowed values fit. */
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

static int word_number(struct word w, unsigned int *out)
{
	unsigned int n = 0;
	int i;

	if (!w.len || w.len > 9)
		return -EINVAL;
	for (i = 0; i < w.len; i++) {
		if (w.s[i] < '0' || w.s[i] > '9')
			return -EINVAL;
		n = n * 10 + (w.s[i] - '0');
	}
	*out = n;
	return 0;
}

/* "0.5" -> 500: a number from 0 to 1 with at most three decimals. */
static int word_permille(struct word w, unsigned int *out)
{
	unsigned int n, scale = 100;
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
	*out = n;
	return 0;
}

static const struct {
	const char *name;
	unsigned int us;
} units[] = { { "s", 1000000 }, { "ms", 1000 }, { "us", 1 } };

/* "10ms" -> 10000: microseconds; a unit is required. */
static int word_time(struct word w, unsigned int *out)
{
	struct word digits = w, unit;
	unsigned int i;

	digits.len = 0;
	while (digits.len < w.len && w.s[digits.len] >= '0' && w.s[digits.len] <= '9')
		digits.len++;
	unit = (struct word){ w.s + digits.len, w.len - digits.len };
	if (word_number(digits, out))
		return -EINVAL;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!word_is(unit, units[i].name))
			continue;
		/* 0 is below every range; a value that does not fit, above */
		*out = *out > ~0u / units[i].us ? ~0u : *out * units[i].us;
		return 0;
	}
	return -EINVAL;
}

static int word_value(struct word w, const struct saina_policy_key *key, unsigned int *out)
{
	if (key->zero && key->zero[0] && word_is(w, key->zero)) {
		*out = 0;
		return 0;
	}
	if (key->none && word_is(w, "none")) {
		*out = key->none;
		return 0;
	}
	switch (key->kind) {
	case SAINA_KEY_WORD:
		for (*out = key->min; *out <= key->max; (*out)++)
			if (word_is(w, key->words[*out]))
				return 0;
		return -EINVAL;
	case SAINA_KEY_SHARE:
		return word_permille(w, out);
	case SAINA_KEY_TIME:
		return word_time(w, out) || (key->zero && !*out) ? -EINVAL : 0;
	default:
		/* a key for which 0 has a meaning has a word for it, or cannot be given as 0 */
		return word_number(w, out) || (key->zero && !*out) ||
				       (key->none && *out == key->none) ? -EINVAL : 0;
	}
}

/* "0-3/4+6/5+7": the workers of each group. */
static int word_groups(struct word w, struct saina_policy *p)
{
	const char *at = w.s, *end = w.s + w.len;
	unsigned int first, last, groups = 0;
	struct word n;

	memset(p->group, SAINA_GROUP_NONE, sizeof(p->group));
	for (;;) {
		n = word_until(&at, "-+/,");
		if (word_number(n, &first) || first >= SAINA_WORKERS_MAX)
			return -EINVAL;
		last = first;
		if (*at == '-') {
			at++;
			n = word_until(&at, "-+/,");
			if (word_number(n, &last) || last >= SAINA_WORKERS_MAX || last < first)
				return -EINVAL;
		}
		for (; first <= last; first++) {
			if (p->group[first] != SAINA_GROUP_NONE)
				return -EEXIST;
			p->group[first] = groups;
		}
		if (at == end)
			break;
		if (*at != '+' && *at != '/')
			return -EINVAL;
		groups += *at++ == '/';
		if (groups >= SAINA_WORKERS_MAX)
			return -EINVAL;
	}
	return groups + 1;
}

static int groups_parse(struct word w, const struct saina_policy_key *key, struct saina_policy *p,
			__u32 given, struct saina_core_err *err)
{
	int groups = word_groups(w, p);

	if (groups == -EEXIST)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: '%s=%.*s': a worker is in two groups; %s", key->name,
				    WORD_ARGS(w), key->allowed);
	if (groups < 0)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY, "policy: '%s=%.*s': %s",
				    key->name, WORD_ARGS(w), key->allowed);
	/* without g= the number of groups is that of the list */
	if (!(given & 1))
		p->groups = groups;
	return 0;
}

/* "k=, late=": the keys of a row, for refusals. */
static void keys_print(const struct saina_policy_row *row, char *text, int size)
{
	int i, n = 0;

	for (i = 0; i < row->n_keys && n < size; i++)
		n += snprintf(text + n, size - n, "%s%s%s", i ? ", " : "", row->keys[i].name,
			      row->keys[i].kind == SAINA_KEY_FLAG ? "" : "=");
}

static int is_flag(const struct saina_policy_row *row, struct word name)
{
	int i;

	for (i = 0; i < row->n_keys; i++)
		if (row->keys[i].kind == SAINA_KEY_FLAG && word_is(name, row->keys[i].name))
			return 1;
	return 0;
}

static int option_parse(struct word option, const struct saina_policy_row *row, int workers,
			struct saina_policy *p, __u32 *given, struct saina_core_err *err)
{
	const struct saina_policy_key *key = NULL;
	const char *at = option.s, *sep = "=";
	struct word name = word_until(&at, "=,"), value = { 0 };
	int has_value = *at == '=', i, ret;
	unsigned int n = 1;
	char text[80];

	if (has_value)
		value = (struct word){ at + 1, option.len - name.len - 1 };
	if (!has_value && row->keys[0].bare && !*given && !is_flag(row, name)) {
		key = &row->keys[0];
		value = name;
		name.len = 0;
		sep = "";
		has_value = 1;
	}
	for (i = 0; !key && i < row->n_keys; i++)
		if (word_is(name, row->keys[i].name) &&
		    has_value == (row->keys[i].kind != SAINA_KEY_FLAG))
			key = &row->keys[i];
	if (!key) {
		keys_print(row, text, sizeof(text));
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: '%.*s' is not allowed here; %s takes %s",
				    WORD_ARGS(name), row->name, text);
	}
	if (*given & 1u << (key - row->keys))
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY, "policy: '%s' is given twice",
				    key->name);
	*given |= 1u << (key - row->keys);
	if (key->kind == SAINA_KEY_GROUPS)
		return groups_parse(value, key, p, *given, err);
	if (has_value) {
		ret = word_value(value, key, &n);
		if (!ret)
			ret = saina_policy_value_check(key, n, workers);
		if (ret)
			return saina_refuse(err, ret, SAINA_A_JOB_POLICY,
					    "policy: '%.*s%s%.*s': %s", WORD_ARGS(name), sep,
					    WORD_ARGS(value),
					    saina_policy_allowed(key, workers, text, sizeof(text)));
	}
	saina_policy_put(p, key, n);
	return 0;
}

static const struct saina_policy_row *row_parse(struct word name, struct saina_core_err *err)
{
	char known[112];
	int i, n = 0;

	for (i = 0; i < saina_policy_rows_n; i++)
		if (word_is(name, saina_policy_rows[i].name))
			return &saina_policy_rows[i];
	for (i = 0; i < saina_policy_rows_n && n < (int)sizeof(known); i++)
		n += snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "",
			      saina_policy_rows[i].usage);
	saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY, "policy: '%.*s' is unknown; known are %s",
		     WORD_ARGS(name), known);
	return NULL;
}

/**
 * saina_policy_parse() - parse a policy string
 * @text: zero terminated
 * @workers: of the job, the bound of every k; 0: not known
 * @p: out; seq is 0.  Unchanged on failure
 * @err: out on failure; names the bad word and the allowed ones; may be NULL
 *
 * Return: 0, -EINVAL or -ERANGE
 */
int saina_policy_parse(const char *text, int workers, struct saina_policy *p,
		       struct saina_core_err *err)
{
	const struct saina_policy_row *row;
	struct saina_policy q;
	struct word option;
	const char *at = text;
	char keys[80];
	__u32 given = 0;
	int ret;

	row = row_parse(word_until(&at, ":"), err);
	if (!row)
		return -EINVAL;
	if (*at && !row->n_keys)
		return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
				    "policy: %s takes no settings, but '%.24s' follows it",
				    row->name, at);
	saina_policy_preset(row, &q);
	while (*at) {
		at++; /* the colon, or a comma */
		option = word_until(&at, ",");
		if (!option.len || option.s[0] == '=') {
			keys_print(row, keys, sizeof(keys));
			return saina_refuse(err, -EINVAL, SAINA_A_JOB_POLICY,
					    "policy: an empty setting in '%.48s'; allowed are %s",
					    text, keys);
		}
		ret = option_parse(option, row, workers, &q, &given, err);
		if (ret)
			return ret;
	}
	if (row->mode == SAINA_POLICY_GROUPED && !(given & 2))
		saina_policy_deal(&q);
	ret = saina_policy_check(&q, workers, err);
	if (!ret)
		*p = q;
	return ret;
}

static int groups_print(const struct saina_policy *p, char *text, int size)
{
	int n = 0, g, w, last;

	for (g = 0; g < p->groups; g++) {
		char sep = g ? '/' : 0;

		for (w = 0; w < SAINA_WORKERS_MAX; w = last + 1) {
			last = w;
			if (p->group[w] != g)
				continue;
			while (last + 1 < SAINA_WORKERS_MAX && p->group[last + 1] == g)
				last++;
			if (sep)
				text[n++] = sep;
			n += snprintf(text + n, size - n, last > w ? "%d-%d" : "%d", w, last);
			sep = '+';
		}
	}
	return n;
}

static int value_print(const struct saina_policy_key *key, unsigned int value, char *text, int size)
{
	unsigned int i;
	int n;

	if (!value && key->zero)
		return snprintf(text, size, "%s", key->zero);
	if (key->none && value == key->none)
		return snprintf(text, size, "none");
	switch (key->kind) {
	case SAINA_KEY_FLAG:
		return 0;
	case SAINA_KEY_WORD:
		if (value < key->min || value > key->max)
			break;
		return snprintf(text, size, "%s", key->words[value]);
	case SAINA_KEY_TIME:
		for (i = 0; value % units[i].us; i++)
			;
		return snprintf(text, size, "%u%s", value / units[i].us, units[i].name);
	case SAINA_KEY_SHARE:
		n = snprintf(text, size, "%u.%03u", value / 1000, value % 1000);
		/* 0.500 -> 0.5, 1.000 -> 1 */
		while (text[n - 1] == '0')
			n--;
		return text[n - 1] == '.' ? n - 1 : n;
	}
	return snprintf(text, size, "%u", value);
}

/**
 * saina_policy_format() - print the canonical string of a policy
 * @p: a policy that passes saina_policy_check()
 * @text: out, zero terminated
 * @size: of @text, at least SAINA_POLICY_TEXT_LEN
 */
void saina_policy_format(const struct saina_policy *p, char *text, unsigned long size)
{
	const struct saina_policy_row *row = saina_policy_row(p->mode);
	char sep = ':';
	int i, n;

	if (!row) {
		snprintf(text, size, "unknown");
		return;
	}
	n = snprintf(text, size, "%s", row->name);
	for (i = 0; i < row->n_keys; i++) {
		const struct saina_policy_key *key = &row->keys[i];
		unsigned int value = saina_policy_get(p, key);

		if (key->quiet && value == key->preset)
			continue;
		n += snprintf(text + n, size - n, "%c%s", sep, key->bare ? "" : key->name);
		if (!key->bare && key->kind != SAINA_KEY_FLAG)
			text[n++] = '=';
		n += key->kind == SAINA_KEY_GROUPS ? groups_print(p, text + n, size - n)
						   : value_print(key, value, text + n, size - n);
		text[n] = 0;
		sep = ',';
	}
}

/**
 * saina_policy_to_attrs() - attributes that request a policy
 * @p: a policy that passes saina_policy_check()
 * @a: out.  Attributes that the policy does not use are left out: an earlier version of the
 *	control plane may not know them
 */
void saina_policy_to_attrs(const struct saina_policy *p, struct saina_policy_attrs *a)
{
	struct saina_policy_attrs preset = { .has = 1ull << SAINA_A_POLICY_MODE, .mode = p->mode };
	struct saina_policy plain;

	saina_policy_read(&preset, &plain);
	saina_policy_show(&plain, &preset);
	saina_policy_show(p, a);
	for (int i = 0; i < saina_policy_class.n; i++) {
		const struct saina_attr *row = &saina_policy_class.attrs[i];
		static const struct saina_policy_attrs none;
		const char *zero = (const char *)&none + row->offset;

		if (!memcmp((char *)a + row->offset, zero, row->size) &&
		    !memcmp((char *)&preset + row->offset, zero, row->size))
			a->has &= ~(1ull << row->number);
	}
}
