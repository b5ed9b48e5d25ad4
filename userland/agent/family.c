// SPDX-License-Identifier: GPL-2.0-or-later
/* Watches generic netlink's controller for saina.ko to come or go. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "agent/agent.h"

/* Which of the two did this message report? */
static void look(const struct nlmsghdr *nlh, bool *came, bool *gone)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *at;

	if (nlh->nlmsg_type != GENL_ID_CTRL || nlh->nlmsg_len < NLMSG_HDRLEN + sizeof(*g))
		return;
	mnl_attr_for_each(at, nlh, sizeof(*g)) {
		if (mnl_attr_get_type(at) != CTRL_ATTR_FAMILY_NAME ||
		    mnl_attr_validate(at, MNL_TYPE_NUL_STRING) < 0 ||
		    strcmp(mnl_attr_get_str(at), SAINA_GENL_NAME))
			continue;
		*came |= g->cmd == CTRL_CMD_NEWFAMILY;
		*gone |= g->cmd == CTRL_CMD_DELFAMILY;
	}
}

static void family_ready(struct source *s, uint32_t events)
{
	char buf[8192] __attribute__((aligned(8)));
	const struct nlmsghdr *nlh = (const void *)buf;
	bool came = false, gone = false;
	int len = recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT);

	for (; len > 0 && mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len))
		look(nlh, &came, &gone);
	if (gone)
		plane_module_gone(s->arg);
	if (came)
		plane_module_came(s->arg);
}

/* The group "notify" of nlctrl has the number of the family. */
void family_init(struct agent *a)
{
	struct sockaddr_nl me = { .nl_family = AF_NETLINK, .nl_groups = 1u << (GENL_ID_CTRL - 1) };
	struct source *s = &a->plane.family;
	int ret;

	*s = (struct source){ .ready = family_ready, .arg = a };
	s->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (s->fd < 0)
		return; /* then no module either */
	ret = bind(s->fd, (void *)&me, sizeof(me)) ? -errno : loop_add(&a->loop, s, EPOLLIN);
	if (ret) {
		log_warn("whether saina.ko comes or goes cannot be seen: %s", strerror(-ret));
		close(s->fd);
		s->fd = -1;
	}
}

void family_uninit(struct agent *a)
{
	if (a->plane.family.fd < 0)
		return;
	loop_del(&a->loop, &a->plane.family);
	close(a->plane.family.fd);
	a->plane.family.fd = -1;
}
