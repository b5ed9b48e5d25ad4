/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections (AF_UNIX, SOCK_SEQPACKET) of untrusted processes.
 *
 * Such a peer can send descriptors (SCM_RIGHTS).  Dropping the last reference to a file may
 * block: closing a file of a FUSE mount waits for its server, dropping a TCP socket with
 * SO_LINGER waits for its peer, even if the descriptor was never installed.  So this process
 * neither installs a foreign descriptor nor drops one.  From Linux 6.16 on the kernel refuses
 * to send any (SO_PASSRIGHTS).  Before, each message is peeked at (MSG_PEEK) before it is
 * received.  A message with descriptors stays in the queue, and a child process that does
 * nothing else closes the connection.
 */
#ifndef AGENT_PEER_GUARD_H
#define AGENT_PEER_GUARD_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define PEERS_OPEN     512	/* most connections at all sockets together */
#define PEERS_KEPT     (PEERS_OPEN + 64) /* most connections that wait for a child */
#define PEERS_CHILDREN 8	/* at a time: the sender decides how long one hangs */

/**
 * struct peer_guard
 * @kept: connections that only a child may close, @n of them
 * @child: processes that close connections, 0: none
 * @foreign: number of connections that came with descriptors
 */
struct peer_guard {
	int kept[PEERS_KEPT];
	unsigned int n;
	pid_t child[PEERS_CHILDREN];
	uint64_t foreign;
};

/*
 * Listens at @path, where everybody may connect; @type: SOCK_SEQPACKET or SOCK_STREAM.  Replaces
 * a socket that nobody listens at.  Return: the socket or a negative errno.
 */
int peer_listen(const char *path, int type, int backlog);
/* Makes the kernel refuse descriptors sent to @listener.  Return: 0, or -1 and errno. */
int peer_refuse_descriptors(int listener);
/*
 * Accepts a connection; @who: credentials of the peer.  Return: the connection; -EAGAIN:
 * none waits; -EBUSY: none can be accepted now; another negative errno: one was lost.
 */
int peer_accept(struct peer_guard *s, int listener, struct ucred *who);
/*
 * Receives a message.  Return: its length, which may exceed @size; 0: end of the connection;
 * -EAGAIN: none is there; -EBADMSG: it is empty or has descriptors; another negative errno.
 */
ssize_t peer_receive(int fd, void *buf, size_t size);
void peer_close(struct peer_guard *s, int fd);
/* Reaps children, and starts one for the connections that wait. */
void peer_reap(struct peer_guard *s);
/* Closes a listening socket and the connections that nobody has accepted. */
void peer_unlisten(struct peer_guard *s, int listener);

#endif /* AGENT_PEER_GUARD_H */
