/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SAINA_BENCH_LOOKUP_H
#define SAINA_BENCH_LOOKUP_H

#include "args.h"

/* bench-datapath --lookup; returns the exit status. */
int lookup_run(const struct bench_args *args);

#endif /* SAINA_BENCH_LOOKUP_H */
