// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "agent/uplink/internal.h"

static void child(char *const argv[], int netns, int in, int out)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (netns >= 0 && setns(netns, CLONE_NEWNET)) {
		dprintf(out, "cannot enter the namespace: %s", strerror(errno));
		_exit(126);
	}
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(out, STDERR_FILENO) < 0)
		_exit(126);
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "%s: %s", argv[0], strerror(errno));
	_exit(127);
}

int command_run(char *const argv[], int netns, const char *input, char *why, size_t size)
{
	int in = memfd_create("input", MFD_CLOEXEC), out = memfd_create("output", MFD_CLOEXEC);
	int ret, status = 0;
	ssize_t n;
	pid_t pid;

	if (in < 0 || out < 0 || pwrite(in, input, strlen(input), 0) < 0) {
		ret = -errno;
		goto err;
	}
	pid = fork();
	if (!pid)
		child(argv, netns, in, out);
	if (pid < 0) {
		ret = -errno;
		goto err;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	ret = WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EPROTO;
	n = pread(out, why, size - 1, 0);
	why[n > 0 ? n : 0] = 0;
	why[strcspn(why, "\n")] = 0;
	goto out;
err:
	snprintf(why, size, "%s", strerror(-ret));
out:
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return ret;
}
