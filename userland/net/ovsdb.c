// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jansson.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "monotonic.h"
#include "net/ovsdb.h"

#define BUFFER_MAX (64u << 20)

static const char monitored[] =
	"{\"method\":\"monitor\",\"id\":1,\"params\":[\"Open_vSwitch\",null,{"
	"\"Bridge\":{\"columns\":[\"name\",\"ports\",\"datapath_type\",\"mcast_snooping_enable\"]},"
	"\"Port\":{\"columns\":[\"name\",\"interfaces\"]},"
	"\"Interface\":{\"columns\":[\"name\",\"type\",\"error\",\"ingress_policing_rate\"]}}]}";

static int ovsdb_send(struct ovsdb *o, const char *text)
{
	ssize_t len = strlen(text);

	/* Requests are short and few: if the socket has no room for one, the server hangs. */
	return send(o->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) == len ? 0 : -EIO;
}

/* Length of the first complete JSON object in the buffer, 0: none. */
static size_t object_length(const char *s, size_t len)
{
	bool string = false, escaped = false;
	size_t i, depth = 0;

	for (i = 0; i < len; i++) {
		if (escaped)
			escaped = false;
		else if (string && s[i] == '\\')
			escaped = true;
		else if (s[i] == '"')
			string = !string;
		else if (string)
			continue;
		else if (s[i] == '{' || s[i] == '[')
			depth++;
		else if ((s[i] == '}' || s[i] == ']') && depth && !--depth)
			return i + 1;
	}
	return 0;
}

/* Applies {table: {uuid: {"new": row}}}; without "new" the row was deleted. */
static void tables_update(struct ovsdb *o, json_t *update)
{
	const char *table, *uuid;
	json_t *rows, *change, *mine, *row;

	json_object_foreach(update, table, rows)
	{
		mine = json_object_get(o->tables, table);
		if (!mine) {
			mine = json_object();
			json_object_set_new(o->tables, table, mine);
		}
		json_object_foreach(rows, uuid, change)
		{
			row = json_object_get(change, "new");
			if (row)
				json_object_set(mine, uuid, row);
			else
				json_object_del(mine, uuid);
		}
	}
}

/* Return: 1 if the tables may have changed */
static int message_handle(struct ovsdb *o, json_t *msg)
{
	const char *method = json_string_value(json_object_get(msg, "method"));
	json_t *id = json_object_get(msg, "id"), *result, *reply;
	char *text;

	if (method && !strcmp(method, "echo")) {
		reply = json_pack("{s:O, s:n, s:O}", "id", id, "error", "result",
				  json_object_get(msg, "params"));
		text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;
		if (text)
			ovsdb_send(o, text);
		free(text);
		json_decref(reply);
		return 0;
	}
	if (method && !strcmp(method, "update")) {
		tables_update(o, json_array_get(json_object_get(msg, "params"), 1));
		return 1;
	}
	if (!method && json_integer_value(id) == 1) {
		result = json_object_get(msg, "result");
		if (!json_is_object(result))
			return -EPROTO; /* the monitor request was refused */
		json_object_clear(o->tables);
		tables_update(o, result);
		o->known = true;
		return 1;
	}
	return 0;
}

/* Handles all complete messages in the buffer. */
static int buffer_parse(struct ovsdb *o)
{
	size_t at = 0, n;
	int ret, changed = 0;
	json_t *msg;

	while ((n = object_length(o->buf + at, o->len - at))) {
		msg = json_loadb(o->buf + at, n, 0, NULL);
		at += n;
		ret = msg ? message_handle(o, msg) : -EPROTO;
		json_decref(msg);
		if (ret < 0)
			return ret;
		changed |= ret;
	}
	memmove(o->buf, o->buf + at, o->len - at);
	o->len -= at;
	return changed;
}

int ovsdb_receive(struct ovsdb *o)
{
	ssize_t n;
	char *buf;

	if (o->room - o->len < 65536) {
		if (o->room >= BUFFER_MAX)
			return -EFBIG;
		buf = realloc(o->buf, o->room + 262144);
		if (!buf)
			return -ENOMEM;
		o->buf = buf;
		o->room += 262144;
	}
	n = recv(o->fd, o->buf + o->len, o->room - o->len, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return n ? -errno : -ECONNRESET;
	o->len += n;
	return buffer_parse(o);
}

int ovsdb_connect(struct ovsdb *o, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int ret;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	if (!o->tables)
		o->tables = json_object();
	if (!o->tables)
		return -ENOMEM;
	/* Connecting must not block, either: a server that hangs has a full queue. */
	o->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (o->fd < 0)
		return -errno;
	o->len = 0;
	ret = connect(o->fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno
								     : ovsdb_send(o, monitored);
	if (ret)
		ovsdb_disconnect(o);
	return ret;
}

void ovsdb_disconnect(struct ovsdb *o)
{
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

int ovsdb_wait(struct ovsdb *o, int timeout_ms)
{
	int64_t left, end = monotonic_ms() + timeout_ms;
	struct pollfd p = { .fd = o->fd, .events = POLLIN };
	int ret;

	while (!o->known) {
		left = end - monotonic_ms();
		if (left <= 0)
			return -ETIMEDOUT;
		ret = poll(&p, 1, (int)left);
		if (ret < 0 && errno != EINTR)
			return -errno;
		if (ret <= 0)
			continue;
		ret = ovsdb_receive(o);
		if (ret < 0)
			return ret;
	}
	return 0;
}

void ovsdb_close(struct ovsdb *o)
{
	ovsdb_disconnect(o);
	json_decref(o->tables);
	free(o->buf);
	*o = (struct ovsdb){ .fd = -1 };
}

static const json_t *bridge_row(const struct ovsdb *o, const char *bridge)
{
	const char *uuid, *name;
	json_t *row;

	json_object_foreach(json_object_get(o->tables, "Bridge"), uuid, row)
	{
		name = json_string_value(json_object_get(row, "name"));
		if (name && !strcmp(name, bridge))
			return row;
	}
	return NULL;
}

int ovsdb_bridge(const struct ovsdb *o, const char *bridge, struct ovsdb_bridge *out)
{
	const json_t *row = bridge_row(o, bridge);
	const char *type = json_string_value(json_object_get(row, "datapath_type"));

	if (!row)
		return -ENOENT;
	if (out) {
		out->userspace = type && !strcmp(type, "netdev");
		out->snooping = json_is_true(json_object_get(row, "mcast_snooping_enable"));
	}
	return 0;
}

/* Calls @fn with each row of @table that @refs names: ["set", [["uuid", U], ..]] or
 * ["uuid", U]. */
static void rows_walk(const struct ovsdb *o, const char *table, const json_t *refs,
		      void (*fn)(const struct ovsdb *o, const json_t *row, void *arg), void *arg)
{
	const char *what = json_string_value(json_array_get(refs, 0));
	const json_t *row;
	json_t *ref;
	size_t i;

	if (what && !strcmp(what, "set")) {
		json_array_foreach(json_array_get(refs, 1), i, ref)
			rows_walk(o, table, ref, fn, arg);
		return;
	}
	what = json_string_value(json_array_get(refs, 1));
	row = what ? json_object_get(json_object_get(o->tables, table), what) : NULL;
	if (row)
		fn(o, row, arg);
}

struct interface_walk {
	void (*fn)(void *arg, const struct ovsdb_interface *i);
	void *arg;
};

static const char *column_text(const json_t *row, const char *column)
{
	return json_string_value(json_object_get(row, column)) ?: "";
}

static void interface_row(const struct ovsdb *o, const json_t *row, void *arg)
{
	const struct ovsdb_interface i = {
		.name = column_text(row, "name"),
		.type = column_text(row, "type"),
		.error = column_text(row, "error"),
		.policing = json_integer_value(json_object_get(row, "ingress_policing_rate")),
	};
	const struct interface_walk *walk = arg;

	if (i.name[0])
		walk->fn(walk->arg, &i);
}

static void port_row(const struct ovsdb *o, const json_t *row, void *arg)
{
	rows_walk(o, "Interface", json_object_get(row, "interfaces"), interface_row, arg);
}

void ovsdb_interfaces(const struct ovsdb *o, const char *bridge,
		      void (*fn)(void *arg, const struct ovsdb_interface *i), void *arg)
{
	const json_t *row = bridge_row(o, bridge);
	struct interface_walk walk = { .fn = fn, .arg = arg };

	if (row)
		rows_walk(o, "Port", json_object_get(row, "ports"), port_row, &walk);
}
