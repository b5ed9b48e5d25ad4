// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The commands of an object: runs the one that the command line names, or lists them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

int tool_dispatch(const struct tool *t, struct args *a, const char *object,
		  const struct tool_cmd *cmds, size_t n)
{
	const char *word = args_next(a);
	char names[256], cmd[64];
	size_t len = 0;
	int i = 0;

	if (word && !strcmp(word, "help")) {
		printf("Usage:\n");
		for (size_t j = 0; j < n; j++) {
			if (cmds[j].help)
				printf("  saina %s %s%s%s\n", object, cmds[j].name,
				       *cmds[j].help ? " " : "", cmds[j].help);
		}
		return fflush(stdout) ? EXIT_FAILURE : 0;
	}
	if (word)
		i = args_table(word, cmds, n, sizeof(*cmds));
	if (i < 0) {
		for (size_t j = 0; j < n; j++)
			if (cmds[j].help)
				len += snprintf(names + len, sizeof(names) - len, "%s%s",
						len ? ", " : "", cmds[j].name);
		return args_error(a, "unknown command \"%s\"; allowed: %s, help", word, names);
	}
	snprintf(cmd, sizeof(cmd), "%s %s", object, cmds[i].name);
	a->cmd = cmd;
	i = cmds[i].fn(t, a);
	a->cmd = object;	/* @cmd goes out of scope */
	return i;
}
