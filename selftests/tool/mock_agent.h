/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A mock of the control plane: a unix socket that records requests as text and sends the replies
 * that the test wants, right or wrong.
 */
#ifndef TOOL_MOCK_AGENT_H
#define TOOL_MOCK_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>

struct mock_agent {
	int fd;
	char dir[64];
	char path[96];
	char bin[256];		/* the program under test */
	/* Answers one request on @fd; runs in the mock's thread. */
	void (*answer)(int fd, const struct nlmsghdr *req, void *arg);
	void *arg;
	char requests[8192];	/* all requests since mock_reset(), "; " between them */
};

/* For the program @other if that is not NULL, else @name of the build directory.  It ends the test if it fails. */
void mock_start(struct mock_agent *m, const char *name, const char *other);
void mock_reset(struct mock_agent *m, void (*answer)(int, const struct nlmsghdr *, void *),
		void *arg);
void mock_stop(struct mock_agent *m);

/* Replies. */
void mock_ack(int fd, const struct nlmsghdr *req, void *arg);	/* the end, without an object */
struct nlmsghdr *mock_msg(char *buf, const struct nlmsghdr *req, int cmd);
void mock_send(int fd, const struct nlmsghdr *nlh);
/* A refusal as the agent makes it; @offs, @miss and @nest: 0 = none. */
void mock_refuse(int fd, const struct nlmsghdr *req, int err, const char *text,
		 unsigned int offs, unsigned int miss, unsigned int nest);

/*
 * Runs the program with the words of @line (separated by blanks, '' is an empty word) against the mock.
 * Returns the exit status, 128 + N if signal N ended it.
 */
int mock_run(const struct mock_agent *m, const char *line, char *out,
	     size_t out_size, char *err, size_t err_size);
/*
 * The same for a command that does not end: sends signal @sig after @lines lines of output. Returns
 * -1 if they do not come within 20 s.
 */
int mock_monitor(const struct mock_agent *m, const char *line, int lines, int sig,
		 char *out, size_t size);

#endif /* TOOL_MOCK_AGENT_H */
