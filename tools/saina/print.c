// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Output: text goes to stdout at once, JSON into a tree that is printed at the end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "print.h"

#define DEPTH_MAX 8

static struct {
	enum out_mode mode;
	bool stream;
	int depth;
	json_t *at[DEPTH_MAX];	/* at[0]: the document, then the open objects and arrays */
} out;

/* The compiler cannot check the callers' formats; the tests of the text output do. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void die_no_memory(void)
{
	fputs("saina: out of memory\n", stderr);
	exit(1);
}

static json_t *check_alloc(json_t *j)
{
	if (!j)
		die_no_memory();
	return j;
}

bool out_is_json(void)
{
	return out.mode != OUT_TEXT;
}

void out_begin(enum out_mode mode)
{
	out.mode = mode;
	out.stream = false;
	out.depth = 0;
	out.at[0] = out_is_json() ? check_alloc(json_array()) : NULL;
}

void out_stream(enum out_mode mode)
{
	out_begin(mode);
	out.stream = true;
}

static void dump_json(const json_t *j)
{
	json_dumpf(j, stdout, out.mode == OUT_PRETTY ? JSON_INDENT(2) : JSON_COMPACT);
	putchar('\n');
}

int out_end(void)
{
	if (out_is_json()) {
		if (!out.stream)
			dump_json(out.at[0]);
		json_decref(out.at[0]);
	}
	out.at[0] = NULL;
	if (fflush(stdout) || ferror(stdout))
		return -(errno ? errno : EIO);
	return 0;
}

int out_finish(int ret)
{
	return ret ?: out_end() ? EXIT_FAILURE : 0;
}

/* Takes the reference to @j; @key is ignored within arrays. */
static void add_json(const char *key, json_t *j)
{
	json_t *at = out.at[out.depth];
	int ret;

	check_alloc(j);
	if (json_is_array(at))
		ret = json_array_append_new(at, j);
	else
		ret = json_object_set_new(at, key, j);
	if (ret)
		die_no_memory();
}

static void push_json(const char *key, json_t *j)
{
	add_json(key, j);
	if (++out.depth >= DEPTH_MAX)
		abort();
	out.at[out.depth] = j;
}

void out_open(const char *key)
{
	if (out_is_json())
		push_json(key, json_object());
}

void out_close(void)
{
	if (!out_is_json()) {
		if (out.stream)
			fflush(stdout);
		return;
	}
	out.depth--;
	if (out.stream && !out.depth) {
		dump_json(json_array_get(out.at[0], 0));
		json_array_clear(out.at[0]);
		fflush(stdout);
	}
}

void out_array(const char *key)
{
	if (out_is_json())
		push_json(key, json_array());
}

void out_array_end(void)
{
	if (out_is_json())
		out.depth--;
}

void out_text(const char *fmt, ...)
{
	va_list ap;

	if (out_is_json())
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
}

#define EMIT(json, ...)						\
	do {							\
		if (out_is_json()) {				\
			if (key || json_is_array(out.at[out.depth])) \
				add_json(key, json);			\
		} else if (fmt) {				\
			printf(fmt, __VA_ARGS__);		\
		}						\
	} while (0)

void out_str(const char *key, const char *fmt, const char *value)
{
	EMIT(json_string(value), value);
}

void out_uint(const char *key, const char *fmt, uint64_t value)
{
	/* jansson's integers are signed; no counter gets to 2^63 */
	EMIT(json_integer(value > INT64_MAX ? INT64_MAX : (int64_t)value), value);
}

void out_int(const char *key, const char *fmt, int64_t value)
{
	EMIT(json_integer(value), value);
}

void out_float(const char *key, const char *fmt, double value)
{
	EMIT(json_real(value), value);
}

void out_flag(const char *key, const char *fmt, bool value)
{
	if (out_is_json()) {
		if (key)
			add_json(key, json_boolean(value));
	} else if (fmt && value) {
		fputs(fmt, stdout);
	}
}

void out_null(const char *key, const char *fmt)
{
	if (out_is_json())
		add_json(key, json_null());
	else if (fmt)
		fputs(fmt, stdout);
}

void out_bytes(const char *key, const char *fmt, uint64_t value)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = (double)value;
	char text[32];
	int u = 0;

	for (; v >= 1024 && u < 4; u++)
		v /= 1024;
	snprintf(text, sizeof(text), u && v < 100 ? "%.1f %s" : "%.0f %s", v, unit[u]);
	EMIT(json_integer(value > INT64_MAX ? INT64_MAX : (int64_t)value), text);
}

void out_usec(const char *key, const char *fmt, uint64_t value)
{
	char text[32];

	if (value < 1000)
		snprintf(text, sizeof(text), "%" PRIu64 " us", value);
	else if (value < 1000000)
		snprintf(text, sizeof(text), "%.1f ms", (double)value / 1e3);
	else
		snprintf(text, sizeof(text), "%.1f s", (double)value / 1e6);
	EMIT(json_integer(value > INT64_MAX ? INT64_MAX : (int64_t)value), text);
}

void out_ids(const char *key, const char *fmt, uint64_t mask)
{
	char text[256] = "-";
	size_t n = 0;

	if (out_is_json()) {
		out_array(key);
		for (int i = 0; i < 64; i++) {
			if (mask & (1ull << i))
				out_uint(NULL, NULL, i);
		}
		out_array_end();
		return;
	}
	if (!fmt)
		return;
	for (int i = 0; i < 64; i++) {
		int j = i;

		if (!(mask & (1ull << i)))
			continue;
		while (j < 63 && mask & (1ull << (j + 1)))
			j++;
		/* at most 32 ranges of at most 6 characters: fits */
		n += snprintf(text + n, sizeof(text) - n, j > i ? "%s%d-%d" : "%s%d",
			      n ? "," : "", i, j);
		i = j;
	}
	printf(fmt, text);
}
