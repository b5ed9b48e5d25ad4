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

static int refuse_value(const struct args *a, const struct key *k, const char *word, const char *allowed)
{
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

static int parse_value(const struct args *a, const struct key *k, const char *word, void *obj)
{
	struct saina_policy policy;
	struct saina_core_err err;
	char allowed[256], line[256];
	const char *path;
	size_t n = 0;
	uint64_t v;
	double f;

	switch (k->kind) {
	case KEY_S32: {
		bool minus = *word == '-';

		if (!args_number(word + minus, 0, minus ? (uint64_t)-k->min : k->max, &v)) {
			snprintf(allowed, sizeof(allowed), "a number from %" PRId64 " to %" PRIu64,
				 k->min, k->max);
			return refuse_value(a, k, word, allowed);
		}
		store_number(k, obj, minus ? -v : v);
		return 0;
	}
	case KEY_FILE:
		path = word;
		word = read_first_line(path, line, sizeof(line));
		if (!word)
			return args_error(a, "cannot read \"%s\" for \"%s\": %s", path, k->name,
					  strerror(errno));
		/* fall through */
	case KEY_STRING:
		n = strlen(word);
		if (n < (uint64_t)k->min || n > k->max) {
			snprintf(allowed, sizeof(allowed), "%" PRId64 " to %" PRIu64 " characters",
				 k->min, k->max);
			return refuse_value(a, k, word, allowed);
		}
		memcpy((char *)obj + k->offset, word, n + 1);
		return 0;
	case KEY_WORD:
		for (int i = 0; k->words[i]; i++) {
			if (k->words[i][0] && !strcmp(word, k->words[i])) {
				store_number(k, obj, i + k->min);
				return 0;
			}
			if (k->words[i][0])
				n += snprintf(allowed + n, sizeof(allowed) - n, "%s%s",
					      n ? ", " : "one of ", k->words[i]);
		}
		return refuse_value(a, k, word, allowed);
	case KEY_BYTES:
		if (!parse_units(word, 1024, k->min, k->max, &v))
			return refuse_value(a, k, word, "a number of bytes, such as 1048576, 64M or 2G");
		store_number(k, obj, v);
		return 0;
	case KEY_COUNT:
		v = 0;
		if (!(k->zero && !strcmp(word, k->zero)) &&
		    !parse_units(word, 1000, k->min, k->max, &v)) {
			snprintf(allowed, sizeof(allowed), "a number, such as 346378, 25M or 1G%s%s",
				 k->zero ? ", or " : "", k->zero ? k->zero : "");
			return refuse_value(a, k, word, allowed);
		}
		store_number(k, obj, v);
		return 0;
	case KEY_POLICY:
		if (saina_policy_parse(word, 0, &policy, &err))
			return args_error(a, "%s", err.text);
		saina_policy_to_attrs(&policy, (void *)((char *)obj + k->offset));
		return 0;
	case KEY_SHARE:
		if (!parse_fraction(word, "%", 1.0, &f))
			return refuse_value(a, k, word, "a share from 0 to 1, such as 0.2 or 20%");
		f = rint(f * 4294967296.0);
		store_number(k, obj, f > 4294967295.0 ? UINT32_MAX : (uint64_t)f);
		return 0;
	case KEY_MS:
		if (!parse_fraction(word, "ms", (double)k->max, &f)) {
			snprintf(allowed, sizeof(allowed), "0 to %" PRIu64 " milliseconds, such as 0.5 or 20",
				 k->max);
			return refuse_value(a, k, word, allowed);
		}
		store_number(k, obj, (uint64_t)rint(f * 1000));
		return 0;
	default:
		if (k->zero && !strcmp(word, k->zero)) {
			v = 0;
		} else if (!args_number(word, k->min, k->max, &v)) {
			snprintf(allowed, sizeof(allowed), "a number from %" PRId64 " to %" PRIu64 "%s%s",
				 k->min, k->max, k->zero ? ", or " : "", k->zero ? k->zero : "");
			return refuse_value(a, k, word, allowed);
		}
		store_number(k, obj, v);
		return 0;
	}
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
		if (k->kind == KEY_FLAG) {
			store_number(k, obj, k->max);
		} else {
			value = args_next(a);
			if (!value)
				return args_error(a, "\"%s\" needs a value", k->name);
			ret = parse_value(a, k, value, obj);
			if (ret)
				return ret;
		}
		*has |= 1ull << k->attr;
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
