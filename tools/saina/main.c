// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina - shows and changes everything about the aggregator, in the manner of
 * ip(8): options, then an object, then a command.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

enum { OPT_SHOW_TOKENS = 256 };

static const struct {
	const char *name;
	int (*fn)(const struct tool *t, struct args *a);
	const char *description;
} objects[] = {
	/* an abbreviation means the first match */
	{ "job",	tool_job,	"jobs: add, change, remove, show" },
	{ "worker",	tool_worker,	"workers of jobs: show, change, remove" },
	{ "port",	tool_port,	"ports of the bridge, and faults injected there" },
	{ "policy",	tool_policy,	"policies of jobs: set, schedule, cancel, control" },
	{ "slot",	tool_slot,	"open slots, and the workers that they wait for" },
	{ "stats",	tool_stats,	"counters, per job and worker" },
	{ "limits",	tool_limits,	"limits on the number of jobs and on memory" },
	{ "monitor",	tool_monitor,	"changes and events as they happen" },
	{ "top",	tool_top,	"live view of jobs and workers, on a terminal" },
	{ "bench",	tool_bench,	"what an all-reduce costs on this bridge, compared with Gloo and MPI" },
	{ "doctor",	tool_doctor,	"what is wrong with this host and how to fix it" },
};

static const char objects_list[] = "job, worker, port, policy, slot, stats, limits, monitor, top, bench, doctor";

static void usage(FILE *to)
{
	fprintf(to, "Usage: saina [OPTION...] OBJECT [COMMAND [ARGUMENT...]]\n\nObjects:\n");
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++)
		fprintf(to, "  %-10s%s\n", objects[i].name, objects[i].description);
	fprintf(to,
		"\nOptions:\n"
		"  -j, --json           JSON instead of text\n"
		"  -p, --pretty         JSON, indented\n"
		"  -s, --socket PATH    control socket of sainad, or \"kernel\" for saina.ko\n"
		"                       (default: $SAINA_CONTROL, else saina.ko or sainad, whichever runs)\n"
		"  -n, --netns NETNS    work in this network namespace, a name of ip-netns(8) or a path;\n"
		"                       with saina.ko each namespace has its own jobs\n"
		"  --show-tokens        print the tokens of jobs instead of \"(hidden)\"\n"
		"  -V, --version        print the version\n"
		"  -h, --help           print this help\n"
		"\n\"saina OBJECT help\" lists the commands of an object.  Objects and commands\n"
		"can be abbreviated.  See saina(8).\n");
}

static int enter_netns(const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), strchr(name, '/') ? "%s" : "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET)) {
		fprintf(stderr, "saina: network namespace %s: %s%s\n", path, strerror(errno),
			errno == ENOENT ? "; `ip netns' lists the namespaces" :
			errno == EINVAL ? "; this is not a network namespace" :
			errno == EPERM	? "; run this as root" : "");
		return EXIT_FAILURE;
	}
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "pretty", no_argument, NULL, 'p' },
		{ "socket", required_argument, NULL, 's' },
		{ "netns", required_argument, NULL, 'n' },
		{ "show-tokens", no_argument, NULL, OPT_SHOW_TOKENS },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct tool t = { .mode = OUT_TEXT };
	const char *netns = NULL;
	struct args a;
	int c, i;

	opterr = 0;	/* the messages are below */
	while ((c = getopt_long(argc, argv, "+:jps:n:Vh", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			if (t.mode == OUT_TEXT)
				t.mode = OUT_JSON;
			break;
		case 'p':
			t.mode = OUT_PRETTY;
			break;
		case 's':
			t.socket = optarg;
			break;
		case 'n':
			netns = optarg;
			break;
		case OPT_SHOW_TOKENS:
			t.show_tokens = true;
			break;
		case 'V':
			printf("saina %s\n", SAINA_VERSION);
			return fflush(stdout) ? EXIT_FAILURE : 0;
		case 'h':
			usage(stdout);
			return fflush(stdout) ? EXIT_FAILURE : 0;
		case ':':
			fprintf(stderr, "saina: option \"%s\" needs a value\n", argv[optind - 1]);
			return EXIT_USAGE;
		default:
			if (optopt && optopt < 128)
				fprintf(stderr, "saina: unknown option \"-%c\"", optopt);
			else
				fprintf(stderr, "saina: unknown option \"%s\"",
					argv[optind - 1]);
			fprintf(stderr, "; allowed: -j, -p, -s PATH, -n NETNS, --show-tokens, -V, -h\n");
			return EXIT_USAGE;
		}
	}
	argc -= optind;
	argv += optind;
	if (!argc) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[0], "help")) {
		usage(stdout);
		return fflush(stdout) ? EXIT_FAILURE : 0;
	}
	i = args_table(argv[0], objects, ARRAY_SIZE(objects), sizeof(objects[0]));
	if (i < 0) {
		fprintf(stderr, "saina: unknown object \"%s\"; allowed: %s\n", argv[0], objects_list);
		return EXIT_USAGE;
	}
	if (netns && enter_netns(netns))
		return EXIT_FAILURE;
	a = (struct args){ argc - 1, argv + 1, objects[i].name };
	return objects[i].fn(&t, &a);
}
