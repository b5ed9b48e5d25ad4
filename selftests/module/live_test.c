// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Configuration under live traffic: an XDP program on an interface that is flooded
 * asks for job 0 and tells of it, from softirq, while the job is
 * created, changed and deleted.  In the test VM, module loaded, no jobs; as root.
 *
 *	sender --- sl1 ))) sl0: live_test.bpf.c
 *
 *	live_test OBJECT [-n ROUNDS]	(200)
 */
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "requests.h"
#include "../lib/tap.h"

#define CHANGES 8	/* of the policy, in each round */
#define CPUS_MAX 256

/* as in live_test.bpf.c */
enum { HIT, MISS, EVENT_SENT, TORN, N_TALLY };

static struct bpf_object *object;
static int stop, sender_failed;

static unsigned long tally(int what)
{
	static __u64 n[CPUS_MAX];
	unsigned long sum = 0;
	__u32 key = what;
	int i;

	memset(n, 0, sizeof(n));
	bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(object, "tally"), &key, n);
	for (i = 0; i < libbpf_num_possible_cpus() && i < CPUS_MAX; i++)
		sum += n[i];
	return sum;
}

static unsigned long packets(void)
{
	return tally(HIT) + tally(MISS);
}

static void *flood(void *arg)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = if_nametoindex("sl1") };
	static char frame[64] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5 };
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	sender_failed = fd < 0;
	while (fd >= 0 && !__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		if (sendto(fd, frame, sizeof(frame), 0, (void *)&to, sizeof(to)) < 0 &&
		    errno != ENOBUFS)
			sender_failed = 1;
	}
	close(fd);
	return NULL;
}

/* Until so many packets more have come; false if they do not. */
static bool after_packets(unsigned long n)
{
	unsigned long from = packets();
	int i;

	for (i = 0; i < 30000; i++) {
		if (packets() - from >= n)
			return true;
		usleep(1000);
	}
	return false;
}

static int event_cb(const struct nlmsghdr *nlh, void *arg)
{
	struct saina_event_attrs ev;

	if (saina_ctl_decode(nlh, &saina_event_class, &ev))
		return -EBADMSG;
	return ev.type == SAINA_EV_K && !strcmp(ev.job_name, "live");
}

/* One life of the job, under traffic; the number of refusals. */
static int life(unsigned long *after_death)
{
	unsigned long hits;
	char policy[32];
	int i, bad = 0;

	bad += request_job_new("live", 64, 1000) != 0;
	bad += request_worker_bind(0, 0, if_nametoindex("sl0")) != 0;
	for (i = 1; i <= CHANGES; i++) {
		snprintf(policy, sizeof(policy), "fastest:k=%d", i);
		bad += request_job_policy(0, policy) != 0;
	}
	bad += !after_packets(20);
	bad += request_job_del(0) != 0;
	/* programs that had it before may still be at it: one a CPU */
	bad += !after_packets(2 * libbpf_num_possible_cpus());
	hits = tally(HIT);
	bad += !after_packets(10);
	*after_death += tally(HIT) - hits;
	return bad;
}

static int setup(const char *path)
{
	struct bpf_program *p;

	if (system("ip link add sl0 type veth peer name sl1 && ip link set sl0 up && ip link set sl1 up"))
		return -1;
	object = bpf_object__open_file(path, NULL);
	if (!object || bpf_object__load(object))
		return -1;
	p = bpf_object__find_program_by_name(object, "live");
	return bpf_xdp_attach(if_nametoindex("sl0"), bpf_program__fd(p), 0, NULL);
}

int main(int argc, char **argv)
{
	unsigned long after_death = 0, sent;
	struct saina_ctl *sub = NULL;
	int i, rounds = 200, bad = 0, events = 0, lost = 0, ret;
	const char *error;
	pthread_t sender;

	if (argc == 4 && !strcmp(argv[2], "-n"))
		rounds = atoi(argv[3]);
	else if (argc != 2)
		return 2;
	requests_open();
	if (!tap_ok(!setup(argv[1]), "setup: a program of the data path is attached to an interface"))
		return tap_done();
	pthread_create(&sender, NULL, flood, NULL);
	tap_ok(after_packets(100) && !tally(HIT), "setup: packets reach the program, and it finds no job");
	if (saina_ctl_open(&sub, "kernel", &error) || saina_ctl_subscribe(sub, SAINA_GROUPS_EVENTS))
		tap_ok(false, "subscribing: %s", error);
	for (i = 0; i < rounds; i++) {
		bad += life(&after_death);
		while (sub && (ret = saina_ctl_next(sub, 0, event_cb, NULL)) != -ETIMEDOUT) {
			if (ret < 0 && ret != -ENOBUFS)
				break;
			events += ret == 1;
			lost += ret == -ENOBUFS;
		}
	}
	sent = tally(EVENT_SENT);
	tap_ok(!bad, "a job is made, changed and deleted %d times under traffic", rounds);
	tap_ok(tally(HIT) && tally(MISS) > 100, "some packets find a job, and some find none");
	tap_ok(!after_death, "a deleted job is not found by a later packet (%lu times)", after_death);
	tap_ok(!tally(TORN), "what a packet finds of a job is always of one moment");
	tap_ok(events > 0 && (unsigned long)events <= sent,
	       "subscribers get the events that are sent from softirq (%d of %lu, rest lost %d times)", events,
	       sent, lost);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(sender, NULL);
	tap_ok(!sender_failed, "the sender of the traffic has no error");
	tap_note("%lu packets, %lu of them with a job", packets(), tally(HIT));

	/* the interface goes with program and a live worker */
	request_job_new("live", 2, 1000);
	request_worker_bind(0, 0, if_nametoindex("sl0"));
	tap_ok(!system("ip link del sl0"), "an interface with program and worker can be deleted");
	tap_ok(!request_worker_state(0, 0, SAINA_WORKER_STATE_SLOW),
	       "the worker behind a deleted interface is alive: only silence ends it");
	request_job_del(0);
	bpf_object__close(object);
	saina_ctl_close(sub);
	return tap_done();
}
