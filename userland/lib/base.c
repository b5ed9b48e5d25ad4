// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* What all files of the library need: the clock, error messages, the lock, random numbers. */
#include <errno.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "base.h"

static __thread char open_error[256];

uint64_t saina_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int saina_error(struct saina *s, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->error, sizeof(s->error), fmt, ap);
	va_end(ap);
	return err;
}

int saina_open_error(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(open_error, sizeof(open_error), fmt, ap);
	va_end(ap);
	return err;
}

int saina_check_size(struct saina *s, const void *out, const char *wrong)
{
	size_t size = *(const size_t *)out;

	return size < sizeof(size) || size > 4096 ? saina_error(s, -EINVAL, "%s", wrong) : 0;
}

int saina_copy_out(struct saina *s, void *out, const void *from, size_t known, const char *wrong)
{
	size_t size = *(const size_t *)out;
	int ret = saina_check_size(s, out, wrong);

	if (ret)
		return ret;
	memset(out, 0, size);
	memcpy(out, from, size < known ? size : known);
	*(size_t *)out = size;
	return 0;
}

int saina_lock(struct saina *s)
{
	if (!s)
		return -EINVAL;
	if (getpid() != s->pid)
		return saina_error(s, -ECHILD,
				   "this handle belongs to process %d: a forked child can only close "
				   "it, and open a handle of its own",
				   (int)s->pid);
	pthread_mutex_lock(&s->lock);
	return 0;
}

int saina_unlock(struct saina *s, int ret)
{
	pthread_mutex_unlock(&s->lock);
	return ret;
}

int saina_session_error(struct saina *s)
{
	if (s->session.phase != PHASE_FAILED)
		return 0;
	return saina_error(s, s->session.err, "%s", s->session.error);
}

void saina_fill_nonce(struct saina_session *j)
{
	while (!j->spare_nonce)
		if (getrandom(&j->spare_nonce, sizeof(j->spare_nonce), 0) < 0)
			j->spare_nonce = saina_now();
}

const char *saina_error_text(const struct saina *s)
{
	return s ? s->error : open_error;
}
