// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <linux/pkt_cls.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <unistd.h>
#include "lib/tap.h"
#include "rig.h"

#define RELAYS_MAX	32	/* drained when so many are waiting */
#define EVENTS_MAX	256

static void log_line(void *arg, int level, const char *line)
{
	if (level == 0)
		tap_note("%s", line);
}

static const char *object_path(char *path)
{
	const char *env = getenv("SAINA_BPF_OBJECT");
	char self[PATH_MAX - 32];
	ssize_t n;

	if (env)
		return env;
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return NULL;
	self[n] = 0;
	snprintf(path, PATH_MAX, "%s/../saina_xdp.bpf.o", dirname(self));
	return path;
}

static void __attribute__((noreturn)) bail(const char *what, const char *why)
{
	printf("Bail out! %s: %s\n", what, why);
	exit(1);
}

void rig_open(struct rig *r)
{
	struct saina_dp_opts opts = { .log = log_line };
	char path[PATH_MAX];

	memset(r, 0, sizeof(*r));
	if (geteuid())
		tap_skip_all("only root may load BPF programs");
	if (unshare(CLONE_NEWNET))
		tap_skip_all("cannot make a network namespace");
	if (system("ip link set lo up && ip link add rig1 type veth peer name rig2"))
		bail("ip link", "cannot make a veth pair");
	r->port[0] = if_nametoindex("lo");
	r->port[1] = if_nametoindex("rig1");
	r->port[2] = if_nametoindex("rig2");

	opts.object = object_path(path);
	if (saina_dp_open(&r->dp, &opts))
		bail("cannot load the data path", r->dp ? saina_dp_error(r->dp) : opts.object);
	r->prog = saina_dp_prog_fd(r->dp);
	r->g.ip = htonl(0x0abe0001);
	memcpy(r->g.mac, "\x02\x5a\x00\x00\x00\x01", 6);
	if (saina_dp_global_set(r->dp, &r->g))
		bail("global_set", saina_dp_error(r->dp));
	r->asked = rig_map(r, "saina_asked");
	if (r->asked < 0)
		bail("saina_asked", strerror(-r->asked));
	oracle_init(&r->o, &r->g);
	r->relay = calloc(RELAYS_MAX, sizeof(*r->relay));
	r->base = calloc(SAINA_JOBS_MAX * SAINA_WORKERS_MAX, sizeof(*r->base));
	r->shared = calloc(SAINA_JOBS_MAX, sizeof(*r->shared));
	if (!r->relay || !r->base || !r->shared)
		abort();
}

void rig_close(struct rig *r)
{
	close(r->asked);
	bpf_object__close(r->tc_object);
	saina_dp_close(r->dp, true);
	oracle_exit(&r->o);
	free(r->relay);
	free(r->event);
	free(r->base);
	free(r->shared);
}

bool rig_differs(struct rig *r, const char *fmt, ...)
{
	size_t n = strlen(r->diff);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->diff + n, sizeof(r->diff) - n, fmt, ap);
	va_end(ap);
	return false;
}

__be32 rig_group(unsigned int job)
{
	return htonl(SAINA_GROUP_BASE | job);
}

void rig_bind(const struct rig *r, struct saina_job_conf *c, unsigned int w,
	      unsigned int port, uint64_t session)
{
	struct saina_binding *b = &c->worker[w];

	memset(b, 0, sizeof(*b));
	b->ifindex = r->port[port];
	b->ip = htonl(0x0abe0100 + (c->job << 8) + w);
	b->udp_port = htons(20000 + 64 * c->job + w);
	b->session = session;
	memcpy(b->mac, "\x02\x77", 2);
	b->mac[4] = c->job;
	b->mac[5] = w;
	b->flags = SAINA_BIND_BOUND;
}

int rig_map(struct rig *r, const char *name)
{
	struct bpf_prog_info info = {};
	__u32 ids[256], len = sizeof(info);

	info.nr_map_ids = 256;
	info.map_ids = (uintptr_t)ids;
	if (bpf_obj_get_info_by_fd(r->prog, &info, &len))
		return -errno;
	for (__u32 i = 0; i < info.nr_map_ids && i < 256; i++) {
		struct bpf_map_info m = {};
		int fd = bpf_map_get_fd_by_id(ids[i]);

		len = sizeof(m);
		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &m, &len) &&
		    !strncmp(m.name, name, BPF_OBJ_NAME_LEN - 1))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -ENOENT;
}

int rig_inner(struct rig *r, const char *name, unsigned int job)
{
	int outer = rig_map(r, name), fd;
	__u32 id;

	if (outer < 0)
		return outer;
	fd = bpf_map_lookup_elem(outer, &job, &id) ? -errno : bpf_map_get_fd_by_id(id);
	close(outer);
	return fd;
}

int rig_counters(struct rig *r, unsigned int job, unsigned int worker,
		 struct saina_counters *out)
{
	const struct saina_counters *base = &r->base[job * SAINA_WORKERS_MAX + worker];
	int err = saina_dp_counters(r->dp, job, worker, out);

	for (int i = 0; !err && i < SAINA_C_N; i++)
		out->c[i] -= base->c[i];
	return err;
}

int rig_job(struct rig *r, const struct saina_job_conf *conf, uint32_t first_round)
{
	const struct oracle_job *j = &r->o.job[conf->job];
	bool begins = !j->present || j->conf.generation != conf->generation;
	int err;

	if (begins)
		rig_unshare_all(r, conf->job);
	err = saina_dp_job_publish(r->dp, conf, first_round);
	if (err) {
		rig_differs(r, "publish: %s\n", saina_dp_error(r->dp));
		return err;
	}
	oracle_job_publish(&r->o, conf, first_round);
	for (unsigned int w = 0; begins && !err && w < SAINA_WORKERS_MAX; w++)
		err = saina_dp_counters(r->dp, conf->job, w,
					&r->base[conf->job * SAINA_WORKERS_MAX + w]);
	if (err)
		rig_differs(r, "counters: %s\n", saina_dp_error(r->dp));
	else if (!rig_check_fanout(r, conf->job))
		err = -EINVAL;
	return err;
}

int rig_job_poke(struct rig *r, const struct saina_job_conf *conf)
{
	int fd = rig_inner(r, "saina_jobs", conf->job), err;
	__u32 zero = 0;

	if (fd < 0)
		return fd;
	err = bpf_map_update_elem(fd, &zero, conf, BPF_ANY);
	close(fd);
	if (err)
		return rig_job(r, conf, 0);
	r->o.job[conf->job].conf = *conf;
	return 0;
}

#define COARSE_NS 20000000	/* more than the coarse clock is ever behind */

int rig_time_passes(struct rig *r, uint64_t ns)
{
	static const unsigned int sizes[] = {
#define SIZE(E) E,
		SAINA_ELEMS_LIST(SIZE)
#undef SIZE
	};
	static struct {
		struct saina_slot_meta meta;
		int32_t sum[SAINA_ELEMS_MAX];
	} slot;
	char name[16];
	int err = 0;

	r->o.now += ns;
	for (unsigned int job = 0; job < SAINA_JOBS_MAX; job++) {
		const struct oracle_job *j = &r->o.job[job];
		int fd = -1;

		for (__u32 i = 0; j->present && i < j->conf.pool; i++) {
			if (j->hot[i].meta.state != SAINA_SLOT_OPEN || !j->hot[i].meta.deadline)
				continue;
			for (unsigned int s = 0; fd < 0 && s < sizeof(sizes) / sizeof(sizes[0]); s++) {
				if (sizes[s] != j->conf.payload)
					continue;
				snprintf(name, sizeof(name), "saina_hot_%u", sizes[s]);
				fd = rig_inner(r, name, job);
			}
			if (fd < 0 || bpf_map_lookup_elem(fd, &i, &slot))
				err = -ENOENT;
			slot.meta.deadline -= ns + COARSE_NS;
			slot.meta.opened_at -= ns;
			if (!err && bpf_map_update_elem(fd, &i, &slot, BPF_ANY))
				err = -errno;
		}
		if (fd >= 0)
			close(fd);
	}
	if (err)
		rig_differs(r, "time of open slots: %s\n", strerror(-err));
	return err;
}

int rig_job_remove(struct rig *r, unsigned int job)
{
	rig_unshare_all(r, job);
	oracle_job_remove(&r->o, job);
	return saina_dp_job_remove(r->dp, job);
}

int rig_port(struct rig *r, unsigned int ifindex, const struct saina_port_conf *c)
{
	if (ifindex >= ORACLE_PORTS)
		return -EINVAL;
	r->o.port[ifindex] = *c;
	return saina_dp_port_set(r->dp, ifindex, c);
}

void rig_set_outlet(struct rig *r, __u32 job, __u32 ifindex)
{
	if (bpf_map_update_elem(r->outlet, &job, &ifindex, BPF_ANY))
		bail("saina_outlet", strerror(errno));
}

/* The tc object lies beside the other; it gets the maps that this one has. */
void rig_use_tc(struct rig *r)
{
	char path[PATH_MAX], *at;
	struct bpf_object *o;
	struct bpf_map *m;
	const char *xdp = object_path(path);
	int fd;

	if (xdp != path)
		snprintf(path, sizeof(path), "%s", xdp);
	at = strstr(path, "saina_xdp");
	if (!at)
		bail(path, "is not called saina_xdp...");
	memcpy(at, "saina_tc", 8);
	memmove(at + 8, at + 9, strlen(at + 9) + 1);
	o = bpf_object__open_file(path, NULL);
	if (!o)
		bail(path, strerror(errno));
	bpf_object__for_each_map(m, o) {
		if (bpf_map__is_internal(m))
			continue;
		fd = rig_map(r, bpf_map__name(m));
		if (fd >= 0 && bpf_map__reuse_fd(m, fd))
			bail(bpf_map__name(m), strerror(errno));
	}
	if (bpf_object__load(o))
		bail(path, strerror(errno));
	r->tc = bpf_program__fd(bpf_object__find_program_by_name(o, "saina_tc"));
	r->outlet = bpf_object__find_map_fd_by_name(o, "saina_outlet");
	for (__u32 job = 0; job < SAINA_JOBS_MAX; job++)
		rig_set_outlet(r, job, r->port[0]);
	r->o.tc = true;
	r->tc_object = o;
}

/* Does TEST_RUN take it for a tc program?  Not beyond a page, nor cut in its headers. */
static bool is_skb(const uint8_t *frame, unsigned int len)
{
	return len >= FRAME_HDR && len <= RIG_SKB_MAX &&
	       (frame[12] != 0x86 || frame[13] != 0xdd || len >= 54);
}

static int test_run_tc(struct rig *r, const uint8_t *frame, unsigned int len, unsigned int size,
		       unsigned int ifindex)
{
	struct __sk_buff ctx = { .ifindex = ifindex, .gso_size = size };
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, t,
		.data_in = frame,
		.data_size_in = len,
		.data_out = r->got,
		.data_size_out = sizeof(r->got),
		.ctx_in = &ctx,
		.ctx_size_in = sizeof(ctx),
		.repeat = 1);
	int err = bpf_prog_test_run_opts(r->tc, &t);

	r->verdict = t.retval;
	r->len = t.data_size_out;
	return err;
}

static int test_run(struct rig *r, const uint8_t *frame, unsigned int len, unsigned int ifindex)
{
	struct xdp_md ctx = { .data_end = len, .ingress_ifindex = ifindex };
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, t,
		.data_in = frame,
		.data_size_in = len,
		.data_out = r->got,
		.data_size_out = sizeof(r->got),
		.repeat = 1);
	bool in_pieces = r->linear && r->linear < len && !r->no_linear;
	int err;

	if (ifindex != r->port[0] || in_pieces) {
		t.ctx_in = &ctx;
		t.ctx_size_in = sizeof(ctx);
		if (in_pieces)
			ctx.data_end = r->linear;
	}
	err = bpf_prog_test_run_opts(r->prog, &t);
	if (err && in_pieces) {
		r->no_linear = true;
		return test_run(r, frame, len, ifindex);
	}
	r->verdict = t.retval;
	r->len = t.data_size_out;
	return err;
}

bool rig_packet_alone(struct rig *r, const uint8_t *frame, unsigned int len,
		      unsigned int ifindex)
{
	r->diff[0] = 0;
	return !test_run(r, frame, len, ifindex) ||
	       rig_differs(r, "BPF_PROG_TEST_RUN: %s\n", strerror(errno));
}

static const char *answer_text(const uint8_t *f, unsigned int len, char *s, size_t size)
{
	struct saina_hdr h;

	if (len < FRAME_PAYLOAD)
		return "(short)";
	memcpy(&h, f + FRAME_HDR, sizeof(h));
	snprintf(s, size, "type %u flags %#x job %u session %llu round %u segment %u count %u "
		 "worker %u exponent %d contributors %u k %u next_k %u policy %u mask %llx aux %u "
		 "slot_round %u", h.type, h.flags, h.job, (unsigned long long)h.session, h.round, h.segment, h.count,
		 h.worker, h.exponent, h.contributors, h.k, h.next_k, h.policy, h.mask, h.aux,
		 h.slot_round);
	return s;
}

static bool same_frame(struct rig *r, const uint8_t *want, unsigned int len)
{
	unsigned int i;
	char s[512];

	if (r->len == len && !memcmp(r->got, want, len))
		return true;
	for (i = 0; i < len && i < r->len && r->got[i] == want[i]; i++)
		;
	rig_differs(r, "frame: want %u bytes, got %u; first difference at byte %u: want %02x got %02x\n",
		    len, r->len, i, i < len ? want[i] : 0, i < r->len ? r->got[i] : 0);
	rig_differs(r, "  want: %s\n", answer_text(want, len, s, sizeof(s)));
	return rig_differs(r, "  got:  %s\n", answer_text(r->got, r->len, s, sizeof(s)));
}

static uint32_t relay_sum(const uint8_t *p, uint32_t len, uint32_t sum)
{
	for (uint32_t i = 0; i + 4 <= len; i += 4) {
		uint32_t v;

		memcpy(&v, p + i, 4);
		sum = (sum ^ v) * 0x01000193u;
		sum ^= sum >> 15;
	}
	return sum;
}

static const char *want_text(const struct rig *r)
{
	static const char *const name[] = { [ORACLE_PASS] = "passed", [ORACLE_DROP] = "dropped",
					    [ORACLE_REDIRECT] = "redirected" };

	return name[r->want.verdict];
}

/* What the program did with the frame, as the oracle says it; -1 if it has no word for it. */
static int got_verdict(const struct rig *r)
{
	if (r->tc)
		return r->verdict == TC_ACT_UNSPEC   ? ORACLE_PASS :
		       r->verdict == TC_ACT_SHOT     ? ORACLE_DROP :
		       r->verdict == TC_ACT_REDIRECT ? ORACLE_REDIRECT : -1;
	return r->verdict == XDP_PASS	  ? ORACLE_PASS :
	       r->verdict == XDP_DROP	  ? ORACLE_DROP :
	       r->verdict == XDP_REDIRECT ? ORACLE_REDIRECT : -1;
}

/* Answers for the workers, each with what it says. */
static void take_answers(struct rig *r, unsigned int size)
{
	const uint8_t *f = r->want.verdict == ORACLE_REDIRECT ? r->got : r->want.frame;
	unsigned int bytes = r->want.len - FRAME_HDR;

	r->answers = 0;
	if (!(r->want.to | r->want.relayed))
		return;
	if (!size)
		size = bytes;
	for (unsigned int at = 0; at < bytes && r->answers < 64; at += size) {
		r->answer[r->answers].to = r->want.to | r->want.relayed;
		r->answer[r->answers].message = f + FRAME_HDR + at;
		if (f[FRAME_HDR + at + 1] != SAINA_MSG_NOP)
			r->answers++;
	}
}

/* Program and oracle have had the frame: the same? */
static bool compare(struct rig *r, const uint8_t *frame, unsigned int len)
{
	r->packets++;
	if (got_verdict(r) != r->want.verdict)
		return rig_differs(r, "verdict: want it %s (%s), got %d\n", want_text(r),
				   r->want.reason < 0 ? "no reason" :
				   saina_counter_info[r->want.reason].name, r->verdict);
	if (r->want.relayed) {
		struct rig_relay *e = &r->relay[r->relays++];

		e->workers = r->want.relayed;
		e->len = r->want.len - FRAME_HDR;
		e->sum = relay_sum(r->want.frame + FRAME_HDR, e->len, 0);
		e->packet = r->packets;
	}
	if (r->want.verdict == ORACLE_PASS && !same_frame(r, frame, len))
		return false;
	if (r->want.verdict == ORACLE_REDIRECT && !same_frame(r, r->want.frame, r->want.len))
		return false;
	if (r->relays == RELAYS_MAX || r->o.events >= EVENTS_MAX)
		return rig_drain(r);
	return true;
}

/*
 * How many questions of a worker are answered is a matter of time, which the oracle has none
 * of: whoever asks in this frame has asked nothing yet, so the limit is never reached, however
 * fast frames follow each other.  The limit is tc_test's, by rig_train_alone().
 */
static bool forget_asked(struct rig *r, const uint8_t *frame, unsigned int len, unsigned int size)
{
	static const struct saina_asked none;
	struct saina_hdr h;

	for (unsigned int at = FRAME_HDR; at + sizeof(h) <= len; at += size ? size : len) {
		__u32 key;

		memcpy(&h, frame + at, sizeof(h));
		if (h.type != SAINA_MSG_ASK || h.job >= SAINA_JOBS_MAX ||
		    h.worker >= SAINA_WORKERS_MAX)
			continue;
		key = h.job * SAINA_WORKERS_MAX + h.worker;
		if (bpf_map_update_elem(r->asked, &key, &none, BPF_ANY))
			return rig_differs(r, "saina_asked: %s\n", strerror(errno));
	}
	return true;
}

bool rig_train_alone(struct rig *r, const uint8_t *frame, unsigned int len, unsigned int size,
		     unsigned int ifindex)
{
	r->diff[0] = 0;
	return !test_run_tc(r, frame, len, size, ifindex) ||
	       rig_differs(r, "BPF_PROG_TEST_RUN: %s\n", strerror(errno));
}

bool rig_train(struct rig *r, const uint8_t *frame, unsigned int len, unsigned int size,
	       unsigned int ifindex)
{
	r->diff[0] = 0;
	r->answers = 0;
	if (!is_skb(frame, len))
		return true;
	if (!forget_asked(r, frame, len, size))
		return false;
	if (test_run_tc(r, frame, len, size, ifindex))
		return rig_differs(r, "BPF_PROG_TEST_RUN: %s (%u bytes)\n", strerror(errno), len);
	oracle_train(&r->o, frame, len, size, ifindex, &r->want);
	if (!compare(r, frame, len))
		return false;
	take_answers(r, size);
	return true;
}

bool rig_packet(struct rig *r, const uint8_t *frame, unsigned int len, unsigned int ifindex)
{
	if (r->tc)
		return rig_train(r, frame, len, 0, ifindex);
	r->diff[0] = 0;
	if (!forget_asked(r, frame, len, 0))
		return false;
	if (test_run(r, frame, len, ifindex))
		return rig_differs(r, "BPF_PROG_TEST_RUN: %s\n", strerror(errno));
	r->o.linear = r->linear && !r->no_linear ? r->linear : FRAME_LINEAR;
	oracle_packet(&r->o, frame, len, ifindex, &r->want);
	if (!compare(r, frame, len))
		return false;
	take_answers(r, 0);
	return true;
}

static void got_event(void *arg, const struct saina_event *ev)
{
	struct rig *r = arg;

	if (r->events == r->events_room) {
		r->events_room = r->events_room ? 2 * r->events_room : 512;
		r->event = realloc(r->event, r->events_room * sizeof(*r->event));
		if (!r->event)
			abort();
	}
	r->event[r->events++] = *ev;
}

static void got_relay(void *arg, const struct saina_relay_msg *m)
{
	struct rig *r = arg;
	struct rig_relay *e = &r->relay[r->relays_got];

	if (r->relays_got++ >= r->relays)
		return;
	if (e->workers != m->workers || e->len != m->len)
		rig_differs(r, "relay of packet %llu: want workers %llx, %u bytes; got %llx, %u\n",
			    (unsigned long long)e->packet, (unsigned long long)e->workers, e->len,
			    m->workers, m->len);
	else if (relay_sum(m->payload, m->len - sizeof(m->hdr),
			   relay_sum((const uint8_t *)&m->hdr, sizeof(m->hdr), 0)) != e->sum)
		rig_differs(r, "relay of packet %llu carries something else\n",
			    (unsigned long long)e->packet);
}

static bool same_events(struct rig *r)
{
	bool same = r->events == r->o.events;

	for (unsigned int i = 0; same && i < r->events; i++) {
		struct saina_event a = r->event[i], b = r->o.event[i];

		a.time = b.time = 0;
		same = !memcmp(&a, &b, sizeof(a));
		if (!same)
			rig_differs(r, "event %u: want type %u job %u worker %u k %u round %u a %llu b %llu\n"
				    "          got type %u job %u worker %u k %u round %u a %llu b %llu\n",
				    i, b.type, b.job, b.worker, b.k, b.round, b.a, b.b,
				    a.type, a.job, a.worker, a.k, a.round, a.a, a.b);
	}
	if (r->events != r->o.events)
		rig_differs(r, "events: want %u, got %u\n", r->o.events, r->events);
	return same;
}

bool rig_drain(struct rig *r)
{
	struct saina_dp_cb cb = { .event = got_event, .relay = got_relay, .arg = r };
	bool same;

	r->diff[0] = 0;
	saina_dp_event_dispatch(r->dp, &cb);
	if (r->relays != r->relays_got)
		rig_differs(r, "relays: want %u, got %u\n", r->relays, r->relays_got);
	same = same_events(r) && !r->diff[0];
	r->events = 0;
	r->relays = r->relays_got = 0;
	oracle_events_clear(&r->o);
	return same;
}
