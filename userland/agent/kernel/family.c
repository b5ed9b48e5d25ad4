// SPDX-License-Identifier: GPL-2.0-or-later
/* Watches generic netlink's controller for saina.ko to come or go. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "agent/agent.h"

#define LIVE_MS	   50
#define LIVE_TRIES 100

/* The family comes in the middle of the module's init; programs can use the module
 * only after that. */
static bool still_coming(void)
{
	int fd = open("/sys/module/saina/initstate", O_RDONLY | O_CLOEXEC);
	char state[16] = "";
	ssize_t n = fd < 0 ? 0 : read(fd, state, sizeof(state) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 && !strncmp(state, "coming", 6);
}

static void live_ready(struct source *s, uint32_t events)
{
	struct agent *a = s->arg;

	loop_timer_ack(s);
	if (still_coming() && a->plane.tries++ < LIVE_TRIES)
		return;
	loop_timer_set(s, 0, 0);
	plane_module_came(a);
}

static void coming(struct agent *a)
{
	a->plane.tries = 0;
	if (a->plane.live.fd >= 0)
		loop_timer_set(&a->plane.live, LIVE_MS, LIVE_MS);
}

static void gone(struct agent *a)
{
	if (a->plane.live.fd >= 0)
		loop_timer_set(&a->plane.live, 0, 0);
	plane_module_gone(a);
}

static void look(struct agent *a, const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *at;

	if (nlh->nlmsg_type != GENL_ID_CTRL || nlh->nlmsg_len < NLMSG_HDRLEN + sizeof(*g))
		return;
	mnl_attr_for_each(at, nlh, sizeof(*g)) {
		if (mnl_attr_get_type(at) != CTRL_ATTR_FAMILY_NAME ||
		    mnl_attr_validate(at, MNL_TYPE_NUL_STRING) < 0 ||
		    strcmp(mnl_attr_get_str(at), SAINA_FAMILY_NAME))
			continue;
		if (g->cmd == CTRL_CMD_NEWFAMILY)
			coming(a);
		else if (g->cmd == CTRL_CMD_DELFAMILY)
			gone(a);
	}
}

static void family_ready(struct source *s, uint32_t events)
{
	char buf[8192] __attribute__((aligned(8)));
	const struct nlmsghdr *nlh = (const void *)buf;
	int len = recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (len < 0 && errno == ENOBUFS)
		plane_module_unsure(s->arg);
	for (; len > 0 && mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len))
		look(s->arg, nlh);
}

/* The group "notify" of nlctrl has the number of the family. */
void family_init(struct agent *a)
{
	struct sockaddr_nl me = { .nl_family = AF_NETLINK, .nl_groups = 1u << (GENL_ID_CTRL - 1) };
	struct source *s = &a->plane.family;
	int ret;

	a->plane.live = (struct source){ .fd = -1, .ready = live_ready, .arg = a };
	*s = (struct source){ .ready = family_ready, .arg = a };
	s->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (s->fd < 0)
		return; /* then no module either */
	ret = bind(s->fd, (void *)&me, sizeof(me)) ? -errno : loop_add(&a->loop, s, EPOLLIN);
	if (!ret)
		ret = loop_timer_add(&a->loop, &a->plane.live);
	if (ret) {
		log_warn("whether saina.ko comes or goes cannot be seen: %s", strerror(-ret));
		close(s->fd);
		s->fd = -1;
	}
}

void family_uninit(struct agent *a)
{
	loop_timer_del(&a->loop, &a->plane.live);
	if (a->plane.family.fd < 0)
		return;
	loop_del(&a->loop, &a->plane.family);
	close(a->plane.family.fd);
	a->plane.family.fd = -1;
}
