/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The runtime directory, locked by one agent, and the directory on bpffs where the data
 * path's objects are pinned.
 */
#ifndef AGENT_RUNTIME_H
#define AGENT_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/config.h"

/**
 * struct runtime
 * @cfg: names both directories
 * @mounted: where this or an earlier agent has mounted a bpffs
 * @made: directory that this or an earlier agent has made
 */
struct runtime {
	const struct config *cfg;
	int lock, pin_lock;
	char mounted[CONFIG_PATH_MAX];
	char made[CONFIG_PATH_MAX];
};

int runtime_init(struct runtime *r, const struct config *cfg);
/* Removes what agents made and what is empty.  @keep: removes nothing, for a take-over. */
void runtime_uninit(struct runtime *r, bool keep);
const char *runtime_path(const struct runtime *r, const char *name, char *buf, size_t size);

#endif /* AGENT_RUNTIME_H */
