/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections (AF_UNIX, SOCK_SEQPACKET) of processes that are not trusted.
 *
 * Such a process can send descriptors (SCM_RIGHTS), and whoever drops the last reference to a
 * file may wait for it: to close one of a FUSE mount waits for its server, to drop a TCP socket
 * with SO_LINGER waits for its peer, also when the descriptor was never installed.  So this
 * process neither installs a foreign descriptor nor drops one.  From Linux 6.16 on the kernel
 * refuses to send any here (SO_PASSRIGHTS).  Before, a message is looked at (MSG_PEEK) before it
 * is taken: one with descriptors is left where it is, and the connection is closed by a child
 * that does nothing else.
 */
#ifndef AGENT_PEER_GUARD_H
#define AGENT_PEER_GUARD_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define PEERS_OPEN	   512	/* connections of all rooms, no more than these */
#define PEERS_KEPT	   (PEERS_OPEN + 64) /* of them that wait for a child */
#define PEERS_CHILDREN 8	/* at a time: one may hang for as long as the sender likes */

/**
 * struct peer_guard
 * @kept: connections that only a child may close
 * @child: processes that close some, 0: none
 * @foreign: connections that came with descriptors
 */
struct peer_guard {
	int kept[PEERS_KEPT];
	unsigned int n;
	pid_t child[PEERS_CHILDREN];
	uint64_t foreign;
};

/* A listening socket at @path, which everybody may connect to, or a negative errno. */
int peer_listen(const char *path, int backlog);
/* Has the kernel refuse descriptors that are sent to @listener.  0, or -1 and errno: it cannot. */
int peer_refuse_descriptors(int listener);
/*
 * A connection and who is at its other end; -EAGAIN: there is none, -EBUSY: none can be taken
 * now, another negative errno: one was lost.
 */
int peer_accept(struct peer_guard *s, int listener, struct ucred *who);
/*
 * A message: its length, which may be more than @size; 0: there will be no more; -EAGAIN: there
 * is none now; -EBADMSG: one that is empty or comes with descriptors; or another negative errno.
 */
ssize_t peer_receive(int fd, void *buf, size_t size);
void peer_close(struct peer_guard *s, int fd);
/* Closes what can be closed now of what is kept. */
void peer_reap(struct peer_guard *s);
/* Closes a listening socket, and what nobody has accepted. */
void peer_unlisten(struct peer_guard *s, int listener);

#endif /* AGENT_PEER_GUARD_H */
