/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The attributes of the configuration interface as plain structures, one for each
 * attribute set of Documentation/netlink/specs/saina.yaml, and the tables that carry
 * them to and from messages.  Job core, module, agent and tool use the same ones.
 */
#ifndef _SAINA_CORE_ATTRS_H
#define _SAINA_CORE_ATTRS_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#else
#include <stddef.h>
#endif
#include "saina/bpf.h"
#include "linux/saina.h"

/* Which attributes are there: bit SAINA_A_<SET>_<ATTRIBUTE> of the member @has. */
#define SAINA_HAS(attrs, attr)	(!!((attrs)->has & (1ull << (attr))))
#define SAINA_SET(attrs, attr)	((attrs)->has |= 1ull << (attr))
#define SAINA_PUT(attrs, attr, member, value)	\
	do {					\
		(attrs)->member = (value);	\
		SAINA_SET(attrs, attr);		\
	} while (0)
#define SAINA_PUT_TEXT(attrs, attr, member, value)					\
	do {										\
		snprintf((attrs)->member, sizeof((attrs)->member), "%s", value);	\
		SAINA_SET(attrs, attr);							\
	} while (0)

enum saina_attr_kind {
	/* signed and big-endian, too */
	SAINA_ATTR_U8, SAINA_ATTR_U16, SAINA_ATTR_U32, SAINA_ATTR_U64,
	SAINA_ATTR_STRING,	/* at most size - 1 characters */
	SAINA_ATTR_BYTES,	/* exactly size bytes */
	SAINA_ATTR_WORDS,	/* u64s, as many as both sides know */
	SAINA_ATTR_NEST,
};

struct saina_attr_class;

/**
 * struct saina_attr - an attribute and its place
 * @name: as in the spec
 * @nest: attribute set of a nest
 * @number: SAINA_A_*
 * @kind: enum saina_attr_kind
 * @offset: of the member, in bytes
 * @size: of the member, in bytes
 * @min: least value of an enumeration
 * @max: its greatest value; 0: any number
 * @mask: bits that flags can have; 0: no flags
 */
struct saina_attr {
	const char *name;
	const struct saina_attr_class *nest;
	__u16 number;
	__u16 kind;
	__u16 offset;
	__u16 size;
	__u8 min;
	__u8 max;
	__u8 mask;
};

/**
 * struct saina_attr_class - an attribute set
 * @name: as in the spec
 * @attrs: its rows, without padding
 * @n: number of rows
 * @size: of struct saina_<name>_attrs, which begins with __u64 has
 * @pad: attribute that aligns 64-bit ones, 0: none
 */
struct saina_attr_class {
	const char *name;
	const struct saina_attr *attrs;
	__u16 n;
	__u16 size;
	__u16 pad;
};

#define SAINA_OP_DO	0x1	/* can be asked for without NLM_F_DUMP */
#define SAINA_OP_DUMP	0x2	/* ... and with */
#define SAINA_OP_ADMIN	0x4	/* changes something */

/**
 * struct saina_op - an operation or a notification
 * @name: as in the spec
 * @class: attribute set of its messages
 * @do_takes: attributes of its requests without NLM_F_DUMP
 * @dump_takes: attributes of those with it
 * @flags: SAINA_OP_*; 0: a notification
 */
struct saina_op {
	const char *name;
	const struct saina_attr_class *class;
	__u64 do_takes;
	__u64 dump_takes;
	unsigned int flags;
};

#include "core/attrs_gen.h"

/* The name that @value has in the array @names of attrs_gen.h; "unknown": none. */
#define SAINA_ENUM_NAME(names, value)						\
	((__u64)(value) < sizeof(names) / sizeof((names)[0]) && (names)[value] ?	\
		 (names)[value] : "unknown")

#endif /* _SAINA_CORE_ATTRS_H */
