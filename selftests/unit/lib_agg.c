// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "saina/proto.h"
#include "lib_agg.h"

#define HELD 8

struct slot {
	uint32_t round;
	uint8_t state;		/* 0 empty, 1 open, 2 done */
	uint8_t k, count;
	int8_t exponent;
	uint64_t seen, members;
	uint32_t *sum;
};

struct peer {
	bool bound, active, started;
	bool hold;
	bool formed;
	bool forgotten;		/* may join again though alive */
	uint16_t session;
	uint64_t nonce;
	uint32_t first;
	struct sockaddr_in addr;
};

struct agg {
	struct agg_conf c;
	char addr[32];
	int data, ctrl, wake;
	pthread_t thread;
	pthread_mutex_t lock;
	bool stop, stopped;
	uint32_t segments, next_round, open;
	uint64_t members;
	uint16_t sessions;
	bool running;
	struct peer w[SAINA_WORKERS_MAX];
	struct slot *slot;		/* [segments * ring] */
	uint32_t *last;			/* [segments * 64] */
	struct agg_count n;
	uint64_t rng;
	struct {
		struct sockaddr_in to;
		size_t len;
		uint8_t msg[48 + 4 * SAINA_ELEMS_MAX];
	} held;
	bool holding;
	struct sockaddr_in group;
};

static double draw(struct agg *a)
{
	uint64_t z = (a->rng += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return ((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static void out(struct agg *a, int fd, const struct sockaddr_in *to, const void *msg, size_t len)
{
	if (draw(a) < a->c.loss)
		return;
	if (!a->holding && draw(a) < a->c.reorder) {
		a->held.to = *to;
		a->held.len = len;
		memcpy(a->held.msg, msg, len);
		a->holding = true;
		return;
	}
	sendto(fd, msg, len, 0, (const void *)to, sizeof(*to));
	if (a->holding) {
		sendto(a->data, a->held.msg, a->held.len, 0, (void *)&a->held.to,
		       sizeof(a->held.to));
		a->holding = false;
	}
}

static uint64_t active(const struct agg *a)
{
	uint64_t m = 0;

	for (int i = 0; i < SAINA_WORKERS_MAX; i++)
		m |= (uint64_t)a->w[i].active << i;
	return m;
}

static bool complete(const struct agg *a, const struct slot *s)
{
	uint64_t live = s->members & active(a);
	int want = __builtin_popcountll(live);

	if (s->k < want)
		want = s->k;
	return __builtin_popcountll(s->seen & live) >= want;
}

/* How: 0 = to all, else the flags of a unicast answer. */
static void answer(struct agg *a, uint32_t segment, const struct slot *s, int w, int how)
{
	struct {
		struct saina_hdr h;
		uint32_t sum[SAINA_ELEMS_MAX];
	} m;
	size_t len = sizeof(m.h) + 4 * a->c.payload;

	memset(&m.h, 0, sizeof(m.h));
	m.h.version = SAINA_PROTO_VERSION;
	m.h.type = SAINA_MSG_RESULT;
	m.h.elem = SAINA_ELEM_INT32;
	m.h.flags = how;
	if (s->count < s->k)
		m.h.flags |= SAINA_F_DEGRADED;
	if (a->c.drop_late)
		m.h.flags |= SAINA_F_DROP_LATE;
	m.h.job = htole16(a->c.job);
	m.h.round = htole32(s->round);
	m.h.segment = htole32(segment);
	m.h.count = htole16(a->c.payload);
	m.h.exponent = s->exponent;
	m.h.contributors = s->count;
	m.h.k = s->k;
	m.h.next_k = a->c.k;
	m.h.policy = htole16(1);
	m.h.mask = htole64(s->seen);
	memcpy(m.sum, s->sum, 4 * a->c.payload);
	if (how) {
		m.h.worker = w;
		m.h.session = htole16(a->w[w].session);
		m.h.aux = htole32(a->last[segment * 64 + w]);
		out(a, a->data, &a->w[w].addr, &m, len);
		return;
	}
	/* Unicast to each, so that each loses on its own: the library takes that. */
	m.h.worker = SAINA_WORKER_ANY;
	if (a->c.loss == 0 && a->c.reorder == 0) {
		bool all = true;

		for (int i = 0; i < SAINA_WORKERS_MAX; i++)
			all &= !a->w[i].hold;
		if (all) {
			out(a, a->data, &a->group, &m, len);
			return;
		}
	}
	for (int i = 0; i < SAINA_WORKERS_MAX; i++)
		if (a->w[i].active && !a->w[i].hold)
			out(a, a->data, &a->w[i].addr, &m, len);
}

static void stale(struct agg *a, uint32_t round, uint32_t segment, int w)
{
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_STALE, .elem = SAINA_ELEM_INT32,
		.job = htole16(a->c.job), .session = htole16(a->w[w].session),
		.round = htole32(round), .segment = htole32(segment), .worker = w,
		.aux = htole32(a->last[segment * 64 + w]), .slot_round = htole32(a->next_round),
	};

	a->n.stale++;
	out(a, a->data, &a->w[w].addr, &h, sizeof(h));
}

static void done(struct agg *a, uint32_t segment, struct slot *s)
{
	s->state = 2;
	if (segment == 1 && s->round == 2)
		s->sum[7] += a->c.corrupt;
	a->open--;
	a->n.completed++;
	answer(a, segment, s, -1, 0);
}

static struct slot *hot(struct agg *a, uint32_t segment)
{
	for (uint32_t i = segment & (a->c.pool - 1); i < a->segments; i += a->c.pool) {
		struct slot *s = &a->slot[i * a->c.ring + ((a->next_round - 1) & (a->c.ring - 1))];

		if (a->next_round && s->state == 1 && s->round == a->next_round - 1)
			return s;
	}
	return NULL;
}

static void grad(struct agg *a, const struct saina_hdr *h, const uint32_t *v)
{
	uint32_t r = le32toh(h->round), seg = le32toh(h->segment);
	struct slot *s = &a->slot[seg * a->c.ring + (r & (a->c.ring - 1))];
	uint64_t bit = 1ull << h->worker;

	a->n.grads++;
	if (s->state && s->round == r) {
		if (s->state == 2) {
			bool in = s->seen & bit;

			in ? a->n.resent++ : a->n.late++;
			answer(a, seg, s, h->worker, in ? SAINA_F_RESEND : SAINA_F_LATE);
			return;
		}
		if (s->seen & bit) {
			a->n.duplicate++;
			if (complete(a, s))
				done(a, seg, s);
			return;
		}
		if (s->exponent != h->exponent) {
			a->n.exponent++;
			return;
		}
		for (unsigned int i = 0; i < a->c.payload; i++)
			s->sum[i] += v[i];
		goto added;
	}
	if (r > a->next_round) {
		a->n.future++;
		return;
	}
	if (r + 1 < a->next_round || (r < a->next_round && !a->members)) {
		stale(a, r, seg, h->worker);
		return;
	}
	if (r == a->next_round && a->open) {
		a->n.round_busy++;
		return;
	}
	if (r != a->next_round && hot(a, seg)) {
		a->n.slot_busy++;
		return;
	}
	if (r == a->next_round) {
		a->next_round++;
		a->members = active(a);
	}
	s->round = r;
	s->state = 1;
	s->members = a->members;
	s->k = a->c.k < (unsigned int)__builtin_popcountll(a->members) ?
	       a->c.k : (unsigned int)__builtin_popcountll(a->members);
	s->exponent = h->exponent;
	s->seen = 0;
	s->count = 0;
	memcpy(s->sum, v, 4 * a->c.payload);
	a->open++;
added:
	a->n.added++;
	s->seen |= bit;
	s->count++;
	a->last[seg * 64 + h->worker] = r + 1;
	if (complete(a, s))
		done(a, seg, s);
}

static void pull(struct agg *a, const struct saina_hdr *h)
{
	uint32_t r = le32toh(h->round), seg = le32toh(h->segment);
	struct slot *s = &a->slot[seg * a->c.ring + (r & (a->c.ring - 1))];

	if (s->state && s->round == r) {
		if (s->state == 1 && !complete(a, s)) {
			a->n.pull_early++;
			return;
		}
		if (s->state == 1) {
			done(a, seg, s);
			return;
		}
		a->n.pulled++;
		answer(a, seg, s, h->worker, SAINA_F_PULLED |
		       (s->seen >> h->worker & 1 ? SAINA_F_RESEND : SAINA_F_LATE));
	} else if (r + 1 >= a->next_round && (r >= a->next_round || a->members)) {
		a->n.pull_early++;
	} else {
		stale(a, r, seg, h->worker);
	}
}

static bool same(const struct sockaddr_in *x, const struct sockaddr_in *y)
{
	return x->sin_addr.s_addr == y->sin_addr.s_addr && x->sin_port == y->sin_port;
}

static void data(struct agg *a, const struct sockaddr_in *from, uint8_t *msg, size_t len)
{
	struct saina_hdr *h = (void *)msg;
	struct peer *p;

	assert(len >= sizeof(*h) && h->version == SAINA_PROTO_VERSION);
	if (h->worker >= SAINA_WORKERS_MAX)
		return;
	p = &a->w[h->worker];
	if (!p->bound || !same(&p->addr, from) || le16toh(h->session) != p->session) {
		a->n.session++;
		return;
	}
	if (h->type == SAINA_MSG_PROBE) {
		assert(len == sizeof(*h) && !h->count);
		h->type = SAINA_MSG_PROBE_REPLY;
		if (a->c.fast)
			out(a, a->data, &a->group, h, sizeof(*h));
		return;
	}
	if (!a->running || !p->active)
		return;
	assert(len == sizeof(*h) + 4 * a->c.payload && le16toh(h->count) == a->c.payload &&
	       le32toh(h->segment) < a->segments && h->elem == SAINA_ELEM_INT32);
	if (h->type == SAINA_MSG_GRAD)
		grad(a, h, (void *)(h + 1));
	else
		pull(a, h);
}

static void control(struct agg *a, const struct sockaddr_in *to, struct saina_hdr *h, const void *body,
		    size_t len)
{
	uint8_t msg[sizeof(*h) + sizeof(struct saina_refuse)];

	memcpy(msg, h, sizeof(*h));
	memcpy(msg + sizeof(*h), body, len);
	out(a, a->ctrl, to, msg, sizeof(*h) + len);
}

static void refuse(struct agg *a, const struct sockaddr_in *to, uint64_t nonce, int reason,
		   const char *text)
{
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_REFUSE,
		.job = htole16(a->c.job), .worker = SAINA_WORKER_ANY,
	};
	struct saina_refuse r = { .nonce = nonce, .reason = htole32(reason) };

	strcpy(r.text, text);
	control(a, to, &h, &r, sizeof(r));
}

static void status(struct agg *a, int w)
{
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_STATUS,
		.job = htole16(a->c.job), .worker = w, .session = htole16(a->w[w].session),
	};
	struct saina_status s = {
		.active = htole64(active(a)), .round = htole32(a->next_round),
		.state = a->stopped ? SAINA_JOB_STOPPED :
			 a->running ? SAINA_JOB_RUNNING : SAINA_JOB_FORMING,
	};

	control(a, &a->w[w].addr, &h, &s, sizeof(s));
}

static void join(struct agg *a, const struct sockaddr_in *from, struct saina_hdr *h,
		 const struct saina_join *j)
{
	struct saina_hdr wh = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_WELCOME,
		.job = htole16(a->c.job),
	};
	struct saina_welcome w = { 0 };
	char token[SAINA_TOKEN_LEN] = "";
	int id = h->worker;
	struct peer *p;

	if (le16toh(h->job) != a->c.job)
		return;
	if (a->c.token)
		memcpy(token, a->c.token, strlen(a->c.token));
	if (memcmp(token, j->token, sizeof(token))) {
		refuse(a, from, j->nonce, SAINA_REFUSE_TOKEN, "the token is wrong");
		return;
	}
	if (id == SAINA_WORKER_ANY) {
		for (id = 0; id < (int)a->c.workers; id++)
			if (!a->w[id].bound || a->w[id].nonce == j->nonce)
				break;
	}
	if (id >= (int)a->c.workers) {
		refuse(a, from, j->nonce, SAINA_REFUSE_FULL, "the job is full");
		return;
	}
	p = &a->w[id];
	if (p->bound && p->active && !p->forgotten && p->nonce != j->nonce) {
		refuse(a, from, j->nonce, SAINA_REFUSE_TAKEN, "that worker is alive already");
		return;
	}
	if (p->nonce != j->nonce) {
		p->nonce = j->nonce;
		p->session = ++a->sessions;
		p->bound = p->active = true;
		p->forgotten = false;
		p->addr = *from;
		p->first = a->next_round;
		p->formed = !a->running;
	}
	wh.worker = id;
	wh.session = htole16(p->session);
	w.nonce = j->nonce;
	w.elements = htole64(a->c.elements);
	w.segments = htole32(a->segments);
	w.payload = htole16(a->c.payload);
	w.pool = htole16(a->c.pool);
	w.ring = htole16(a->c.ring);
	w.workers = a->c.workers;
	w.state = a->running ? SAINA_JOB_RUNNING : SAINA_JOB_FORMING;
	w.round = htole32(p->first);
	w.group = htole32(SAINA_GROUP_BASE + a->c.job);
	w.heartbeat_ms = htole16(a->c.heartbeat_ms);
	w.dead_ms = htole16(10 * a->c.heartbeat_ms);
	w.exponent = a->c.exponent;
	w.elem = SAINA_ELEM_INT32;
	w.formed = p->formed;
	control(a, from, &wh, &w, sizeof(w));
	if (__builtin_popcountll(active(a)) == (int)a->c.workers)
		a->running = true;
}

static void ctrl(struct agg *a, const struct sockaddr_in *from, uint8_t *msg, size_t len)
{
	struct saina_hdr *h = (void *)msg;
	struct peer *p;

	assert(len >= sizeof(*h) && h->version == SAINA_PROTO_VERSION);
	if (h->type == SAINA_MSG_JOIN) {
		assert(len == sizeof(*h) + sizeof(struct saina_join));
		join(a, from, h, (void *)(h + 1));
		return;
	}
	p = &a->w[h->worker & 63];
	if (!p->bound || !same(&p->addr, from) || le16toh(h->session) != p->session) {
		refuse(a, from, 0, SAINA_REFUSE_SESSION, "not admitted: join again");
		return;
	}
	if (h->type == SAINA_MSG_LEAVE) {
		status(a, h->worker);
		p->active = p->bound = false;
		return;
	}
	status(a, h->worker);
}

static void *run(void *arg)
{
	struct agg *a = arg;
	struct pollfd p[3] = {
		{ .fd = a->data, .events = POLLIN }, { .fd = a->ctrl, .events = POLLIN },
		{ .fd = a->wake, .events = POLLIN },
	};
	static __thread uint8_t msg[65536];
	struct sockaddr_in from;
	socklen_t flen;
	ssize_t n;

	for (;;) {
		poll(p, 3, a->holding ? 5 : -1);
		pthread_mutex_lock(&a->lock);
		if (a->stop) {
			pthread_mutex_unlock(&a->lock);
			return NULL;
		}
		for (int i = 0; i < 2; i++) {
			while (flen = sizeof(from),
			       (n = recvfrom(p[i].fd, msg, sizeof(msg), MSG_DONTWAIT,
					     (void *)&from, &flen)) >= 0) {
				if (draw(a) < a->c.loss)
					continue;
				(i ? ctrl : data)(a, &from, msg, n);
			}
		}
		if (a->holding) {
			sendto(a->data, a->held.msg, a->held.len, 0, (void *)&a->held.to,
			       sizeof(a->held.to));
			a->holding = false;
		}
		pthread_mutex_unlock(&a->lock);
	}
}

static int bound(struct agg *a, int port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = 8 << 20;
	struct ip_mreqn m = { .imr_ifindex = if_nametoindex("lo") };

	inet_pton(AF_INET, a->addr, &sin.sin_addr);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof(m));
	if (bind(fd, (void *)&sin, sizeof(sin))) {
		close(fd);
		return -1;
	}
	return fd;
}

struct agg *agg_start(const struct agg_conf *conf)
{
	struct agg *a = calloc(1, sizeof(*a));

	a->c = *conf;
	if (!a->c.heartbeat_ms)
		a->c.heartbeat_ms = 50;
	a->rng = conf->seed;
	a->segments = (conf->elements + conf->payload - 1) / conf->payload;
	a->slot = calloc(a->segments * conf->ring, sizeof(*a->slot));
	for (uint32_t i = 0; i < a->segments * conf->ring; i++)
		a->slot[i].sum = calloc(conf->payload, 4);
	a->last = calloc(a->segments * 64, 4);
	a->group.sin_family = AF_INET;
	a->group.sin_port = htons(SAINA_PORT_RESULT);
	a->group.sin_addr.s_addr = htonl(SAINA_GROUP_BASE + conf->job);
	pthread_mutex_init(&a->lock, NULL);
	a->wake = eventfd(0, EFD_CLOEXEC);
	/* A loopback address of its own; the process id and a counter make it so. */
	for (int i = 0; i < 200; i++) {
		snprintf(a->addr, sizeof(a->addr), "127.%d.%d.%d", 100 + i,
			 getpid() >> 8 & 255, getpid() & 255);
		a->data = bound(a, SAINA_PORT_DATA);
		if (a->data < 0)
			continue;
		a->ctrl = bound(a, SAINA_PORT_CTRL);
		if (a->ctrl >= 0)
			break;
		close(a->data);
	}
	assert(a->data >= 0 && a->ctrl >= 0);
	assert(!pthread_create(&a->thread, NULL, run, a));
	return a;
}

void agg_stop(struct agg *a)
{
	uint64_t one = 1;

	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_mutex_unlock(&a->lock);
	assert(write(a->wake, &one, sizeof(one)) == sizeof(one));
	pthread_join(a->thread, NULL);
	close(a->data);
	close(a->ctrl);
	close(a->wake);
	for (uint32_t i = 0; i < a->segments * a->c.ring; i++)
		free(a->slot[i].sum);
	free(a->slot);
	free(a->last);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

const char *agg_address(const struct agg *a)
{
	return a->addr;
}

#define LOCKED(a, what) do {			\
	pthread_mutex_lock(&(a)->lock);		\
	what;					\
	pthread_mutex_unlock(&(a)->lock);	\
} while (0)

void agg_count(struct agg *a, struct agg_count *c)
{
	LOCKED(a, *c = a->n);
}

void agg_set_k(struct agg *a, unsigned int k)
{
	LOCKED(a, a->c.k = k);
}

void agg_set_loss(struct agg *a, double loss)
{
	LOCKED(a, a->c.loss = loss);
}

void agg_hold_multicast(struct agg *a, int worker, bool hold)
{
	LOCKED(a, a->w[worker].hold = hold);
}

void agg_kill(struct agg *a, int worker)
{
	LOCKED(a, a->w[worker].active = false);
}

void agg_forget(struct agg *a, int worker)
{
	LOCKED(a, (a->w[worker].session += 1000, a->w[worker].forgotten = true,
		   a->w[worker].nonce = 0));
}

void agg_stop_job(struct agg *a)
{
	LOCKED(a, a->stopped = true);
}

uint32_t agg_next_round(struct agg *a)
{
	uint32_t r;

	LOCKED(a, r = a->next_round);
	return r;
}
