// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor: checks firewalls. A worker sends a multicast message to itself, as results arrive.
 * On the host the rules are read, because messages of the host to itself do not pass the bridge.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <jansson.h>

#include "doctor_check.h"

#define ANSWER_MS 1000

/* What the rules do with UDP to a port. */
enum input_rule {
	INPUT_UNKNOWN,
	INPUT_ACCEPTED,
	INPUT_DROPPED_BY_DEFAULT,	/* dropped, like everything that no rule accepts */
	INPUT_DROPPED,	/* by a rule that names the port */
};

static bool run_command(const char *command, char *text, size_t size)
{
	return !doc_run(command, text, size) && text[0];
}

/* Does @rule, as JSON, name @port and drop or reject?  Such a rule has a key of that name. */
static bool rule_drops(const char *rule, const char *port)
{
	return strstr(rule, port) && (strstr(rule, "\"drop\"") || strstr(rule, "\"reject\""));
}

static enum input_rule parse_nft(const char *text, const char *port)
{
	json_t *rules = json_loads(text, 0, NULL), *item;
	enum input_rule result = INPUT_ACCEPTED;
	size_t i;

	json_array_foreach(json_object_get(rules, "nftables"), i, item) {
		json_t *chain = json_object_get(item, "chain"), *rule = json_object_get(item, "rule");
		const char *hook = json_string_value(json_object_get(chain, "hook"));
		const char *policy = json_string_value(json_object_get(chain, "policy"));
		char *dump = rule ? json_dumps(rule, JSON_COMPACT) : NULL;

		if (dump && rule_drops(dump, port))
			result = INPUT_DROPPED;
		free(dump);
		if (hook && policy && !strcmp(hook, "input") && !strcmp(policy, "drop") &&
		    result == INPUT_ACCEPTED && !strstr(text, port))
			result = INPUT_DROPPED_BY_DEFAULT;
	}
	json_decref(rules);
	return result;
}

static bool line_drops(const char *line)
{
	return strstr(line, "-j DROP") || strstr(line, "-j REJECT");
}

static enum input_rule parse_iptables(char *text, const char *port)
{
	bool drops = false;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strstr(line, port) && line_drops(line))
			return INPUT_DROPPED;
		/* the first rule that names the port decides */
		if (strstr(line, port))
			return INPUT_ACCEPTED;
		drops |= strstr(line, "-P INPUT DROP") || (line_drops(line) && !strstr(line, "--dport"));
	}
	return drops ? INPUT_DROPPED_BY_DEFAULT : INPUT_ACCEPTED;
}

static enum input_rule read_rules(const char *port)
{
	static char text[1 << 20];

	if (run_command("nft -j list ruleset 2>/dev/null", text, sizeof(text)))
		return parse_nft(text, port);
	if (run_command("iptables -S INPUT 2>/dev/null", text, sizeof(text)))
		return parse_iptables(text, port);
	return INPUT_UNKNOWN;
}

static const char *allow_port(unsigned int port)
{
	return doc_fix("allow UDP port %u: iptables -I INPUT -p udp --dport %u -j ACCEPT (or the same in nft)",
		       port, port);
}

void doc_firewall_host(void)
{
	const unsigned int port = SAINA_PORT_CTRL;
	char number[16];

	snprintf(number, sizeof(number), "%u", port);
	switch (read_rules(number)) {
	case INPUT_UNKNOWN:
		doc_report(DOC_SKIP, "firewall", NULL, "the rules cannot be read: neither nft nor iptables is installed, or this user may not read them");
		break;
	case INPUT_ACCEPTED:
		doc_report(DOC_OK, "firewall", NULL,
			   "no rule seems to block UDP port %u (joins and heartbeats)", port);
		break;
	case INPUT_DROPPED_BY_DEFAULT:
		doc_report(DOC_WARN, "firewall", allow_port(port),
			   "input is dropped by default and no rule names UDP port %u (joins and heartbeats)",
			   port);
		break;
	case INPUT_DROPPED:
		doc_report(DOC_FAIL, "firewall", allow_port(port),
			   "a rule drops or rejects UDP port %u (joins and heartbeats): no worker can join",
			   port);
		break;
	}
}

/* Opens a socket on @l for results of the job with the largest id, which is unlikely to exist. */
static int open_listener(const struct link *l, struct sockaddr_in *group)
{
	struct ip_mreqn m = { .imr_multiaddr = group->sin_addr, .imr_ifindex = l->ifindex };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
			bind(fd, (void *)group, sizeof(*group)) ||
			setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m)))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Sends a message that loops back to @l. Its TTL is 0, so it does not leave the host. */
static int send_to_self(const struct link *l, const struct sockaddr_in *group)
{
	struct ip_mreqn m = { .imr_ifindex = l->ifindex };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), zero = 0, ret = 0;

	if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof(m)) ||
	    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &zero, sizeof(zero)) ||
	    sendto(fd, &zero, 1, 0, (const void *)group, sizeof(*group)) != 1)
		ret = -errno;
	if (fd >= 0)
		close(fd);
	return ret;
}

void doc_firewall_worker(const struct link *l)
{
	struct sockaddr_in group = {
		.sin_family = AF_INET,
		.sin_port = htons(SAINA_PORT_RESULT),
		.sin_addr.s_addr = htonl(SAINA_GROUP_BASE | (SAINA_JOBS_MAX - 1)),
	};
	struct pollfd p = { .fd = open_listener(l, &group), .events = POLLIN };
	int ret = p.fd < 0 ? -errno : send_to_self(l, &group);

	if (ret)
		doc_report(DOC_SKIP, "firewall", NULL, "%s: cannot send a multicast message to this host itself: %s",
			   l->name, strerror(-ret));
	else if (poll(&p, 1, ANSWER_MS) > 0)
		doc_report(DOC_OK, "firewall", NULL, "%s: multicast to UDP port %d (results) is accepted", l->name,
			   SAINA_PORT_RESULT);
	else
		doc_report(DOC_FAIL, "firewall", allow_port(SAINA_PORT_RESULT),
			   "%s: a firewall here drops multicast to UDP port %d: results take the slow path", l->name,
			   SAINA_PORT_RESULT);
	if (p.fd >= 0)
		close(p.fd);
}
