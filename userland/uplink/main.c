// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina-uplink: takes the sums of a job to the job's parent, and the parent's results to the job.
 * sainad starts it, one for each job with an uplink.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "base.h"
#include "report.h"

#define SCAN_NS	 (100 * MSEC) /* records of slots that became AWAY can be lost */
#define LEAVE_NS (300 * MSEC)

static int away_record(void *arg, void *data, size_t size)
{
	const struct saina_away *a = data;

	if (size >= sizeof(*a))
		up_away(arg, a->round);
	return 0;
}

static int watch(int epoll, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

	return fd < 0 || !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) || errno == EEXIST ? 0 : -errno;
}

struct loop {
	struct relay *r;
	struct reporter reporter;
	struct ring_buffer *away;
	int	epoll, signals, results; /* @results: socket that is watched, or -1 */
	uint64_t scan_ns, leave_ns;
};

/* Does what is due; @when says until when to sleep.  False: the process ends. */
static bool turn(struct loop *l, uint64_t now, uint64_t *when)
{
	struct relay *r = l->r;

	if (now >= l->scan_ns) {
		uint32_t round;

		if (uplink_slots_scan(&r->slots, &round))
			up_away(r, round);
		l->scan_ns = now + SCAN_NS;
	}
	*when = up_run(r, now);
	earliest(when, l->scan_ns);
	if (r->up.ready && !r->down.open && !r->error[0]) {
		if (down_open(r, now))
			relay_end(r, UPLINK_ENDED, "%s", r->down.member.error);
		watch(l->epoll, r->down.member.io.ucast);
	}
	if (r->up.member.io.mcast != l->results) {
		l->results = r->up.member.io.mcast;
		watch(l->epoll, l->results);
	}
	earliest(when, down_run(r, now));
	earliest(when, report_run(&l->reporter, r, now));
	if (l->leave_ns) {
		earliest(when, l->leave_ns);
		if (now >= l->leave_ns || r->up.member.session.gone || member_failed(&r->up.member))
			return false;
	}
	return !r->error[0];
}

/* sainad wants the process to leave the parent's job in order, and to end. */
static void leave(struct loop *l, uint64_t now)
{
	if (l->leave_ns)
		return;
	saina_session_leave(&l->r->up.member.session, now);
	l->leave_ns = now + LEAVE_NS;
}

static void sainad_is_back(struct loop *l)
{
	report_accept(&l->reporter, &l->r->conf);
	watch(l->epoll, l->reporter.fd);
}

/* Waits until @when, and receives. */
static void wait_for(struct loop *l, uint64_t when)
{
	uint64_t now = saina_now(), ns = when > now ? when - now : 0;
	struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	struct epoll_event e[8];
	bool receive = false;
	int n;

	if (t.tv_sec > 3600)
		t.tv_sec = 3600;
	n = epoll_pwait2(l->epoll, e, 8, &t, NULL);
	for (int i = 0; i < n; i++) {
		if (e[i].data.fd == l->reporter.fd)
			report_closed(&l->reporter);
		else if (e[i].data.fd == l->reporter.listener)
			sainad_is_back(l);
		else if (e[i].data.fd == l->signals)
			leave(l, now);
		else if (e[i].data.fd == l->r->down.member.io.ucast)
			member_receive(&l->r->down.member);
		else if (e[i].data.fd != ring_buffer__epoll_fd(l->away))
			receive = true;
	}
	if (receive)
		member_receive(&l->r->up.member);
	ring_buffer__consume(l->away);
}

static int loop_init(struct loop *l, int away)
{
	int ret = report_listen(&l->reporter, &l->r->conf);
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	l->signals = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->away = ring_buffer__new(away, away_record, l->r, NULL);
	if (l->signals < 0 || l->epoll < 0 || !l->away)
		return -errno;
	if (ret)
		fprintf(stderr, "saina-uplink: job %u: a new sainad will replace this relay: cannot listen: %s\n",
			l->r->conf.job, strerror(-ret));
	if (watch(l->epoll, l->signals) || watch(l->epoll, l->reporter.fd) ||
	    watch(l->epoll, l->reporter.listener) ||
	    watch(l->epoll, ring_buffer__epoll_fd(l->away)) ||
	    watch(l->epoll, l->r->up.member.io.ucast))
		return -errno;
	return 0;
}

static int relay_init(struct relay *r, const int *fds)
{
	const struct uplink_handover *c = &r->conf;
	uint32_t round;
	int ret;

	r->netns = fds[UPLINK_FD_NETNS];
	ret = uplink_slots_map(&r->slots, fds[UPLINK_FD_HOT], c->payload, c->pool, c->segments);
	if (ret) {
		relay_end(r, UPLINK_ENDED, "cannot map the slots of job %u: %s", c->job, strerror(-ret));
		return ret;
	}
	r->had = calloc(c->segments, 1);
	if (!r->had || down_init(r)) {
		relay_end(r, UPLINK_ENDED, "out of memory for job %u", c->job);
		return -ENOMEM;
	}
	/* JOIN says which round is open here */
	if (uplink_slots_scan(&r->slots, &round))
		up_away(r, round);
	ret = up_open(r, saina_now());
	if (ret)
		relay_end(r, UPLINK_ENDED, "%s", r->up.member.error);
	return ret;
}

/* Says why the process ends. */
static void end_report(struct loop *l)
{
	struct relay *r = l->r;

	l->reporter.next_ns = 0;
	report_run(&l->reporter, r, saina_now());
	fprintf(stderr, "saina-uplink: job %u: %s\n", r->conf.job, r->error);
}

/* What this node has for the parent's round is lost: the others do not wait until it counts as dead. */
static void leave_at_once(struct member *m)
{
	uint64_t end = saina_now() + LEAVE_NS, now;

	saina_session_leave(&m->session, saina_now());
	while ((now = saina_now()) < end && !m->session.gone && !member_failed(m)) {
		member_run(m, now);
		usleep(10000);
		member_receive(m);
	}
}

static int usage(void)
{
	fprintf(stderr, "usage: saina-uplink JOB\n"
			"sainad starts this program, for each job with an uplink; see saina-uplink(8)\n");
	return 2;
}

int main(int argc, char **argv)
{
	static struct relay relay;
	struct loop l = {.r = &relay, .results = -1, .reporter = {.fd = UPLINK_FD, .listener = -1}};
	int fds[UPLINK_FD_COUNT];
	uint64_t when;

	if (argc != 2 || argv[1][0] == '-')
		return usage();
	prctl(PR_SET_TIMERSLACK, 1000);
	/* who reads what sainad and this process print may end with sainad */
	signal(SIGPIPE, SIG_IGN);
	if (handover_receive(UPLINK_FD, &relay.conf, fds, relay.error, sizeof(relay.error))) {
		fprintf(stderr, "saina-uplink: %s\n", relay.error);
		return 1;
	}
	if (!relay_init(&relay, fds) && loop_init(&l, fds[UPLINK_FD_AWAY]))
		relay_end(&relay, UPLINK_ENDED, "cannot wait for sums: %s", strerror(errno));
	while (!relay.error[0] && turn(&l, saina_now(), &when))
		wait_for(&l, when);
	if (relay.error[0])
		end_report(&l);
	if (relay.end == UPLINK_STALE)
		leave_at_once(&relay.up.member);
	ring_buffer__free(l.away);
	up_close(&relay);
	down_exit(&relay);
	uplink_slots_unmap(&relay.slots);
	free(relay.had);
	return relay.error[0] != 0;
}
