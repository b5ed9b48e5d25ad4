// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <linux/netlink.h>

#include "ctl/obj.h"
#include "tool/mock_agent.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;

/* ---- requests, as text ---- */

/* "elem-type" as ELEM_TYPE */
static void name_text(FILE *f, const char *name)
{
	for (; *name; name++)
		fputc(*name == '-' ? '_' : toupper(*name), f);
}

static void attr_text(FILE *f, const struct saina_attr_class *c, const struct nlattr *a)
{
	const struct saina_attr *row = c ? saina_ctl_attr(c, mnl_attr_get_type(a)) : NULL;
	unsigned int len = mnl_attr_get_payload_len(a);
	const void *p = mnl_attr_get_payload(a);
	const struct nlattr *inner;
	__u64 v = 0;

	if (!row) {
		fprintf(f, " ?%u", mnl_attr_get_type(a));
		return;
	}
	fputc(' ', f);
	name_text(f, row->name);
	fputc('=', f);
	if (row->kind == SAINA_ATTR_STRING) {
		if (!len || ((const char *)p)[len - 1] || strlen(p) != len - 1)
			fprintf(f, "(string without end)");
		else
			fprintf(f, "%s", (const char *)p);
	} else if (row->kind == SAINA_ATTR_NEST) {
		fprintf(f, a->nla_type & NLA_F_NESTED ? "{" : "(not nested){");
		mnl_attr_for_each_nested(inner, a)
			attr_text(f, row->nest, inner);
		fprintf(f, " }");
	} else if (!strcmp(row->name, "weights") && len == row->size) {
		for (const __u16 *w = p; (const char *)w < (const char *)p + len && *w; w++)
			fprintf(f, "%s%u", (const void *)w == p ? "" : ",", *w);
	} else if (len != row->size || len > sizeof(v)) {
		fprintf(f, "(%u bytes)", len);
	} else {
		memcpy(&v, p, len);	/* tests run on little endian machines */
		fprintf(f, "%" PRIu64, (uint64_t)v);
	}
}

static void request_text(char *text, size_t size, const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);
	const struct saina_op *op = saina_ctl_op(g->cmd);
	const struct nlattr *a;
	FILE *f = fmemopen(text, size, "w");

	name_text(f, op ? op->name : "?");
	fprintf(f, "%s",
		(nlh->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP ? " dump" :
		nlh->nlmsg_flags & NLM_F_ACK		      ? "" :
								" (no ack)");
	if (nlh->nlmsg_type != SAINA_NLMSG_TYPE || g->version != SAINA_FAMILY_VERSION ||
	    !(nlh->nlmsg_flags & NLM_F_REQUEST))
		fprintf(f, " (bad header)");
	mnl_attr_for_each(a, nlh, sizeof(*g))
		attr_text(f, op ? op->class : NULL, a);
	fclose(f);
}

/* ---- the server ---- */

static void serve(struct mock_agent *m, int fd)
{
	char buf[16384] __attribute__((aligned(8)));
	ssize_t n;

	for (;;) {
		const struct nlmsghdr *nlh = (void *)buf;
		void (*answer)(int, const struct nlmsghdr *, void *);
		size_t used;
		void *arg;

		n = recv(fd, buf, sizeof(buf), 0);
		if (n < (ssize_t)(sizeof(*nlh) + sizeof(struct genlmsghdr)) ||
		    nlh->nlmsg_len != (size_t)n)
			return;
		pthread_mutex_lock(&lock);
		used = strlen(m->requests);
		if (used && used + 2 < sizeof(m->requests))
			used += sprintf(m->requests + used, "; ");
		request_text(m->requests + used, sizeof(m->requests) - used, nlh);
		answer = m->answer;
		arg = m->arg;
		pthread_mutex_unlock(&lock);
		answer(fd, nlh, arg);
	}
}

static void *run(void *arg)
{
	struct mock_agent *m = arg;
	int fd;

	while ((fd = accept4(m->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		serve(m, fd);
		close(fd);
	}
	return NULL;
}

void mock_start(struct mock_agent *m, const char *name, const char *other)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	const char *build = getenv("SAINA_BUILD");

	memset(m, 0, sizeof(*m));
	if (other)
		snprintf(m->bin, sizeof(m->bin), "%s", other);
	else
		snprintf(m->bin, sizeof(m->bin), "%s/%s", build ? build : "build", name);
	m->answer = mock_ack;
	strcpy(m->dir, "/tmp/saina-tool-test-XXXXXX");
	if (!mkdtemp(m->dir))
		goto fail;
	snprintf(m->path, sizeof(m->path), "%s/control", m->dir);
	strcpy(sun.sun_path, m->path);
	m->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (m->fd >= 0 && !bind(m->fd, (void *)&sun, sizeof(sun)) && !listen(m->fd, 16) &&
	    !pthread_create(&thread, NULL, run, m))
		return;
fail:
	printf("Bail out! no mock agent: %m\n");
	exit(1);
}

void mock_reset(struct mock_agent *m, void (*answer)(int, const struct nlmsghdr *, void *),
		void *arg)
{
	pthread_mutex_lock(&lock);
	m->requests[0] = 0;
	m->answer = answer;
	m->arg = arg;
	pthread_mutex_unlock(&lock);
}

void mock_stop(struct mock_agent *m)
{
	shutdown(m->fd, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(m->fd);
	unlink(m->path);
	rmdir(m->dir);
}

void mock_send(int fd, const struct nlmsghdr *nlh)
{
	/* the tool may have exited already */
	send(fd, nlh, nlh->nlmsg_len, MSG_NOSIGNAL);
}

struct nlmsghdr *mock_msg(char *buf, const struct nlmsghdr *req, int cmd)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *g;

	nlh->nlmsg_type = SAINA_NLMSG_TYPE;
	nlh->nlmsg_seq = req ? req->nlmsg_seq : 0;
	if (req && (req->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP)
		nlh->nlmsg_flags = NLM_F_MULTI;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = cmd;
	g->version = SAINA_FAMILY_VERSION;
	return nlh;
}

void mock_refuse(int fd, const struct nlmsghdr *req, int err, const char *text,
		 unsigned int offs, unsigned int miss, unsigned int nest)
{
	char buf[1024] __attribute__((aligned(8)));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nlmsgerr *e;

	nlh->nlmsg_type = NLMSG_ERROR;
	nlh->nlmsg_flags = NLM_F_CAPPED | (err ? NLM_F_ACK_TLVS : 0);
	nlh->nlmsg_seq = req->nlmsg_seq;
	e = mnl_nlmsg_put_extra_header(nlh, sizeof(*e));
	e->error = -err;
	e->msg = *req;
	if (text)
		mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, text);
	if (offs)
		mnl_attr_put_u32(nlh, NLMSGERR_ATTR_OFFS, offs);
	if (miss)
		mnl_attr_put_u32(nlh, NLMSGERR_ATTR_MISS_TYPE, miss);
	if (nest)
		mnl_attr_put_u32(nlh, NLMSGERR_ATTR_MISS_NEST, nest);
	mock_send(fd, nlh);
}

void mock_ack(int fd, const struct nlmsghdr *req, void *arg)
{
	char buf[64] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;

	if ((req->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP) {
		mock_refuse(fd, req, 0, NULL, 0, 0, 0);
		return;
	}
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = NLMSG_DONE;
	nlh->nlmsg_flags = NLM_F_MULTI;
	nlh->nlmsg_seq = req->nlmsg_seq;
	*(int *)mnl_nlmsg_put_extra_header(nlh, sizeof(int)) = 0;
	mock_send(fd, nlh);
}

/* ---- running the tool ---- */

static void child(const struct mock_agent *m, const char *line, int out, int err)
{
	char copy[1024], *argv[64], *save, *word;
	int n = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	argv[n++] = (char *)m->bin;
	for (word = strtok_r(copy, " ", &save); word && n < 63; word = strtok_r(NULL, " ", &save))
		argv[n++] = strcmp(word, "''") ? word : "";
	argv[n] = NULL;
	dup2(out, 1);
	dup2(err, 2);
	setenv("SAINA_CONTROL", m->path, 1);
	setenv("LC_ALL", "C", 1);
	setenv("TZ", "UTC", 1);
	execv(m->bin, argv);
	_exit(127);
}

static void drain(int fd, char *buf, size_t size, size_t *n, bool *open)
{
	char extra[4096];
	ssize_t got;

	got = *n + 1 < size ? read(fd, buf + *n, size - 1 - *n) : read(fd, extra, sizeof(extra));
	if (got <= 0)
		*open = false;
	else if (*n + 1 < size)
		*n += got;
}

int mock_run(const struct mock_agent *m, const char *line, char *out,
	     size_t out_size, char *err, size_t err_size)
{
	bool out_open = true, err_open = true;
	size_t out_n = 0, err_n = 0;
	int o[2], e[2], status;
	pid_t pid;

	if (pipe2(o, O_CLOEXEC) || pipe2(e, O_CLOEXEC))
		abort();
	pid = fork();
	if (!pid)
		child(m, line, o[1], e[1]);
	close(o[1]);
	close(e[1]);
	while (out_open || err_open) {
		struct pollfd p[2] = { { out_open ? o[0] : -1, POLLIN, 0 },
				       { err_open ? e[0] : -1, POLLIN, 0 } };

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents)
			drain(o[0], out, out_size, &out_n, &out_open);
		if (p[1].revents)
			drain(e[0], err, err_size, &err_n, &err_open);
	}
	out[out_n] = err[err_n] = 0;
	close(o[0]);
	close(e[0]);
	while (waitpid(pid, &status, 0) < 0)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int mock_monitor(const struct mock_agent *m, const char *line, int lines, int sig,
		 char *out, size_t size)
{
	int o[2], status, have = 0;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	if (pipe2(o, O_CLOEXEC))
		abort();
	pid = fork();
	if (!pid)
		child(m, line, o[1], 2);
	close(o[1]);
	while (have < lines) {
		struct pollfd p = { o[0], POLLIN, 0 };

		if (poll(&p, 1, 20000) <= 0)
			break;
		got = read(o[0], out + n, size - 1 - n);
		if (got <= 0)
			break;
		for (ssize_t i = 0; i < got; i++)
			have += out[n + i] == '\n';
		n += got;
	}
	out[n] = 0;
	kill(pid, sig);
	waitpid(pid, &status, 0);
	close(o[0]);
	return have < lines ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
