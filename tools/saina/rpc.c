// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests to the control plane; the only file of the tool that uses netlink.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

bool is_kernel(const struct saina_ctl *ctl)
{
	return !strcmp(saina_ctl_peer(ctl), "kernel");
}

static bool is_chosen(const struct tool *t)
{
	const char *path = t->socket ? t->socket : getenv("SAINA_CONTROL");

	return path && *path;
}

static struct saina_ctl *open_agent(const char **error)
{
	const char *path = getenv("SAINA_CTL_SOCKET");
	struct saina_ctl *ctl;

	if (!path || !*path || !strcmp(path, "kernel"))
		path = SAINA_CTL_SOCKET;
	return saina_ctl_open(&ctl, path, error) ? NULL : ctl;
}

static void limits_cb(void *arg, const void *obj)
{
	memcpy(arg, obj, sizeof(struct saina_limits_attrs));
}

int backend_of(struct saina_ctl *ctl)
{
	struct saina_limits_attrs l = { 0 };

	if (rpc_call_quiet(ctl, SAINA_CMD_LIMITS_GET, false, NULL, NULL, &saina_limits_class,
			   limits_cb, &l))
		return 0;
	return l.plane;
}

/* saina.ko is loaded, but an agent that does not use it has the jobs. */
static struct saina_ctl *choose_backend(struct saina_ctl *kernel, bool *unused)
{
	const char *error;
	struct saina_ctl *agent = open_agent(&error);

	*unused = agent && backend_of(agent) == SAINA_PLANE_AGENT;
	saina_ctl_close(*unused ? kernel : agent);
	return *unused ? agent : kernel;
}

static struct saina_ctl *find_backend(const struct tool *t, bool *unused, const char **error)
{
	struct saina_ctl *ctl;

	*unused = false;
	if (saina_ctl_open(&ctl, t->socket, error))
		return NULL;
	return is_kernel(ctl) && !is_chosen(t) ? choose_backend(ctl, unused) : ctl;
}

struct saina_ctl *rpc_open_quiet(const struct tool *t, const char **error)
{
	bool unused;

	return find_backend(t, &unused, error);
}

struct saina_ctl *rpc_open(const struct tool *t)
{
	const char *error;
	bool unused;
	struct saina_ctl *ctl = find_backend(t, &unused, &error);

	if (!ctl)
		fprintf(stderr, "saina: %s\n", error);
	else if (unused)
		fprintf(stderr,
			"saina: note: saina.ko is loaded, but not in use: sainad at %s has the jobs (saina doctor says why)\n",
			saina_ctl_peer(ctl));
	return ctl;
}

struct saina_ctl *rpc_open_agent_quiet(const struct tool *t, const char **error)
{
	struct saina_ctl *ctl = rpc_open_quiet(t, error);

	if (!ctl || !is_kernel(ctl))
		return ctl;
	saina_ctl_close(ctl);
	return open_agent(error);
}

struct saina_ctl *rpc_open_agent(const struct tool *t)
{
	const char *error;
	struct saina_ctl *ctl = rpc_open_agent_quiet(t, &error);

	if (!ctl)
		fprintf(stderr, "saina: %s\n", error);
	return ctl;
}

struct reply {
	const struct saina_attr_class *c;
	void (*each)(void *arg, const void *obj);
	void *arg;
};

static int reply_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct reply *r = arg;
	union saina_any_attrs obj;
	int ret = saina_ctl_decode(nlh, r->c, &obj);

	if (!ret)
		r->each(r->arg, &obj);
	return ret == -ENOENT ? 0 : ret;	/* an object of another class: skip it */
}

int rpc_call_quiet(struct saina_ctl *ctl, int cmd, bool dump,
		   const struct saina_attr_class *rc, const void *req,
		   const struct saina_attr_class *c, void (*each)(void *arg, const void *obj), void *arg)
{
	struct reply r = { c, each, arg };
	struct nlmsghdr *nlh = saina_ctl_msg(ctl, cmd, dump);

	if (rc)
		saina_ctl_encode(nlh, rc, req);
	return saina_ctl_call(ctl, nlh, each ? reply_cb : NULL, &r);
}

int rpc_call(struct saina_ctl *ctl, int cmd, bool dump,
	     const struct saina_attr_class *rc, const void *req,
	     const struct saina_attr_class *c, void (*each)(void *arg, const void *obj), void *arg)
{
	const char *attr;

	if (rpc_call_quiet(ctl, cmd, dump, rc, req, c, each, arg)) {
		attr = saina_ctl_error_attr(ctl);
		if (attr)
			fprintf(stderr, "saina: %s (attribute \"%s\")\n", saina_ctl_error(ctl), attr);
		else
			fprintf(stderr, "saina: %s\n", saina_ctl_error(ctl));
		return EXIT_FAILURE;
	}
	return 0;
}

struct collect {
	struct rpc_list *list;
	size_t size;
};

static void list_append(void *arg, const void *obj)
{
	struct collect *c = arg;
	struct rpc_list *l = c->list;
	void *v;

	if (l->n == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		v = realloc(l->v, l->room * c->size);
		if (!v) {
			fputs("saina: out of memory\n", stderr);
			exit(EXIT_FAILURE);
		}
		l->v = v;
	}
	memcpy((char *)l->v + l->n++ * c->size, obj, c->size);
}

int rpc_list(struct saina_ctl *ctl, int cmd, const struct saina_attr_class *rc, const void *req,
	     const struct saina_attr_class *c, struct rpc_list *list)
{
	struct collect into = { list, c->size };

	memset(list, 0, sizeof(*list));
	return rpc_call(ctl, cmd, true, rc, req, c, list_append, &into);
}

int rpc_list_one(struct saina_ctl *ctl, int cmd, const struct saina_attr_class *rc, const void *req,
		 const struct saina_attr_class *c, struct rpc_list *list)
{
	struct collect into = { list, c->size };

	memset(list, 0, sizeof(*list));
	return rpc_call(ctl, cmd, false, rc, req, c, list_append, &into);
}

int rpc_list_quiet(struct saina_ctl *ctl, int cmd, const struct saina_attr_class *c,
		   struct rpc_list *list)
{
	struct collect into = { list, c->size };
	int ret;

	memset(list, 0, sizeof(*list));
	ret = rpc_call_quiet(ctl, cmd, true, NULL, NULL, c, list_append, &into);
	if (ret)
		rpc_list_free(list);
	return ret;
}

void rpc_list_free(struct rpc_list *list)
{
	free(list->v);
	memset(list, 0, sizeof(*list));
}
