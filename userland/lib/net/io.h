/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Sockets: datagrams in and out, and what the interface can do.  Nothing here is locked or
 * waits, but for saina_io_wait() and saina_io_rest(); after saina_io_open() all of it is
 * the driving thread's, but for kick, alarm and rest.
 */
#ifndef SAINA_IO_H
#define SAINA_IO_H

#include <netinet/in.h>
#include "session/session.h"

/**
 * struct saina_io
 * @ucast, @mcast: all that we send and the answers; results, -1 until WELCOME
 * @wake: eventfd, to end saina_io_wait() from another thread
 * @alarm: timerfd, to end saina_io_rest()
 * @lender: to be waited for, too; -1: there is none; somebody else's
 * @rx, @drops: recv.c; of @ucast, @mcast; @drops: SO_RXQ_OVFL
 * @buf: a train of messages; @msg: length of each
 * @n, @done: messages in @buf, those of them that have left
 * @more: the last call may not have read all that there was; @trains: of @mcast, it read trains
 * @writable: the socket said that there is room
 * @held_ns: what is pending is not tried again before; 0: as soon as the socket has room
 * @refusals: times that the kernel has refused it in succession, @err: why; 0: it was not refused
 * @ctrl_err: of the last message that went alone, likewise
 * @noted_err: of these, what there was a line about last
 * @errors: what hosts and routers say of what was sent is kept for saina_io_unreached()
 * @segment: UDP_SEGMENT works here
 * @congested: there was no room for what was sent (ENOBUFS); the thread's to clear
 */
struct saina_io {
	int	ucast, mcast, wake, alarm, lender;
	struct sockaddr_in ctrl, data;	/* of the aggregator */
	struct in_addr local;
	char	address[INET_ADDRSTRLEN];
	int	ifindex;
	char	ifname[16];
	unsigned int mtu;

	struct saina_rx *rx[2];
	uint32_t drops[2];

	uint8_t	*buf;
	size_t	msg;
	unsigned int n, done;
	bool	writable, more, trains;
	bool	segment, congested, errors;
	uint64_t held_ns;
	unsigned int refusals;
	int	err, ctrl_err, noted_err;
	struct saina_notes notes;
	char	error[200];		/* why one of the calls below failed */
};

/* socket.c.  @interface may be NULL; 0 or -errno with the reason in @error */
int saina_io_open(struct saina_io *io, const char *aggregator, const char *interface);
int saina_io_group(struct saina_io *io, const struct saina_job *job);
/* A message to ourselves by the group, which does not leave this host; false: it could not be sent. */
bool saina_io_loop(struct saina_io *io, const struct saina_job *job);
/* What has been said last of what was sent; until errors are not wanted any more. */
enum saina_unreached saina_io_unreached(struct saina_io *io);
void saina_io_no_errors(struct saina_io *io);
uint32_t saina_io_room(const struct saina_io *io);	/* trains that @mcast holds */
void saina_io_mtu(struct saina_io *io);		/* looks what it is now */
void saina_io_close(struct saina_io *io);
int saina_io_gro(struct saina_io *io);		/* 1 on, 0 off, negative: unknown */
void saina_io_kick(struct saina_io *io);
void saina_io_alarm(struct saina_io *io, uint64_t ns);	/* from now on; 0: never */
void saina_io_rest(struct saina_io *io);		/* until the alarm */

/* Until one of these, or @ns have passed. */
struct saina_ready {
	bool ucast, mcast, lender;
};
struct saina_ready saina_io_wait(struct saina_io *io, uint64_t ns);

/* recv.c: how many buffers of that socket could be filled; then, one after the other: */
#define SAINA_IO_BUFFERS 16
int saina_io_receive(struct saina_io *io, bool mcast);

/* What is in a buffer: messages of @size bytes, the last one may be shorter. */
struct saina_datagram {
	const uint8_t *p;
	size_t	left, size;
	enum saina_source from;
	bool	overflow;	/* datagrams did not fit the socket's queue */
};
void saina_io_datagram(struct saina_io *io, bool mcast, int i, struct saina_datagram *d);
int saina_io_rx_init(struct saina_io *io);

/* send.c: room for a train in @buf */
int saina_io_buffer(struct saina_io *io);
/* The first @n messages of @len bytes in @buf leave, together; not all of them if the
 * socket is full or the kernel refuses them.
 */
void saina_io_send(struct saina_io *io, unsigned int n, size_t len, uint64_t now);
static inline bool saina_io_pending(const struct saina_io *io)
{
	return io->done < io->n;
}
/* Sends what is pending, unless it is held. */
void saina_io_flush(struct saina_io *io, uint64_t now);
/* Returns whether it went twice in one batch. */
bool saina_io_message(struct saina_io *io, const struct saina_join_msg *m);

#endif /* SAINA_IO_H */
