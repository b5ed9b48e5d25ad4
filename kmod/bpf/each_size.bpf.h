/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Includes the file that EACH_SIZE names once for each payload size, as ELEMS
 * (SAINA_ELEMS_LIST in saina/proto.h has the same); hence no include guard.
 */
#define ELEMS 64
#include EACH_SIZE
#undef ELEMS
#define ELEMS 128
#include EACH_SIZE
#undef ELEMS
#define ELEMS 256
#include EACH_SIZE
#undef ELEMS
#define ELEMS 352
#include EACH_SIZE
#undef ELEMS
#define ELEMS 1024
#include EACH_SIZE
#undef ELEMS
#define ELEMS 2048
#include EACH_SIZE
#undef ELEMS
