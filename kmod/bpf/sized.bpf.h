/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names of what exists once for each payload size, for files that each_size.bpf.h includes with
 * ELEMS; with ELEMS_HALVED for messages of bfloat16, whose sums are float32.
 */
#ifndef SAINA_SIZED_BPF_H
#define SAINA_SIZED_BPF_H

#include "maps.bpf.h"

#define CAT_(a, b)	a##b
#define CAT(a, b)	CAT_(a, b)
#define SLOT		CAT(saina_slot_, ELEMS)
#define HOT		CAT(saina_hot_, ELEMS)
#define RING		CAT(saina_ring_, ELEMS)
#define VIEW		CAT(saina_view_, ELEMS)
#define INPUT		CAT(saina_input_, ELEMS)

#define SHM_HEAD_LEN	64	/* bytes before a payload: where shared memory has a head */

/* buffer: a payload and the bytes before it, which are not read in a frame. */
#define SIZED_DECL(name, words)				\
struct payload_##name {					\
	__s32	v[words];				\
};							\
struct buffer_##name {					\
	struct saina_input_head input;			\
	__s32	v[words];				\
};							\
SAINA_ASSERT(offsetof(struct buffer_##name, v) == SHM_HEAD_LEN, "SHM_HEAD_LEN");
#define SIZED_DECLS(E)	SIZED_DECL(E, E) SIZED_DECL(half_##E, E / 2)
SAINA_ELEMS_LIST(SIZED_DECLS)

#endif /* SAINA_SIZED_BPF_H */
