/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Sockets: datagrams in and out, and what the interface can do.  Takes no locks.  Only
 * saina_io_open() (name service), saina_io_wait() and saina_io_wait_timer() block.  After
 * saina_io_open() only the thread that drives may call, but for saina_io_wake(), _set_timer() and
 * _wait_timer().
 */
#ifndef SAINA_IO_H
#define SAINA_IO_H

#include <netinet/in.h>
#include "session/check.h"

/**
 * struct saina_io
 * @ucast: socket for all that is sent and for the answers
 * @mcast: socket for results, -1 until WELCOME
 * @wake: eventfd that ends saina_io_wait() from another thread
 * @timer: timerfd that ends saina_io_wait_timer()
 * @shm: shared-memory socket to poll, -1 if none; not owned
 * @ctrl: control port of the aggregator
 * @data: data port of the aggregator
 * @local: our address
 * @address: of the aggregator, as text
 * @ifindex: of our interface
 * @ifname: of our interface
 * @mtu: of our interface
 * @rx: receive buffers of @ucast and @mcast (recv.c)
 * @drops: SO_RXQ_OVFL of @ucast and @mcast
 * @buf: a batch of messages to send
 * @msg: length of each message in @buf
 * @n: messages in @buf
 * @done: messages of @buf that were sent
 * @writable: poll said that @ucast has room
 * @more: the last receive may have left something
 * @batches: the last receive of @mcast read whole batches
 * @segment: UDP_SEGMENT works here
 * @congested: ENOBUFS since the caller last cleared it
 * @errors: ICMP errors are kept for saina_io_unreached()
 * @held_ns: do not try to send @buf again before; 0: as soon as the socket has room
 * @refusals: how often in succession the kernel refused @buf
 * @err: errno of the last refusal, 0 if @buf was sent
 * @ctrl_err: likewise of the last message of saina_io_message()
 * @noted_err: errno of the last note to the user
 * @notes: lines for the user
 * @error: why a call failed
 */
struct saina_io {
	int	ucast, mcast, wake, timer, shm;
	struct sockaddr_in ctrl, data;
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
	bool	writable, more, batches;
	bool	segment, congested, errors;
	uint64_t held_ns;
	unsigned int refusals;
	int	err, ctrl_err, noted_err;
	struct saina_notes notes;
	char	error[200];
};

/* socket.c.  @interface may be NULL; 0 or -errno with the reason in @error */
int saina_io_open(struct saina_io *io, const char *aggregator, const char *interface);
int saina_io_group(struct saina_io *io, const struct saina_job *job);
/* The interface may have been replaced: joins the group by the new one.  True: it was. */
bool saina_io_relink(struct saina_io *io, const struct saina_job *job);
/* Sends a message to the group that does not leave this host; false: it could not be sent. */
bool saina_io_loop(struct saina_io *io, const struct saina_job *job);
/* The last ICMP error about what was sent. */
enum saina_unreached saina_io_unreached(struct saina_io *io);
/* Stops keeping ICMP errors. */
void saina_io_no_errors(struct saina_io *io);
uint32_t saina_io_room(const struct saina_io *io);	/* batches that @mcast holds */
void saina_io_mtu(struct saina_io *io);		/* reads it again */
void saina_io_close(struct saina_io *io);
int saina_io_gro(struct saina_io *io);		/* 1: GRO is on; 0: off; negative: unknown */
void saina_io_wake(struct saina_io *io);
void saina_io_set_timer(struct saina_io *io, uint64_t ns);	/* from now on; 0: never */
void saina_io_wait_timer(struct saina_io *io);

/* What can be read.  saina_io_wait() waits for that, for saina_io_wake() or for @ns. */
struct saina_ready {
	bool ucast, mcast, shm;
};
struct saina_ready saina_io_wait(struct saina_io *io, uint64_t ns);

/* recv.c: fills the buffers of a socket; how many, or negative */
#define SAINA_IO_BUFFERS 16
int saina_io_receive(struct saina_io *io, bool mcast);

/* The content of a buffer: messages of @size bytes, of which the last one may be shorter. */
struct saina_datagram {
	const uint8_t *p;
	size_t	left, size;
	enum saina_source from;
	bool	overflow;	/* earlier datagrams did not fit in the socket's queue */
};
void saina_io_datagram(struct saina_io *io, bool mcast, int i, struct saina_datagram *d);
int saina_io_rx_init(struct saina_io *io);

/* send.c: room for a batch in @buf */
int saina_io_buffer(struct saina_io *io);
/*
 * Sends the first @n messages of @len bytes in @buf, together; not all of them if the socket is
 * full or the kernel refuses them.
 */
void saina_io_send(struct saina_io *io, unsigned int n, size_t len, uint64_t now);
static inline bool saina_io_pending(const struct saina_io *io)
{
	return io->done < io->n;
}
/* Sends what is pending, unless @held_ns says to wait. */
void saina_io_flush(struct saina_io *io, uint64_t now);
/* Sends @m now; returns whether it went twice in one batch. */
bool saina_io_message(struct saina_io *io, const struct saina_session_msg *m);

#endif /* SAINA_IO_H */
