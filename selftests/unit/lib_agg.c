// SPDX-License-Identifier: GPL-2.0-or-later
/* Admission and sockets; what becomes of gradients is the oracle's business (lib_switch.c). */
#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>
#include "lib/rng.h"
#include "lib_agg.h"
#include "lib_switch.h"

struct peer {
	bool bound;
	bool hold;
	bool formed;
	bool forgotten;		/* may join again though alive */
	bool ready, relayed;	/* its READY was heard; said so */
	uint64_t session;
	uint64_t nonce;
	uint32_t first;
	struct sockaddr_in addr;
	struct saina_hdr probe;		/* the answer to its last one */
};

struct agg {
	struct agg_conf c;
	char addr[32];
	int data, ctrl, wake;
	pthread_t thread;
	pthread_mutex_t lock;
	bool stop, stopped;
	uint64_t sessions;
	bool running;
	__le16 asked;		/* hdr.job of the message at hand */
	struct peer w[SAINA_WORKERS_MAX];
	struct lib_switch sw;
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
	return (rng_next(&a->rng) >> 11) * 0x1p-53;
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

static bool same(const struct sockaddr_in *x, const struct sockaddr_in *y)
{
	return x->sin_addr.s_addr == y->sin_addr.s_addr && x->sin_port == y->sin_port;
}

/* Unicast to each, so that each loses on its own: the library takes that. */
static void out_all(struct agg *a, uint64_t to, const void *msg, size_t len)
{
	bool all = a->c.loss == 0 && a->c.reorder == 0;

	for (int i = 0; i < SAINA_WORKERS_MAX; i++)
		all &= !a->w[i].hold;
	if (all) {
		out(a, a->data, &a->group, msg, len);
		return;
	}
	for (int i = 0; i < SAINA_WORKERS_MAX; i++)
		if ((to >> i & 1) && !a->w[i].hold)
			out(a, a->data, &a->w[i].addr, msg, len);
}

/* Elements need not be aligned. */
static void corrupt(uint8_t *element, uint32_t by)
{
	uint32_t x;

	memcpy(&x, element, sizeof(x));
	x += by;
	memcpy(element, &x, sizeof(x));
}

static void data(struct agg *a, const struct sockaddr_in *from, uint8_t *msg, size_t len)
{
	struct saina_hdr *h = (void *)msg, *answer;
	struct peer *p;
	uint64_t to;

	assert(len >= sizeof(*h) && h->version == SAINA_PROTO_VERSION);
	if (h->worker >= SAINA_WORKERS_MAX)
		return;
	p = &a->w[h->worker];
	if (!p->bound || !same(&p->addr, from))
		return;
	len = switch_message(&a->sw, h->worker, msg, len, &to, (void **)&answer);
	if (!len)
		return;
	if (answer->type == SAINA_MSG_PROBE_REPLY) {
		p->probe = *answer;
		if (a->c.fast && !a->c.late_probes)
			out(a, a->data, &a->group, answer, len);
		return;
	}
	if (!a->sw.out->multicast) {
		out(a, a->data, &p->addr, answer, len);
		return;
	}
	if (le32toh(answer->segment) == 1 && le32toh(answer->round) == 2)
		corrupt((uint8_t *)(answer + 1) + 7 * sizeof(uint32_t), a->c.corrupt);
	out_all(a, to, answer, len);
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
		.job = a->asked, .worker = SAINA_WORKER_ANY,
	};
	struct saina_refuse r = { .nonce = nonce, .reason = htole32(reason) };

	strcpy(r.text, text);
	control(a, to, &h, &r, sizeof(r));
}

static void status(struct agg *a, int w)
{
	struct saina_hdr h = {
		.version = SAINA_PROTO_VERSION, .type = SAINA_MSG_STATUS,
		.job = htole16(a->c.job), .worker = w, .session = htole64(a->w[w].session),
		/* asks for a test until it has shown that answers get to it */
		.segment = htole32(a->w[w].relayed),
	};
	struct saina_status s = {
		.active = htole64(a->sw.conf.active), .round = htole32(switch_next_round(&a->sw)),
		.state = a->stopped ? SAINA_JOB_STOPPED :
			 a->running ? SAINA_JOB_RUNNING : SAINA_JOB_FORMING,
		.path = !a->w[w].ready ? SAINA_PATH_UNKNOWN :
			a->w[w].relayed ? SAINA_PATH_RELAYED : SAINA_PATH_FAST,
	};

	control(a, &a->w[w].addr, &h, &s, sizeof(s));
}

static bool alive(const struct agg *a, int w)
{
	return a->sw.conf.active >> w & 1;
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

	if (h->flags & SAINA_F_NAMED) {
		const struct saina_join_named *by = (const void *)j;

		assert(!h->job && !by->job[sizeof(by->job) - 1]);
		if (!a->c.name) {
			refuse(a, from, j->nonce, SAINA_REFUSE_MALFORMED, "malformed");
			return;
		}
		if (strcmp(by->job, a->c.name)) {
			refuse(a, from, j->nonce, SAINA_REFUSE_NO_JOB, "there is no such job");
			return;
		}
	} else if (le16toh(h->job) != a->c.job) {
		return;
	}
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
	if (p->bound && alive(a, id) && !p->forgotten && p->nonce != j->nonce) {
		refuse(a, from, j->nonce, SAINA_REFUSE_TAKEN, "that worker is alive already");
		return;
	}
	if (p->nonce != j->nonce) {
		p->nonce = j->nonce;
		p->session = ++a->sessions;
		p->bound = true;
		switch_bind(&a->sw, id, p->session);
		p->forgotten = p->ready = p->relayed = false;
		p->addr = *from;
		p->first = switch_next_round(&a->sw);
		p->formed = !a->running;
	}
	wh.worker = id;
	wh.session = htole64(p->session);
	w.nonce = j->nonce;
	w.elements = htole64(a->c.elements);
	w.segments = htole32(a->sw.conf.segments);
	w.payload = htole16(a->c.payload);
	w.pool = htole16(a->c.pool);
	w.ring = htole16(a->c.ring);
	w.workers = a->c.workers;
	w.group = htole32(SAINA_GROUP_BASE + a->c.job);
	w.heartbeat_ms = htole16(a->c.heartbeat_ms);
	w.dead_ms = htole16(10 * a->c.heartbeat_ms);
	w.exponent = a->c.exponent - SAINA_EXPONENT_BIAS;
	w.elem = SAINA_ELEM_INT32;
	w.formed = p->formed;
	w.state = a->running ? SAINA_JOB_RUNNING : SAINA_JOB_FORMING;
	w.round = htole32(p->first);
	control(a, from, &wh, &w, sizeof(w));
	if (__builtin_popcountll(a->sw.conf.active) == (int)a->c.workers) {
		a->running = true;
		a->sw.conf.state = SAINA_JOB_RUNNING;
		switch_publish(&a->sw);
	}
}

static void ctrl(struct agg *a, const struct sockaddr_in *from, uint8_t *msg, size_t len)
{
	struct saina_hdr *h = (void *)msg;
	struct peer *p;

	assert(len == SAINA_CTRL_LEN && h->version == SAINA_PROTO_VERSION);
	a->asked = h->job;
	if (h->type == SAINA_MSG_JOIN) {
		join(a, from, h, (void *)(h + 1));
		return;
	}
	p = &a->w[h->worker & 63];
	if (!p->bound || !same(&p->addr, from) || le64toh(h->session) != p->session) {
		refuse(a, from, 0, SAINA_REFUSE_SESSION, "not admitted: join again");
		return;
	}
	if (h->type == SAINA_MSG_LEAVE) {
		switch_alive(&a->sw, h->worker, false);
		status(a, h->worker);
		p->bound = false;
		return;
	}
	if (h->type == SAINA_MSG_READY) {
		p->ready = true;
		p->relayed = !(h->flags & SAINA_F_FAST);
	}
	if (h->type == a->c.late_probes)
		out(a, a->data, &a->group, &p->probe, sizeof(p->probe));
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

static pthread_once_t own_network_once = PTHREAD_ONCE_INIT;

/* For this thread and those that it creates: a network namespace whose lo has a bridge's addresses. */
static void own_network(void)
{
	assert(!unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET));
	assert(!system("ip link set lo up && ip addr add 10.190.0.1/24 dev lo"));
}

struct agg *agg_start(const struct agg_conf *conf)
{
	struct agg *a = calloc(1, sizeof(*a)); /* the oracle is large */

	a->c = *conf;
	if (!a->c.heartbeat_ms)
		a->c.heartbeat_ms = 50;
	a->rng = conf->seed;
	switch_init(&a->sw, conf->job, conf->payload, conf->elements, conf->pool, conf->ring);
	switch_policy(&a->sw, conf->k, conf->drop_late);
	a->group.sin_family = AF_INET;
	a->group.sin_port = htons(SAINA_PORT_RESULT);
	a->group.sin_addr.s_addr = htonl(SAINA_GROUP_BASE + conf->job);
	pthread_mutex_init(&a->lock, NULL);
	a->wake = eventfd(0, EFD_CLOEXEC);
	assert(!pthread_once(&own_network_once, own_network));
	for (int i = 1; i < 200; i++) {
		snprintf(a->addr, sizeof(a->addr), "10.190.0.%d", i);
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
	/* Whatever is lost, late or twice: what workers say is always well formed. */
	assert(!switch_malformed(&a->sw));
	switch_exit(&a->sw);
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

uint64_t agg_count(struct agg *a, int counter)
{
	uint64_t n;

	LOCKED(a, n = switch_count(&a->sw, counter));
	return n;
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
	LOCKED(a, switch_alive(&a->sw, worker, false));
}

void agg_forget(struct agg *a, int worker)
{
	LOCKED(a, (a->w[worker].session += 1000, a->w[worker].forgotten = true,
		   a->w[worker].nonce = 0,
		   switch_bind(&a->sw, worker, a->w[worker].session)));
}

void agg_policy(struct agg *a, unsigned int k)
{
	LOCKED(a, switch_policy(&a->sw, k, false));
}

void agg_asp(struct agg *a)
{
	LOCKED(a, switch_asp(&a->sw));
}

void agg_stop_job(struct agg *a)
{
	LOCKED(a, a->stopped = true);
}

uint32_t agg_next_round(struct agg *a)
{
	uint32_t r;

	LOCKED(a, r = switch_next_round(&a->sw));
	return r;
}
