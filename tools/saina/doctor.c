// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor - checks a host, or a worker's container, and prints what is wrong and how to fix
 * it.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <libconfig.h>
#include <netinet/in.h>

#include "doctor_check.h"

#define CONFIG_FILE "/etc/saina/sainad.conf"

/* Reads the agent's configuration, or its defaults. */
static void read_config(struct doc_state *s, const char *file)
{
	const char *v;
	config_t c;

	strcpy(s->bridge, "br0");
	strcpy(s->ovsdb, "/run/openvswitch/db.sock");
	strcpy(s->bpffs, "/sys/fs/bpf/saina");
	if (!file && access(CONFIG_FILE, R_OK))
		return;
	s->config = file ? file : CONFIG_FILE;
	config_init(&c);
	if (config_read_file(&c, s->config) != CONFIG_TRUE) {
		if (config_error_line(&c))
			doc_report(DOC_FAIL, "config", doc_fix("correct the file; to check it: sainad -c %s --check-config", s->config),
				   "%s:%d: %s", s->config, config_error_line(&c), config_error_text(&c));
		else
			doc_report(DOC_FAIL, "config", "name a file that can be read",
				   "%s cannot be read", s->config);
	} else {
		if (config_lookup_string(&c, "bridge", &v))
			snprintf(s->bridge, sizeof(s->bridge), "%s", v);
		if (config_lookup_string(&c, "ovsdb", &v))
			snprintf(s->ovsdb, sizeof(s->ovsdb), "%s",
				 !strncmp(v, "unix:", 5) ? v + 5 : v);
		if (config_lookup_string(&c, "bpffs", &v))
			snprintf(s->bpffs, sizeof(s->bpffs), "%s", v);
		doc_report(DOC_OK, "config", NULL, "%s: bridge %s", s->config, s->bridge);
	}
	config_destroy(&c);
}

struct host_args {
	__u64 has;
	char bridge[IFNAMSIZ];
	char ovsdb[108];
	char config[256];
};

static int doctor_host(const struct tool *t, struct args *a)
{
	static const struct key keys[] = {
		{ "bridge", KEY_STRING, 1, KEY(host_args, bridge), .min = 1, .max = IFNAMSIZ - 1 },
		{ "ovsdb", KEY_STRING, 2, KEY(host_args, ovsdb), .min = 1, .max = 107 },
		{ "config", KEY_STRING, 3, KEY(host_args, config), .min = 1, .max = 255 },
	};
	struct doc_state s = { .t = t };
	struct host_args h = { 0 };
	const char *path;
	int ret;

	ret = args_keys(a, keys, ARRAY_SIZE(keys), &h, (uint64_t *)&h.has);
	if (ret)
		return ret;
	out_begin(t->mode);
	read_config(&s, h.config[0] ? h.config : NULL);
	s.bridge_chosen = h.bridge[0];
	s.ovsdb_chosen = h.ovsdb[0];
	if (h.bridge[0])
		strcpy(s.bridge, h.bridge);
	if (h.ovsdb[0]) {
		path = !strncmp(h.ovsdb, "unix:", 5) ? h.ovsdb + 5 : h.ovsdb;
		snprintf(s.ovsdb, sizeof(s.ovsdb), "%.107s", path);
	}
	doc_host(&s);
	doc_bridge(&s);
	doc_uplink(&s);
	rpc_list_free(&s.jobs);
	rpc_list_free(&s.workers);
	rpc_list_free(&s.ports);
	saina_ctl_close(s.ctl);
	return doc_finish();
}

static bool resolve(const char *host, struct in_addr *addr)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *found;

	/* "10.1" and "300.1.1.1" are mistakes, not names */
	if (!host[strspn(host, "0123456789.xX")])
		return inet_pton(AF_INET, host, addr) == 1 && addr->s_addr;
	if (getaddrinfo(host, NULL, &hints, &found))
		return false;
	*addr = ((const struct sockaddr_in *)found->ai_addr)->sin_addr;
	freeaddrinfo(found);
	return addr->s_addr != 0;
}

static int doctor_worker(const struct tool *t, struct args *a)
{
	const char *word = args_next(a);
	struct in_addr to = { 0 };
	int ret;

	if (word) {
		if (strcmp(word, "to"))
			return args_error(a, "unknown key \"%s\"; allowed: to HOST", word);
		word = args_next(a);
		if (!word)
			return args_error(a, "\"to\" needs the aggregator's address or host name");
		if (!resolve(word, &to))
			return args_error(a, "\"%s\" is neither an IPv4 address, such as 192.0.2.1, nor a host name that has one",
					  word);
		ret = args_done(a);
		if (ret)
			return ret;
	}
	out_begin(t->mode);
	doc_worker(to.s_addr);
	return doc_finish();
}

int tool_doctor(const struct tool *t, struct args *a)
{
	static const struct tool_cmd cmds[] = {
		{ "host", doctor_host, "[bridge NAME] [ovsdb SOCKET] [config FILE]" },
		{ "worker", doctor_worker, "[to HOST]" },
	};

	return tool_dispatch(t, a, "doctor", cmds, ARRAY_SIZE(cmds));
}
