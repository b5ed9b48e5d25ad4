// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs with an uplink: the ring that says which slots have become AWAY.  The outer map alone says
 * which exist, so that an agent that takes over finds them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "dp/priv.h"

/* Room for twice as many records as the job has slots: each is AWAY once in a while. */
static __u32 ring_bytes(const struct saina_job_conf *c)
{
	__u32 record = sizeof(struct saina_away) + BPF_RINGBUF_HDR_SZ, page = getpagesize();

	return 2 * c->pool * record > page ? 2 * c->pool * record : page;
}

int dp_uplink_grow(struct saina_dp *dp, const struct saina_job_conf *c)
{
	char name[16];
	int fd, err;

	if (!c->uplink || dp_inner_id(dp, DP_AWAY, c->job))
		return 0;
	snprintf(name, sizeof(name), "saina_away%u", c->job);
	fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, name, 0, 0, ring_bytes(c), NULL);
	if (fd < 0)
		return dp_fail(dp, -errno, "cannot create the ring of %u bytes for the relay of job %u: %s",
			       ring_bytes(c), c->job, strerror(errno));
	err = dp_outer_set(dp, DP_AWAY, c->job, c->job, fd);
	close(fd);
	return err;
}

void dp_uplink_clear(struct saina_dp *dp, const struct saina_job_conf *c)
{
	if (dp_inner_id(dp, DP_AWAY, c->job))
		dp_outer_clear(dp, DP_AWAY, c->job);
}

void dp_uplink_shrink(struct saina_dp *dp, const struct saina_job_conf *c)
{
	if (!c->uplink)
		dp_uplink_clear(dp, c);
}

int saina_dp_uplink_grant(struct saina_dp *dp, __u16 job, int fd[2])
{
	struct dp_job *j = dp_job_find(dp, job);

	if (!j || !j->conf.uplink)
		return dp_fail(dp, -ENOENT, "job %u has no uplink in the data path", job);
	fd[1] = dp_inner_open(dp, DP_AWAY, job);
	if (fd[1] < 0)
		return dp_fail(dp, fd[1], "job %u has no ring for its relay: %s", job,
			       strerror(-fd[1]));
	fd[0] = dp_inner_open(dp, DP_HOT + dp_size_index(j->conf.payload), job);
	if (fd[0] >= 0)
		return 0;
	close(fd[1]);
	return dp_fail(dp, fd[0], "job %u has no hot slots: %s", job, strerror(-fd[0]));
}

/* The kernel gives no number of a map again before it has given all; another boot has another id. */
__u64 saina_dp_uplink_incarnation(struct saina_dp *dp, __u16 job)
{
	struct dp_job *j = dp_job_find(dp, job);
	__u32 id = j ? dp_inner_id(dp, DP_HOT + dp_size_index(j->conf.payload), job) : 0;
	__u64 hash = 0xcbf29ce484222325ull;	/* FNV-1a */
	char text[64] = "";
	FILE *f;

	if (!id)
		return 0;
	f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (!f || !fgets(text, 40, f))
		dp_log(dp, 1, "cannot read the id of this boot: %s", strerror(errno));
	if (f)
		fclose(f);
	snprintf(text + strcspn(text, "\n"), 16, "%u", id);
	for (const char *p = text; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3ull;
	return hash ? hash : 1;
}
