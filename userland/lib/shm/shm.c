// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Asks the agent for the shared arrays, and maps them.  Nothing here waits. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "shm.h"

#define AGAIN_NS (1000 * MSEC)
#define TRIES_MAX 5
#define TOUCH_MAX (256 << 20)

void saina_shm_init(struct saina_shm *s, const char *path)
{
	memset(s, 0, sizeof(*s));
	s->fd = -1;
	s->path = path && *path ? strdup(path) : NULL;
}

static void unmap_arrays(struct saina_shm *s)
{
	if (s->input)
		munmap(s->input, s->input_len);
	if (s->output)
		munmap((void *)s->output, s->output_len);
	s->input = NULL;
	s->output = NULL;
	s->output_id = 0;
}

static void close_socket(struct saina_shm *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void saina_shm_exit(struct saina_shm *s)
{
	unmap_arrays(s);
	close_socket(s);
	free((void *)s->path);
	s->path = NULL;
}

/* Sends the request; the reply comes on the same connection. */
static int send_request(const struct saina_shm *s, const struct saina_job *job)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct saina_shm_request q = {
		.version = SAINA_SHM_VERSION,
		.job = job->id,
		.worker = job->worker,
		.session = job->session,
	};
	int fd;

	errno = ENAMETOOLONG;
	if (strlen(s->path) >= sizeof(addr.sun_path))
		return -1;
	strcpy(addr.sun_path, s->path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
			send(fd, &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

uint64_t saina_shm_run(struct saina_shm *s, const struct saina_job *job, uint64_t now)
{
	bool have = s->output_id && s->session == job->session &&
		    (!s->wanted_id || s->wanted_id == s->output_id);

	if (!s->path || !job->by_reference || have)
		return NEVER;
	if (now < s->again_ns)
		return s->again_ns;
	s->again_ns = now + AGAIN_NS;
	close_socket(s);
	s->tries++;
	s->fd = send_request(s, job);
	snprintf(s->why, sizeof(s->why),
		 "%s: %s; SAINA_SHARE must name the agent's socket \"share\", which a container must mount",
		 s->path, s->fd < 0 ? strerror(errno) : "no answer");
	return s->again_ns;
}

const char *saina_shm_failure(const struct saina_shm *s, const struct saina_job *job)
{
	if (job->by_reference != SAINA_REFERENCE_ONLY)
		return NULL;
	if (!s->path)
		return "SAINA_SHARE is not set: set it to the path of the agent's socket \"share\", on whose host this worker must run";
	return s->tries > TRIES_MAX ? s->why : NULL;
}

/*
 * Reads each page once: on some virtual machines the first access takes microseconds, for which
 * the first rounds would wait.
 */
static void touch(const void *p, size_t len, size_t page)
{
	const volatile uint8_t *byte = p;

	for (size_t at = 0; at < len && at < TOUCH_MAX; at += page)
		(void)byte[at];
}

static bool map_arrays(struct saina_shm *s, const struct saina_job *job,
		       const struct saina_shm_reply *a, const int fd[2])
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *p;

	unmap_arrays(s);
	if (a->segments != job->segments || a->pool != job->pool || a->payload != saina_job_count(job) ||
	    !a->output || !a->ring || a->ring & (a->ring - 1)) {
		errno = EPROTO;
		return false;
	}
	s->segments = job->segments;
	s->ring = a->ring;
	s->pool = job->pool;
	s->entry = sizeof(struct saina_input_head) + job->wire;
	s->input_len = (job->pool * s->entry + page - 1) & ~(page - 1);
	s->output_len = ((size_t)job->segments * s->ring * s->entry + page - 1) & ~(page - 1);
	p = mmap(NULL, s->input_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd[0], 0);
	if (p == MAP_FAILED)
		return false;
	s->input = p;
	p = mmap(NULL, s->output_len, PROT_READ, MAP_SHARED, fd[1], 0);
	if (p == MAP_FAILED)
		return false;
	s->output = p;
	touch(s->input, s->input_len, page);
	touch(s->output, s->output_len, page);
	s->session = job->session;
	s->output_id = a->output;
	s->tries = 0;
	return true;
}

/* Tries again, soon if there is no other way. */
static void refused(struct saina_shm *s, const struct saina_job *job, struct saina_notes *notes,
		    const char *why)
{
	snprintf(s->why, sizeof(s->why), "%s", why);
	if (job->by_reference == SAINA_REFERENCE_ONLY)
		return;
	saina_note(notes, "no shared memory, so gradients go as messages: %s", why);
	s->again_ns += 30 * AGAIN_NS;
}

void saina_shm_receive(struct saina_shm *s, const struct saina_job *job, struct saina_notes *notes)
{
	union {
		char buf[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct saina_shm_reply a;
	struct iovec iov = {&a, sizeof(a)};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	struct cmsghdr *c;
	int fd[2];
	ssize_t n;

	n = recvmsg(s->fd, &m, MSG_CMSG_CLOEXEC);
	if (n < 0 && errno == EAGAIN)
		return;
	close_socket(s);
	if (n != sizeof(a))
		return;
	c = CMSG_FIRSTHDR(&m);
	if (a.error || !c || c->cmsg_len != CMSG_LEN(sizeof(fd))) {
		a.text[sizeof(a.text) - 1] = 0;
		refused(s, job, notes, a.text);
		return;
	}
	memcpy(fd, CMSG_DATA(c), sizeof(fd));
	if (!map_arrays(s, job, &a, fd)) {
		int err = errno;

		unmap_arrays(s);
		snprintf(a.text, sizeof(a.text), "cannot map the memory from %.80s: %s", s->path,
			 strerror(err));
		refused(s, job, notes, a.text);
	}
	close(fd[0]);
	close(fd[1]);
}
