/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What workers produce, as integers. */
#ifndef CONTENTS_H
#define CONTENTS_H

#include "verify_state.h"

/* What worker @w produces in round @r at place @i; float32: in 1/1024. */
int32_t verify_fresh(const struct verify *v, unsigned int w, uint32_t r, uint64_t i);

#endif /* CONTENTS_H */
