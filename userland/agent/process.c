// SPDX-License-Identifier: GPL-2.0-or-later
/* The process: limits, going to the background, reporting that it is ready. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "agent/log.h"
#include "agent/process.h"

#define DESCRIPTORS 8192 /* 7 for each of 256 jobs, and some hundreds */

void process_limits(void)
{
	struct rlimit l, more = { DESCRIPTORS, DESCRIPTORS };

	if (getrlimit(RLIMIT_NOFILE, &l))
		return;
	/* raising the hard limit takes CAP_SYS_RESOURCE */
	if (l.rlim_max < DESCRIPTORS && !setrlimit(RLIMIT_NOFILE, &more))
		return;
	l.rlim_cur = l.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &l))
		log_warn("cannot raise the limit of file descriptors: %s", strerror(errno));
	if (l.rlim_max < DESCRIPTORS)
		log_warn("no more than %llu file descriptors are allowed, which may be too few for 256 jobs: raise LimitNOFILE= of the unit (or `ulimit -Hn`) to %d",
			 (unsigned long long)l.rlim_max, DESCRIPTORS);
}

int process_background(void)
{
	int fd[2], status;
	char byte;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid) {
		close(fd[1]);
		if (read(fd[0], &byte, 1) == 1)
			exit(0);
		exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									  : 1);
	}
	close(fd[0]);
	setsid();
	if (chdir("/"))
		return -errno;
	return fd[1];
}

void process_background_again(void)
{
	log_to_syslog();
	if (chdir("/"))
		log_warn("cannot change to directory /: %s", strerror(errno));
}

void process_detach(int background)
{
	int fd = open("/dev/null", O_RDWR);
	char null = 0;

	log_to_syslog();
	dup2(fd, 0);
	dup2(fd, 1);
	dup2(fd, 2);
	if (fd > 2)
		close(fd);
	if (write(background, &null, 1) != 1)
		log_warn("the process that started this one is gone");
	close(background);
}

void process_ready(const struct config *cfg)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (cfg->ready_fd >= 0) {
		if (write(cfg->ready_fd, "ready\n", 6) != 6)
			log_warn("--ready-fd: %s", strerror(errno));
		close(cfg->ready_fd);
	}
	if (len < 2 || len >= sizeof(addr.sun_path))
		return;
	memcpy(addr.sun_path, path, len);
	if (addr.sun_path[0] == '@')
		addr.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, "READY=1", 7, MSG_NOSIGNAL, (struct sockaddr *)&addr,
			     offsetof(struct sockaddr_un, sun_path) + len) < 0)
		log_warn("NOTIFY_SOCKET: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

bool process_reloads(const struct config *cfg)
{
	return cfg->daemonize || getenv("NOTIFY_SOCKET");
}

int process_restart(int argc, char **argv, int directory)
{
	bool again = argc > 1 && !strcmp(argv[1], CONFIG_RELOADED);
	char *args[argc + 2];
	int n = 0;

	args[n++] = argv[0];
	args[n++] = CONFIG_RELOADED;
	for (int i = again ? 2 : 1; i < argc; i++)
		args[n++] = argv[i];
	args[n] = NULL;
	if (!fchdir(directory))
		execv("/proc/self/exe", args);
	return -errno;
}
