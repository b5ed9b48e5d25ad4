// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests to the control plane, and their replies.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

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
	if (saina_ctl_op(cmd)->flags & SAINA_OP_ADMIN && saina_ctl_warning(ctl)[0])
		fprintf(stderr, "saina: warning: the change is in force, but %s\n",
			saina_ctl_warning(ctl));
	return 0;
}

int rpc_change(struct saina_ctl *ctl, int cmd, const struct saina_attr_class *c, const void *req)
{
	int ret = ctl ? rpc_call(ctl, cmd, false, c, req, NULL, NULL, NULL) : EXIT_FAILURE;

	saina_ctl_close(ctl);
	return ret;
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

int rpc_list(struct saina_ctl *ctl, int cmd, bool dump, const struct saina_attr_class *rc,
	     const void *req, const struct saina_attr_class *c, struct rpc_list *list)
{
	struct collect into = { list, c->size };

	memset(list, 0, sizeof(*list));
	return rpc_call(ctl, cmd, dump, rc, req, c, list_append, &into);
}

void rpc_list_free(struct rpc_list *list)
{
	free(list->v);
	memset(list, 0, sizeof(*list));
}
