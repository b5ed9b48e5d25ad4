// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The OVSDB server of an Open vSwitch (RFC 7047: JSON-RPC over its unix
 * socket).  Tables Bridge, Port and Interface are monitored, so that ports
 * that come and go are seen as they do.  When the server goes away the ports
 * stay as last known and the connection is tried again.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jansson.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "agent/agent.h"

#define RETRY_MS   1000
#define ANSWER_MS  5000
#define BUFFER_MAX (64u << 20)

static const char *const monitored =
	"{\"method\":\"monitor\",\"id\":1,\"params\":[\"Open_vSwitch\",null,{"
	"\"Bridge\":{\"columns\":[\"name\",\"ports\"]},"
	"\"Port\":{\"columns\":[\"name\",\"interfaces\"]},"
	"\"Interface\":{\"columns\":[\"name\",\"type\"]}}]}";

static int ovsdb_send(struct ovsdb *o, const char *text)
{
	size_t len = strlen(text);
	ssize_t n;

	/* requests are short and few: a server that does not take them is stuck */
	n = send(o->source.fd, text, len, MSG_NOSIGNAL);
	return n == (ssize_t)len ? 0 : -EIO;
}

/* Length of the first whole JSON object in the buffer, 0 if there is none. */
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

/* {table: {uuid: {"new": row}}} changes the tables; without "new" it is gone. */
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
static int message(struct ovsdb *o, json_t *msg)
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
		if (!json_is_object(result)) {
			log_error("ovsdb: it refused to be monitored");
			return -EPROTO;
		}
		json_object_clear(o->tables);
		tables_update(o, result);
		o->known = true;
		return 1;
	}
	return 0;
}

/* Handles all whole messages in the buffer. */
static int messages(struct ovsdb *o)
{
	size_t at = 0, n;
	int ret, changed = 0;
	json_t *msg;

	while ((n = object_length(o->buf + at, o->len - at))) {
		msg = json_loadb(o->buf + at, n, 0, NULL);
		at += n;
		ret = msg ? message(o, msg) : -EPROTO;
		json_decref(msg);
		if (ret < 0)
			return ret;
		changed |= ret;
	}
	memmove(o->buf, o->buf + at, o->len - at);
	o->len -= at;
	return changed;
}

static int ovsdb_read(struct ovsdb *o)
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
	n = recv(o->source.fd, o->buf + o->len, o->room - o->len, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return n ? -errno : -ECONNRESET;
	o->len += n;
	return messages(o);
}

static void ovsdb_disconnect(struct agent *a)
{
	struct ovsdb *o = &a->ovsdb;

	if (o->source.fd < 0)
		return;
	loop_del(&a->loop, &o->source);
	close(o->source.fd);
	o->source.fd = -1;
	o->len = 0;
}

static int ovsdb_connect(struct agent *a)
{
	struct ovsdb *o = &a->ovsdb;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int ret;

	memcpy(addr.sun_path, a->cfg.ovsdb, sizeof(addr.sun_path));
	o->source.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (o->source.fd < 0)
		return -errno;
	if (connect(o->source.fd, (struct sockaddr *)&addr, sizeof(addr)))
		goto err_close;
	ret = ovsdb_send(o, monitored);
	if (!ret)
		ret = loop_add(&a->loop, &o->source, EPOLLIN);
	if (!ret)
		return 0;
	errno = -ret;
err_close:
	ret = -errno;
	close(o->source.fd);
	o->source.fd = -1;
	return ret;
}

static void ovsdb_ready(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;
	int ret = ovsdb_read(&a->ovsdb);

	if (ret < 0) {
		log_warn(
			"ovsdb: connection lost (%s): ports stay as they are, trying again every second",
			strerror(-ret));
		ovsdb_disconnect(a);
		loop_timer_set(&a->ovsdb.retry, RETRY_MS, RETRY_MS);
	} else if (ret) {
		ports_sync(a);
	}
}

static void ovsdb_retry(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;

	loop_timer_ack(s);
	if (ovsdb_connect(a))
		return;
	log_info("ovsdb: connected again");
	loop_timer_set(s, 0, 0);
}

int ovsdb_init(struct agent *a)
{
	struct ovsdb *o = &a->ovsdb;
	uint64_t deadline = loop_now() + ANSWER_MS * NSEC_PER_MSEC;
	struct pollfd p;
	int ret;

	o->source = (struct source){ .fd = -1, .ready = ovsdb_ready, .arg = a };
	o->retry = (struct source){ .fd = -1, .ready = ovsdb_retry, .arg = a };
	o->tables = json_object();
	ret = o->tables ? ovsdb_connect(a) : -ENOMEM;
	if (!ret)
		ret = loop_timer_add(&a->loop, &o->retry);
	/* the ports have to be known before anything is attached */
	while (!ret && !o->known) {
		p = (struct pollfd){ .fd = o->source.fd, .events = POLLIN };
		ret = poll(&p, 1, ANSWER_MS);
		ret = ret > 0 ? ovsdb_read(o) : -ETIMEDOUT;
		if (ret >= 0)
			ret = loop_now() < deadline ? 0 : -ETIMEDOUT;
	}
	if (ret)
		ovsdb_uninit(a);
	return ret;
}

void ovsdb_uninit(struct agent *a)
{
	ovsdb_disconnect(a);
	loop_timer_del(&a->loop, &a->ovsdb.retry);
	json_decref(a->ovsdb.tables);
	free(a->ovsdb.buf);
	a->ovsdb.tables = NULL;
	a->ovsdb.buf = NULL;
	a->ovsdb.len = a->ovsdb.room = 0;
	a->ovsdb.known = false;
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

bool ovsdb_has_bridge(const struct ovsdb *o, const char *bridge)
{
	return bridge_row(o, bridge) != NULL;
}

/* A set of references is ["set", [["uuid", U], ..]], one alone ["uuid", U].
 * Calls fn with the row of each in @table. */
static void each_row(const struct ovsdb *o, const char *table, const json_t *refs,
		     void (*fn)(const struct ovsdb *o, const json_t *row, void *arg), void *arg)
{
	const char *what = json_string_value(json_array_get(refs, 0));
	const json_t *row;
	json_t *ref;
	size_t i;

	if (what && !strcmp(what, "set")) {
		json_array_foreach(json_array_get(refs, 1), i, ref)
			each_row(o, table, ref, fn, arg);
		return;
	}
	what = json_string_value(json_array_get(refs, 1));
	row = what ? json_object_get(json_object_get(o->tables, table), what) : NULL;
	if (row)
		fn(o, row, arg);
}

struct interface_walk {
	void (*fn)(void *arg, const char *name, const char *type);
	void *arg;
};

static void interface_row(const struct ovsdb *o, const json_t *row, void *arg)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	const char *type = json_string_value(json_object_get(row, "type"));
	struct interface_walk *walk = arg;

	if (name)
		walk->fn(walk->arg, name, type ? type : "");
}

static void port_row(const struct ovsdb *o, const json_t *row, void *arg)
{
	each_row(o, "Interface", json_object_get(row, "interfaces"), interface_row, arg);
}

void ovsdb_interfaces(const struct ovsdb *o, const char *bridge,
		      void (*fn)(void *arg, const char *name, const char *type), void *arg)
{
	const json_t *row = bridge_row(o, bridge);
	struct interface_walk walk = { .fn = fn, .arg = arg };

	if (row)
		each_row(o, "Port", json_object_get(row, "ports"), port_row, &walk);
}
