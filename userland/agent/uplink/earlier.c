// SPDX-License-Identifier: GPL-2.0-or-later
/* A relay that an earlier sainad has started: it is gone on with, or ended. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "agent/uplink/internal.h"

/* A relay of the job that an earlier sainad has started; -1: there is none. */
static int connect_to(__u16 job, pid_t *pid)
{
	struct timeval patience = { .tv_sec = 1 };
	struct sockaddr_un addr;
	socklen_t len = uplink_address(&addr, job), peer_len = sizeof(struct ucred);
	struct ucred peer;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&addr, len) &&
	    !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) && peer.uid == geteuid() &&
	    peer.pid > 0) {
		*pid = peer.pid;
		return fd;
	}
	close(fd);
	return -1;
}

/* Its program was replaced by a newer one. */
static bool is_outdated(pid_t pid)
{
	static const char mark[] = " (deleted)";
	char path[32], exe[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, exe, sizeof(exe));
	return n >= (ssize_t)strlen(mark) && !memcmp(exe + n - strlen(mark), mark, strlen(mark));
}

/* It has been handed over what this sainad would hand over. */
static bool fits_job(struct uplink *u, const struct saina_job *job, int fd, pid_t pid)
{
	struct uplink_handover its, ours;
	char why[SAINA_TEXT_LEN];

	return !is_outdated(pid) && recv(fd, &its, sizeof(its), 0) == (ssize_t)sizeof(its) &&
	       !relay_handover(u, job, &ours, why, sizeof(why)) && !memcmp(&its, &ours, sizeof(its));
}

bool relay_adopt(struct uplink *u, const struct saina_job *job, bool same_maps)
{
	struct pollfd process = { .fd = -1, .events = POLLIN }, hangup = { .events = 0 };
	bool fits, runs;
	pid_t pid;

	hangup.fd = connect_to(job->id, &pid);
	if (hangup.fd < 0)
		return false;
	process.fd = syscall(SYS_pidfd_open, pid, 0);
	fits = same_maps && fits_job(u, job, hangup.fd, pid);
	/* while the connection stands, the process is the one that @pid was read of */
	runs = process.fd >= 0 && !poll(&hangup, 1, 0);
	if (runs && fits) {
		u->pid = pid;
		u->process.fd = process.fd;
		u->socket.fd = hangup.fd;
		link_name(&u->link, job->id, u->incarnation);
		u->link.ifindex = if_nametoindex(u->link.name);
		if (relay_watch(u))
			return true;
		kill(pid, SIGKILL);
		relay_reap(u);
		return false;
	}
	if (runs) {
		syscall(SYS_pidfd_send_signal, process.fd, SIGKILL, NULL, 0);
		poll(&process, 1, 1000);
	}
	close(hangup.fd);
	if (process.fd >= 0)
		close(process.fd);
	return false;
}
