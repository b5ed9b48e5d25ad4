// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parses the command line.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "ctl/policy_text.h"
#include "ctl/tree_text.h"

const char *args_peek(const struct args *a)
{
	return a->argc > 0 ? a->argv[0] : NULL;
}

const char *args_next(struct args *a)
{
	if (a->argc <= 0)
		return NULL;
	a->argc--;
	return *a->argv++;
}

int args_error(const struct args *a, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "saina: %s: ", a->cmd);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return EXIT_USAGE;
}

int args_not_option(const struct args *a, const char *word)
{
	if (word[0] == '-' &&
	    (word[1] == '-' || (word[1] && !word[2] && strchr("jpsnVh", word[1]))))
		return args_error(a, "\"%s\" is an option: options go before the object", word);
	return 0;
}

int args_done(struct args *a)
{
	if (a->argc <= 0)
		return 0;
	if (args_not_option(a, a->argv[0]))
		return EXIT_USAGE;
	return args_error(a, "unexpected argument \"%s\"", a->argv[0]);
}

bool args_matches(const char *word, const char *full)
{
	size_t n = strlen(word);

	return n && !strncmp(word, full, n);
}

int args_table(const char *word, const void *names, size_t n, size_t stride)
{
	for (size_t i = 0; i < n; i++) {
		const char *name;

		memcpy(&name, (const char *)names + i * stride, sizeof(name));
		if (args_matches(word, name))
			return (int)i;
	}
	return -1;
}

bool args_number(const char *word, uint64_t min, uint64_t max, uint64_t *value)
{
	unsigned long long v;
	char *end;

	/* strtoull() accepts blanks and signs, and octal numbers */
	if (*word < '0' || *word > '9')
		return false;
	errno = 0;
	v = strtoull(word, &end, word[0] == '0' && (word[1] | 0x20) == 'x' ? 16 : 10);
	if (errno || *end || v < min || v > max)
		return false;
	*value = v;
	return true;
}

static void store_number(const struct key *k, void *obj, uint64_t v)
{
	char *to = (char *)obj + k->offset;
	uint8_t v8 = v;
	uint16_t v16 = v;
	uint32_t v32 = v;

	switch (k->size) {
	case 1:
		memcpy(to, &v8, 1);
		break;
	case 2:
		memcpy(to, &v16, 2);
		break;
	case 4:
		memcpy(to, &v32, 4);
		break;
	case 8:
		memcpy(to, &v, 8);
		break;
	default:
		abort();
	}
}

/* A decimal fraction, without the "nan", "inf" and blanks that strtod() accepts. */
static bool parse_fraction(const char *word, const char *suffix, double max, double *value)
{
	char *end;

	if ((*word < '0' || *word > '9') && *word != '.')
		return false;
	if (word[0] == '0' && (word[1] | 0x20) == 'x')
		return false;
	errno = 0;
	*value = strtod(word, &end);
	if (errno || end == word || (*end && strcmp(end, suffix)))
		return false;
	if (*end && !strcmp(suffix, "%"))
		*value /= 100;
	return *value >= 0 && *value <= max;
}

/* A number with an optional suffix k, M, G or T: a power of @base. */
static bool parse_units(const char *word, uint64_t base, uint64_t min, uint64_t max, uint64_t *value)
{
	static const char units[] = "KMGT";
	size_t n = strlen(word);
	uint64_t factor = 1;
	char digits[32];
	const char *u;

	if (!n || n >= sizeof(digits))
		return false;
	memcpy(digits, word, n + 1);
	u = digits[n - 1] > '9' ? strchr(units, digits[n - 1] & ~0x20) : NULL;
	if (u && strncmp(digits, "0x", 2)) {
		digits[n - 1] = 0;
		for (; u >= units; u--)
			factor *= base;
	}
	if (!args_number(digits, 0, UINT64_MAX / factor, value))
		return false;
	*value *= factor;
	return *value >= min && *value <= max;
}

static int refuse_value(const struct args *a, const struct key *k, const char *word, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int refuse_value(const struct args *a, const struct key *k, const char *word, const char *fmt, ...)
{
	char allowed[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(allowed, sizeof(allowed), fmt, ap);
	va_end(ap);
	return args_error(a, "\"%s\" for \"%s\" is not allowed: must be %s", word, k->name, allowed);
}

static const char *read_first_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "re");

	if (!f)
		return NULL;
	if (!fgets(line, (int)size, f))
		line[0] = 0;
	fclose(f);
	line[strcspn(line, "\n")] = 0;
	return line;
}

static bool is_zero(const struct key *k, const char *word)
{
	return k->zero && !strcmp(word, k->zero);
}

static int store_unsigned(const struct args *a, const struct key *k, const char *word, void *obj)
{
	uint64_t v = 0;

	if (!is_zero(k, word) && !args_number(word, k->min, k->max, &v))
		return refuse_value(a, k, word, "a number from %" PRId64 " to %" PRIu64 "%s%s", k->min, k->max,
				    k->zero ? ", or " : "", k->zero ? k->zero : "");
	store_number(k, obj, v);
	return 0;
}

static int store_signed(const struct args *a, const struct key *k, const char *word, void *obj)
{
	bool minus = *word == '-';
	uint64_t v;

	if (!args_number(word + minus, 0, minus ? (uint64_t)-k->min : k->max, &v))
		return refuse_value(a, k, word, "a number from %" PRId64 " to %" PRIu64, k->min, k->max);
	store_number(k, obj, minus ? -v : v);
	return 0;
}

static int store_string(const struct args *a, const struct key *k, const char *word, void *obj)
{
	size_t n = strlen(word);

	if (n < (uint64_t)k->min || n > k->max)
		return refuse_value(a, k, word, "%" PRId64 " to %" PRIu64 " characters", k->min, k->max);
	memcpy((char *)obj + k->offset, word, n + 1);
	return 0;
}

static int store_first_line(const struct args *a, const struct key *k, const char *word, void *obj)
{
	char line[256];

	if (!read_first_line(word, line, sizeof(line)))
		return args_error(a, "cannot read \"%s\" for \"%s\": %s", word, k->name, strerror(errno));
	return store_string(a, k, line, obj);
}

static int store_word(const struct args *a, const struct key *k, const char *word, void *obj)
{
	char allowed[256];
	size_t n = 0;

	for (int i = 0; k->words[i]; i++) {
		if (!strcmp(word, k->words[i])) {
			store_number(k, obj, i + k->min);
			return 0;
		}
		n += snprintf(allowed + n, sizeof(allowed) - n, "%s%s", n ? ", " : "one of ", k->words[i]);
	}
	return refuse_value(a, k, word, "%s", allowed);
}

static int store_bytes(const struct args *a, const struct key *k, const char *word, void *obj)
{
	uint64_t v;

	if (!parse_units(word, 1024, k->min, k->max, &v))
		return refuse_value(a, k, word, "a number of bytes, such as 1048576, 64M or 2G");
	store_number(k, obj, v);
	return 0;
}

static int store_count(const struct args *a, const struct key *k, const char *word, void *obj)
{
	uint64_t v = 0;

	if (!is_zero(k, word) && !parse_units(word, 1000, k->min, k->max, &v))
		return refuse_value(a, k, word, "a number, such as 346378, 25M or 1G%s%s", k->zero ? ", or " : "",
				    k->zero ? k->zero : "");
	store_number(k, obj, v);
	return 0;
}

static int store_share(const struct args *a, const struct key *k, const char *word, void *obj)
{
	double f;

	if (!parse_fraction(word, "%", 1.0, &f))
		return refuse_value(a, k, word, "a share from 0 to 1, such as 0.2 or 20%%");
	f = rint(f * 4294967296.0);
	store_number(k, obj, f > 4294967295.0 ? UINT32_MAX : (uint64_t)f);
	return 0;
}

static int store_ms(const struct args *a, const struct key *k, const char *word, void *obj)
{
	double f;

	if (!parse_fraction(word, "ms", (double)k->max, &f))
		return refuse_value(a, k, word, "0 to %" PRIu64 " milliseconds, such as 0.5 or 20", k->max);
	store_number(k, obj, (uint64_t)rint(f * 1000));
	return 0;
}

static int store_policy(const struct args *a, const struct key *k, const char *word, void *obj)
{
	struct saina_policy policy;
	struct saina_core_err err;

	if (saina_policy_parse(word, 0, &policy, &err))
		return args_error(a, "%s", err.text);
	saina_policy_to_attrs(&policy, (void *)((char *)obj + k->offset));
	return 0;
}

static int store_endpoint(const struct args *a, const struct key *k, const char *word, void *obj)
{
	if (!saina_endpoint_parse(word, (void *)((char *)obj + k->offset)))
		return refuse_value(a, k, word, SAINA_ENDPOINT_FORMS);
	return 0;
}

static int store_weights(const struct args *a, const struct key *k, const char *word, void *obj)
{
	if (!saina_weights_parse(word, (void *)((char *)obj + k->offset)))
		return refuse_value(a, k, word, SAINA_WEIGHTS_FORMS);
	return 0;
}

static int store_flag(const struct args *a, const struct key *k, const char *word, void *obj)
{
	store_number(k, obj, k->max);
	return 0;
}

int args_value(const struct args *a, const struct key *k, const char *word, void *obj, uint64_t *has)
{
	static int (*const store[])(const struct args *a, const struct key *k, const char *word, void *obj) = {
		[KEY_NUMBER] = store_unsigned, [KEY_S32] = store_signed, [KEY_STRING] = store_string,
		[KEY_WORD] = store_word, [KEY_BYTES] = store_bytes, [KEY_COUNT] = store_count,
		[KEY_FILE] = store_first_line, [KEY_SHARE] = store_share, [KEY_MS] = store_ms,
		[KEY_FLAG] = store_flag, [KEY_POLICY] = store_policy,
		[KEY_ENDPOINT] = store_endpoint, [KEY_WEIGHTS] = store_weights,
	};

	*has |= 1ull << k->attr;
	return store[k->kind](a, k, word, obj);
}

static void list_keys(char *text, size_t size, const struct key *keys, size_t n, const char *prefix)
{
	size_t len = 0;

	text[0] = 0;
	for (size_t i = 0; i < n; i++) {
		if (args_matches(prefix, keys[i].name) || !*prefix)
			len += snprintf(text + len, size - len, "%s%s", len ? ", " : "",
					keys[i].name);
	}
}

/* Explains the syntax for "workers=4" and "--elements 5", which other tools accept. */
static int refuse_key(const struct args *a, const struct key *keys, size_t n, const char *word)
{
	const char *name = word + strspn(word, "-"), *value = strchr(name, '=');
	size_t len = strcspn(name, "=");
	char names[512];

	for (size_t i = 0; i < n; i++)
		if (!strncmp(name, keys[i].name, len) && !keys[i].name[len])
			return args_error(a, "\"%s\": give it as two words: %s %s", word, keys[i].name,
					  value && value[1] ? value + 1 : "VALUE");
	if (args_not_option(a, word))
		return EXIT_USAGE;
	list_keys(names, sizeof(names), keys, n, "");
	return args_error(a, "unknown key \"%s\"; allowed: %s", word, names);
}

int args_keys(struct args *a, const struct key *keys, size_t n, void *obj, uint64_t *has)
{
	uint64_t given = 0;	/* one bit per index of @keys */
	const char *word, *value;
	char names[512];
	int ret;

	while ((word = args_next(a))) {
		const struct key *k = NULL;
		int hits = 0;

		for (size_t i = 0; i < n && (!k || strcmp(k->name, word)); i++) {
			if (args_matches(word, keys[i].name)) {
				k = &keys[i];
				hits++;
			}
		}
		if (k && !strcmp(k->name, word))
			hits = 1;
		if (!k)
			return refuse_key(a, keys, n, word);
		if (hits > 1) {
			list_keys(names, sizeof(names), keys, n, word);
			return args_error(a, "\"%s\" is ambiguous: %s", word, names);
		}
		if (given & (1ull << (k - keys)))
			return args_error(a, "\"%s\" is given twice", k->name);
		given |= 1ull << (k - keys);
		value = k->kind == KEY_FLAG ? "" : args_next(a);
		if (!value)
			return args_error(a, "\"%s\" needs a value", k->name);
		ret = args_value(a, k, value, obj, has);
		if (ret)
			return ret;
	}
	for (size_t i = 0; i < n; i++) {
		if (keys[i].required && !(given & (1ull << i)))
			return args_error(a, "\"%s\" is missing", keys[i].name);
	}
	return 0;
}

int args_set_keys(struct args *a, const struct key *keys, size_t n, void *obj, uint64_t *has)
{
	char names[512];

	if (args_peek(a))
		return args_keys(a, keys, n, obj, has);
	list_keys(names, sizeof(names), keys, n, "");
	return args_error(a, "nothing to set; allowed: %s", names);
}
