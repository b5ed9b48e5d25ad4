// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor: a bridge of Open vSwitch, asked from its database (JSON-RPC on
 * a unix socket, RFC 7047), and the threads of its daemon.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <jansson.h>

#include "doctor.h"

#define ANSWER_MAX (16 << 20)
#define ANSWER_MS 3000

static int db_connect(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	strcpy(sun.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (void *)&sun, sizeof(sun))) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/* The answer to one request: JSON texts are not framed, so read until it parses. */
static json_t *db_ask(int fd, const char *request)
{
	size_t n = 0, room = 65536;
	char *buf = malloc(room), *more;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	json_t *answer = NULL;
	ssize_t got;

	if (!buf || send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
		goto out;
	while (!answer && n < ANSWER_MAX && poll(&p, 1, ANSWER_MS) > 0) {
		if (room - n < 4096) {
			more = realloc(buf, room *= 2);
			if (!more)
				goto out;
			buf = more;
		}
		got = recv(fd, buf + n, room - n, 0);
		if (got <= 0)
			break;
		n += got;
		if (buf[n - 1] == '}' || isspace((unsigned char)buf[n - 1]))
			answer = json_loadb(buf, n, JSON_DISABLE_EOF_CHECK, NULL);
	}
out:
	free(buf);
	return answer;
}

/* A column that holds a set: one element stands for itself. */
static bool in_set(json_t *set, const char *uuid)
{
	json_t *items, *item;
	size_t i;

	if (!strcmp(json_string_value(json_array_get(set, 0)) ?: "", "set")) {
		items = json_array_get(set, 1);
		json_array_foreach(items, i, item) {
			if (!strcmp(json_string_value(json_array_get(item, 1)) ?: "", uuid))
				return true;
		}
		return false;
	}
	return !strcmp(json_string_value(json_array_get(set, 1)) ?: "", uuid);
}

static const char *uuid_of(json_t *row)
{
	return json_string_value(json_array_get(json_object_get(row, "_uuid"), 1)) ?: "";
}

static json_t *rows(json_t *answer, int op)
{
	return json_object_get(json_array_get(json_object_get(answer, "result"), op), "rows");
}

static void interface_add(struct doc_ovs *o, json_t *row)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	const char *type = json_string_value(json_object_get(row, "type"));
	const char *error = json_string_value(json_object_get(row, "error"));

	if (!name || o->n >= (int)ARRAY_SIZE(o->port))
		return;
	snprintf(o->port[o->n], sizeof(o->port[0]), "%s", name);
	snprintf(o->port_type[o->n], sizeof(o->port_type[0]), "%s", type ?: "");
	snprintf(o->port_error[o->n], sizeof(o->port_error[0]), "%s", error ?: "");
	o->n++;
}

static void bridge_read(struct doc_ovs *o, json_t *answer, const char *name)
{
	json_t *bridge = NULL, *port, *iface, *all, *dt;
	size_t i, j;

	all = rows(answer, 0);
	json_array_foreach(all, i, port) {
		if (!strcmp(json_string_value(json_object_get(port, "name")) ?: "", name))
			bridge = port;
	}
	if (!bridge)
		return;
	o->found = true;
	dt = json_object_get(bridge, "datapath_type");
	o->userspace = !strcmp(json_string_value(dt) ?: "", "netdev");
	o->snooping = json_is_true(json_object_get(bridge, "mcast_snooping_enable"));
	all = rows(answer, 1);
	json_array_foreach(all, i, port) {
		json_t *ifaces = rows(answer, 2);

		if (!in_set(json_object_get(bridge, "ports"), uuid_of(port)))
			continue;
		json_array_foreach(ifaces, j, iface) {
			if (in_set(json_object_get(port, "interfaces"), uuid_of(iface)))
				interface_add(o, iface);
		}
	}
}

void doc_ovs_read(struct doc_ovs *o, const char *path, const char *bridge)
{
	static const char request[] =
		"{\"id\":1,\"method\":\"transact\",\"params\":[\"Open_vSwitch\","
		"{\"op\":\"select\",\"table\":\"Bridge\",\"where\":[],\"columns\":"
		"[\"name\",\"ports\",\"datapath_type\",\"mcast_snooping_enable\"]},"
		"{\"op\":\"select\",\"table\":\"Port\",\"where\":[],\"columns\":"
		"[\"_uuid\",\"interfaces\"]},"
		"{\"op\":\"select\",\"table\":\"Interface\",\"where\":[],\"columns\":"
		"[\"_uuid\",\"name\",\"type\",\"error\"]}]}";
	json_t *answer;
	int fd;

	memset(o, 0, sizeof(*o));
	fd = db_connect(path);
	if (fd < 0) {
		snprintf(o->error, sizeof(o->error), "%s: %s", path, strerror(-fd));
		return;
	}
	answer = db_ask(fd, request);
	close(fd);
	if (!json_is_array(json_object_get(answer, "result"))) {
		snprintf(o->error, sizeof(o->error), "%s: the answer is not that of ovsdb-server", path);
	} else {
		o->reachable = true;
		bridge_read(o, answer, bridge);
	}
	json_decref(answer);
}

/* Does the command line of @pid speak of database @path (or of none, if that
 * is where ovs-vswitchd looks by itself)? */
static bool serves(int pid, const char *path)
{
	char file[64], cmd[4096];
	bool any = false, hit = false;
	size_t n, len;
	FILE *f;

	snprintf(file, sizeof(file), "/proc/%d/cmdline", pid);
	f = fopen(file, "re");
	if (!f)
		return false;
	n = fread(cmd, 1, sizeof(cmd) - 1, f);
	fclose(f);
	cmd[n] = 0;
	for (size_t i = 0; i < n; i += len + 1) {
		len = strlen(cmd + i);
		if (strncmp(cmd + i, "unix:", 5))
			continue;
		any = true;
		hit |= !strcmp(cmd + i + 5, path);
	}
	return hit || (!any && (!strcmp(path, "/run/openvswitch/db.sock") ||
				!strcmp(path, "/var/run/openvswitch/db.sock")));
}

static int handler_threads(int pid)
{
	char path[64], comm[32];
	struct dirent *e;
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	if (!d)
		return -1;
	while ((e = readdir(d))) {
		char file[600];

		snprintf(file, sizeof(file), "%s/%s/comm", path, e->d_name);
		if (e->d_name[0] != '.' && doc_read(file, comm, sizeof(comm)) &&
		    !strncmp(comm, "handler", 7))
			n++;
	}
	closedir(d);
	return n;
}

int doc_ovs_handlers(const char *path, int *pid)
{
	struct dirent *e;
	char file[600], comm[32];
	int best = -1, n;
	DIR *d = opendir("/proc");

	if (!d)
		return -1;
	while ((e = readdir(d))) {
		int p = atoi(e->d_name);

		snprintf(file, sizeof(file), "/proc/%s/comm", e->d_name);
		if (p <= 0 || !doc_read(file, comm, sizeof(comm)) || strcmp(comm, "ovs-vswitchd") ||
		    !serves(p, path))
			continue;
		/* its monitor process has the same name and no threads */
		n = handler_threads(p);
		if (n >= best) {
			best = n;
			*pid = p;
		}
	}
	closedir(d);
	return best;
}
