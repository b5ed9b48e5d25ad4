// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina bench - what an all-reduce costs on the agent's bridge: asks the agent for its bridge, and
 * executes bench/host.py, which is in the folder of the BPF objects.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

#define WORDS_MAX 64

/* Finds the folder of bench/: that of this program, or ../lib/saina from there. */
static bool find_folder(const char *exe, char *folder, size_t size)
{
	static const char *const places[] = { "", "/../lib/saina" };
	char copy[PATH_MAX / 2], host[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", exe);
	dirname(copy);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(folder, size, "%s%s", copy, places[i]);
		snprintf(host, sizeof(host), "%s/bench/host.py", folder);
		if (!access(host, R_OK))
			return true;
	}
	return false;
}

/* Asks the agent for its bridge; on failure prints why and returns false. */
static bool ask_agent(const struct tool *t, struct saina_limits_attrs *l, char *control, size_t size)
{
	struct saina_ctl *ctl = connect_agent(t);
	int ret;

	if (!ctl)
		return false;
	ret = limits_of(ctl, l);
	snprintf(control, size, "%s", saina_ctl_peer(ctl));
	if (ret || !SAINA_HAS(l, SAINA_A_LIMITS_BRIDGE))
		fprintf(stderr, "saina: bench: sainad at %s does not say which bridge it has: %s\n", control,
			ret ? saina_ctl_error(ctl) : "restart sainad (sainad and saina must have the same version)");
	saina_ctl_close(ctl);
	return !ret && SAINA_HAS(l, SAINA_A_LIMITS_BRIDGE);
}

/*
 * The peers are packages of the system, for its interpreter: the first python3 of PATH may be that of a
 * virtual environment or of pyenv, which has none of them.
 */
static void run_python(char **argv)
{
	static const char *const places[] = { "/usr/bin/python3", "python3" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		argv[0] = (char *)places[i];
		execvp(argv[0], argv);
	}
}

int tool_bench(const struct tool *t, struct args *a)
{
	const char *argv[WORDS_MAX + 16] = { NULL };
	char exe[PATH_MAX / 2], folder[PATH_MAX - 32], host[PATH_MAX], control[PATH_MAX] = "";
	struct saina_limits_attrs l = { 0 };
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	const char *word = args_peek(a);
	bool help = word && (!strcmp(word, "help") || !strcmp(word, "-h") || !strcmp(word, "--help"));
	int n = 2;

	exe[len > 0 ? len : 0] = 0;
	if (!find_folder(exe, folder, sizeof(folder))) {
		fprintf(stderr, "saina: bench: bench/host.py is neither beside %s nor in ../lib/saina: run `make install'\n",
			exe);
		return EXIT_FAILURE;
	}
	if (a->argc > WORDS_MAX)
		return args_error(a, "too many arguments: at most %d", WORDS_MAX);
	if (!help && !ask_agent(t, &l, control, sizeof(control)))
		return EXIT_FAILURE;
	snprintf(host, sizeof(host), "%s/bench/host.py", folder);
	argv[1] = host;
	argv[n++] = "--tool";
	argv[n++] = exe;
	argv[n++] = "--control";
	argv[n++] = control;
	argv[n++] = "--bridge";
	argv[n++] = l.bridge;
	if (SAINA_HAS(&l, SAINA_A_LIMITS_OVSDB)) {
		argv[n++] = "--ovsdb";
		argv[n++] = l.ovsdb;
	}
	if (t->mode != OUT_TEXT)
		argv[n++] = t->mode == OUT_JSON ? "--json" : "--pretty";
	while (args_peek(a))
		argv[n++] = args_next(a);
	setenv("SAINA_BUILD", folder, 1);
	run_python((char **)argv);
	fprintf(stderr, "saina: bench: python3: %s; apt install python3\n", strerror(errno));
	return EXIT_FAILURE;
}
