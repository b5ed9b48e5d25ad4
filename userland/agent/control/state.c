// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The state that the next start takes over: limits, jobs with their tokens, workers with
 * their sessions.  The whole file is written on every change, before a reply confirms the
 * change, synchronised and renamed into place.  After a crash in between, the next start restores
 * the state before the change, also in the data path.
 *
 * Where it cannot be written (the disk is full, or read-only) the change stays in force: workers
 * go on, and who sets a policy because of that trouble is not stopped by it.  But the reply, each
 * job and saina doctor say that it is not saved, and why; and it is tried again every second.
 *
 * The file has netlink messages as on the control socket: the owner of the jobs
 * (STATE_CMD_BACKEND), LIMITS_SET, a PORT_SET for each port whose hook is not the configured one, a
 * JOB_NEW for each job (with GENERATION, POLICY_SEQ and, as ROUND, its first round), each followed
 * by a WORKER_SET for each worker and, after that, what the family has no attributes for
 * (STATE_CMD_WORKER).  NLMSG_DONE ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/control/control.h"
#include "agent/control/encode.h"
#include "agent/control/state.h"
#include "core/show.h"
#include "ctl/obj.h"

static int write_msg(FILE *f, const struct nlmsghdr *nlh)
{
	static const char zero[NLMSG_ALIGNTO];
	size_t pad = NLMSG_ALIGN(nlh->nlmsg_len) - nlh->nlmsg_len;

	return fwrite(nlh, nlh->nlmsg_len, 1, f) == 1 && (!pad || fwrite(zero, pad, 1, f) == 1)
		       ? 0
		       : errno ? -errno : -EIO;
}

/* Generations are numbered by the backend and mean nothing to the other. */
static int write_backend(FILE *f, struct agent *a)
{
	struct msg m;
	__u32 *owner;

	msg_start(&m, STATE_CMD_BACKEND, 0, 0);
	owner = mnl_nlmsg_put_extra_header(m.nlh, sizeof(*owner));
	*owner = a->backend->ops->owner;
	return write_msg(f, m.nlh);
}

static int write_limits(FILE *f, struct agent *a)
{
	struct saina_limits_attrs o;
	struct msg m;

	saina_limits_show(a->jobs->core, SAINA_BACKEND_AGENT, &o);
	msg_start(&m, SAINA_CMD_LIMITS_SET, 0, 0);
	saina_ctl_encode(m.nlh, &saina_limits_class, &o);
	return write_msg(f, m.nlh);
}

static int write_worker(FILE *f, struct agent *a, const struct saina_job *job, int w)
{
	const struct worker_aux *aux = jobs_worker(a, job, w);
	struct saina_worker_attrs o;
	struct state_worker *sw;
	struct msg m;
	int ret;

	saina_worker_show(job, w, true, &o);
	if (job->worker[w].round)
		SAINA_PUT(&o, SAINA_A_WORKER_ROUND, round, job->worker[w].round);
	msg_start(&m, SAINA_CMD_WORKER_SET, 0, 0);
	saina_ctl_encode(m.nlh, &saina_worker_class, &o);
	ret = write_msg(f, m.nlh);
	if (ret)
		return ret;
	msg_start(&m, STATE_CMD_WORKER, 0, 0);
	sw = mnl_nlmsg_put_extra_header(m.nlh, sizeof(*sw));
	sw->nonce = aux->nonce;
	sw->first_round = aux->first_round;
	sw->worker = w;
	sw->formed = aux->formed;
	sw->ready = aux->ready;
	sw->fast = aux->fast;
	sw->shm_session = aux->shm_session;
	sw->incarnation = aux->incarnation;
	return write_msg(f, m.nlh);
}

static int write_job(FILE *f, struct agent *a, const struct saina_job *job)
{
	struct saina_job_attrs o;
	struct msg m;
	int w, ret;

	saina_job_show(job, true, &o);
	SAINA_PUT(&o, SAINA_A_JOB_ROUND, round, job->first_round);
	msg_start(&m, SAINA_CMD_JOB_NEW, 0, 0);
	saina_ctl_encode(m.nlh, &saina_job_class, &o);
	ret = write_msg(f, m.nlh);
	for (w = 0; !ret && w < saina_job_places(job); w++)
		if (job->worker[w].state != SAINA_WORKER_STATE_ABSENT)
			ret = write_worker(f, a, job, w);
	return ret;
}

static int write_port(FILE *f, const struct port *p)
{
	struct saina_port_attrs o = { 0 };
	struct msg m;

	SAINA_PUT_TEXT(&o, SAINA_A_PORT_IFNAME, ifname, p->name);
	SAINA_PUT(&o, SAINA_A_PORT_HOOK, hook, p->hook_requested);
	msg_start(&m, SAINA_CMD_PORT_SET, 0, 0);
	saina_ctl_encode(m.nlh, &saina_port_class, &o);
	return write_msg(f, m.nlh);
}

static int write_all(FILE *f, struct agent *a)
{
	const struct saina_job *job;
	struct msg m;
	int id, i, ret;

	ret = write_backend(f, a);
	if (!ret)
		ret = write_limits(f, a);
	for (i = 0; !ret && i < a->bridge->n; i++)
		if (a->bridge->port[i].hook_requested != a->cfg.hook)
			ret = write_port(f, &a->bridge->port[i]);
	for (id = 0; !ret && (job = saina_core_job_next(a->jobs->core, id)); id = job->id + 1)
		ret = write_job(f, a, job);
	if (ret)
		return ret;
	m.nlh = mnl_nlmsg_put_header(m.buf);
	m.nlh->nlmsg_type = NLMSG_DONE;
	return write_msg(f, m.nlh);
}

/* The rename is on the disk, too.  File systems that cannot do that need not. */
static int sync_directory(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (fsync(fd) && errno != EINVAL)
		ret = -errno;
	close(fd);
	return ret;
}

/* Writes the state to the new file @tmp. */
static int write_file(struct agent *a, const char *tmp)
{
	int fd, ret;
	FILE *f;

	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	f = fdopen(fd, "w");
	if (!f) {
		ret = -errno;
		close(fd);
		return ret;
	}
	errno = 0;
	ret = write_all(f, a);
	if (!ret && (fflush(f) || (fsync(fd) && errno != EINVAL)))
		ret = -errno;
	if (fclose(f) && !ret)
		ret = -errno;
	return ret;
}

int state_save(struct agent *a, char *why, size_t size)
{
	char tmp[CONFIG_PATH_MAX + 16], path[CONFIG_PATH_MAX + 16];
	int ret;

	runtime_path(&a->runtime, "state.new", tmp, sizeof(tmp));
	runtime_path(&a->runtime, "state", path, sizeof(path));
	ret = write_file(a, tmp);
	if (!ret && rename(tmp, path))
		ret = -errno;
	if (ret)
		unlink(tmp);
	else
		ret = sync_directory(a->cfg.runtime_dir);
	if (ret)
		snprintf(why, size, "not saved for the next start of sainad: cannot write %.64s: %s",
			 path, strerror(-ret));
	return ret;
}

void state_remove(struct agent *a)
{
	char path[CONFIG_PATH_MAX + 16];

	unlink(runtime_path(&a->runtime, "state", path, sizeof(path)));
}
