// SPDX-License-Identifier: GPL-2.0-or-later
/* What sainad says, and what it is told. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "report.h"

#define REPORT_NS (500 * MSEC)

static const char *is_wrong(const struct uplink_handover *c, size_t len)
{
	if (len < sizeof(*c) || c->version != UPLINK_VERSION || c->size != sizeof(*c))
		return "sainad and saina-uplink are of different builds: install both from one";
	if (!c->pool || c->pool & (c->pool - 1) || c->pool > SAINA_POOL_MAX || !c->segments ||
	    c->worker >= SAINA_WORKERS_MAX || c->parent_worker >= SAINA_WORKERS_MAX ||
	    !SAINA_ELEM_IS_INT(c->elem) || memchr(c->parent_name, 0, sizeof(c->parent_name)) == NULL ||
	    memchr(c->node, 0, sizeof(c->node)) == NULL)
		return "what sainad hands over is no job with an uplink";
	return NULL;
}

int handover_receive(int fd, struct uplink_handover *c, int *fds, char *text, size_t size)
{
	union {
		char buf[CMSG_SPACE(UPLINK_FD_COUNT * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {c, sizeof(*c)};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t len = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *h = len > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	const char *wrong;

	if (len < 0 || !h || h->cmsg_type != SCM_RIGHTS ||
	    h->cmsg_len != CMSG_LEN(UPLINK_FD_COUNT * sizeof(int))) {
		snprintf(text, size, "nothing was handed over on descriptor %d: sainad starts this program", fd);
		return len < 0 ? -errno : -EPROTO;
	}
	memcpy(fds, CMSG_DATA(h), UPLINK_FD_COUNT * sizeof(int));
	wrong = is_wrong(c, len);
	if (wrong)
		snprintf(text, size, "%s", wrong);
	return wrong ? -EPROTO : 0;
}

int report_listen(struct reporter *p, const struct uplink_handover *c)
{
	struct sockaddr_un a;
	socklen_t len = uplink_address(&a, c->job);
	int ret;

	p->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->listener < 0)
		return -errno;
	if (!bind(p->listener, (struct sockaddr *)&a, len) && !listen(p->listener, 1))
		return 0;
	ret = -errno;
	close(p->listener);
	p->listener = -1;
	return ret;
}

void report_accept(struct reporter *p, const struct uplink_handover *c)
{
	int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || peer.uid != geteuid() ||
	    send(fd, c, sizeof(*c), MSG_NOSIGNAL) < 0) {
		close(fd);
		return;
	}
	report_closed(p);
	p->fd = fd;
	p->last.version = 0;
}

void report_closed(struct reporter *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

static enum uplink_state state_of(const struct relay *r)
{
	if (r->error[0])
		return r->end;
	if (!r->up.ready)
		return UPLINK_STARTING;
	return r->down.open && member_admitted(&r->down.member) ? UPLINK_RUNNING : UPLINK_ADMITTED;
}

/* Why it is not admitted yet, or why it ends. */
static const char *sentence_of(const struct relay *r)
{
	return r->error[0] ? r->error : r->up.ready ? "" : r->up.member.session.refusal;
}

uint64_t report_run(struct reporter *p, const struct relay *r, uint64_t now)
{
	const struct up *u = &r->up;
	struct uplink_report n = {
		.version = UPLINK_VERSION,
		.state = state_of(r),
		.workers = u->ready ? u->member.session.job.weight : 0,
		.rank0 = u->member.session.job.rank,
		.depth = u->member.session.job.depth + 1,
		.quorum = u->member.session.job.quorum,
		.first_round = u->member.session.job.first_round,
		.away_round = u->waits_ns ? u->flow.round : 0,
		.away_since = u->waits_ns,
		.bytes_up = u->member.bytes_out,
		.bytes_down = u->member.bytes_in,
		.sums_up = u->sent,
		.sums_resent = u->resent,
		.results_down = r->down.taken,
	};

	snprintf(n.error, sizeof(n.error), "%s", sentence_of(r));
	if (p->last.version && n.state == p->last.state && n.workers == p->last.workers &&
	    !strcmp(n.error, p->last.error) && now < p->next_ns)
		return p->next_ns;
	if (p->fd < 0)
		return UINT64_MAX;
	if (send(p->fd, &n, sizeof(n), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return now + MSEC; /* sainad is busy */
	p->last = n;
	p->next_ns = now + REPORT_NS;
	return p->next_ns;
}
