/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output: one call per value prints it as text or JSON, so that the two cannot differ. In text,
 * @fmt formats the value ("name %s "); in JSON, @key names it. A NULL @fmt omits the value in text,
 * a NULL @key in JSON.
 */
#ifndef SAINA_PRINT_H
#define SAINA_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/types.h>

enum out_mode {
	OUT_TEXT,
	OUT_JSON,
	OUT_PRETTY,	/* JSON, indented */
};

void out_begin(enum out_mode mode);	/* starts a document; in JSON, an array of objects */
int out_end(void);			/* prints the rest; negative errno if a write failed */
int out_finish(int ret);		/* out_end() unless @ret is an error; returns the exit status */
bool out_is_json(void);

/* Starts a stream: each object is printed when it is closed, on a line of its own. */
void out_stream(enum out_mode mode);

void out_open(const char *key);		/* starts an object; @key: NULL in the document */
void out_close(void);
void out_array(const char *key);	/* starts an array within an object */
void out_array_end(void);

/* Text without a value; nothing in JSON. */
void out_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* @fmt has one conversion: %s for strings, ids and units; PRIu64, PRId64 or %f for numbers. */
void out_str(const char *key, const char *fmt, const char *value);
void out_uint(const char *key, const char *fmt, uint64_t value);
void out_int(const char *key, const char *fmt, int64_t value);
void out_float(const char *key, const char *fmt, double value);
/* In text, prints @fmt, which has no conversion, if @value is true. */
void out_flag(const char *key, const char *fmt, bool value);
/* A number with a unit in text: bytes as "12.3 MiB", microseconds as "4.5 ms". */
void out_bytes(const char *key, const char *fmt, uint64_t value);
void out_usec(const char *key, const char *fmt, uint64_t value);
/* Set of worker ids: text "0-3,7", JSON [0,1,2,3,7]. */
void out_ids(const char *key, const char *fmt, uint64_t mask);
/* An absent value: null in JSON; in text, @fmt, which has no conversion. */
void out_null(const char *key, const char *fmt);

#endif /* SAINA_PRINT_H */
