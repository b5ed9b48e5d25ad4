/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directory the agent lives in (one agent each, by a lock) and the place on
 * bpffs where the data path's objects are pinned.
 */
#ifndef AGENT_RUNTIME_H
#define AGENT_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/config.h"

/**
 * struct runtime
 * @cfg: names both places
 * @mounted: bpffs mounted here by us (or an earlier us)
 * @made: so was this directory made
 */
struct runtime {
	const struct config *cfg;
	int lock;
	char mounted[CONFIG_PATH_MAX];
	char made[CONFIG_PATH_MAX];
};

int runtime_init(struct runtime *r, const struct config *cfg);
/* @keep: all of it is left, for a take-over. */
void runtime_uninit(struct runtime *r, bool keep);
const char *runtime_path(const struct runtime *r, const char *name, char *buf, size_t size);

#endif /* AGENT_RUNTIME_H */
