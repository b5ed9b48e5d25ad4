// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rawsend - sends frames that claim to be anything, through a packet socket.
 *
 *   rawsend INTERFACE [KEY=VALUE...]
 *
 * Without keys it sends one well-formed GRAD of 256 elements with the
 * interface's own addresses to 10.190.0.1; every key changes one thing and leaves
 * the rest right:
 *
 *   smac= dmac= sip= dip= sport= dport=     addresses (dmac: see mac_of)
 *   version= type= flags= elem= job= session= round= segment= count= worker=
 *   exponent= k= reserved= mask= contributors=          the SAINA header
 *   join=       a JOIN with this nonce and the token "none" (type=16 dport=48865 elem=0
 *               count=0)
 *   value=      every element of the payload (word of 32 bits)
 *   elems=      elements really there (default: count)
 *   cut=        bytes taken off the end of the frame, lengths left as they were
 *   iplen= udplen=   lengths said in the headers
 *   fragment=1  more fragments follow
 *   options=1   an IP header of 24 bytes
 *   tag=        VLAN tag control information (0: priority tag without priority)
 *   tpid=       its ethertype (0x8100)
 *   repeat=     how many frames
 *   rounds=N    each further frame one round later, and round 0 after round N - 1
 *   workers=1   each further frame from the next worker
 *   messages=   in each frame, each of the next segment
 *   mixed=1     ... and of the next worker
 *   gso=        the frame is a GSO batch of UDP, with this gso_size
 *   gsotype=    ... of another kind (VIRTIO_NET_HDR_GSO_...)
 *   csumstart= csumoffset=   where the kernel is to write a checksum, also without gso
 *   check=      UDP checksum (0; with gso the sum of the pseudo header)
 *   socket=1    by a UDP socket: addresses and source port are its own; with options, gso
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "saina/proto.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4	/* headers before 6.2 */
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

struct frame {
	struct virtio_net_hdr vnet;	/* sent if there is a gso_size or a checksum to write */
	struct ether_header eth;
	struct iphdr ip;
	__u8 rest[66000];
} __attribute__((packed));

struct wish {
	__u8 smac[6], dmac[6];
	__be32 sip, dip;
	long sport, dport;
	struct saina_hdr hdr;	/* host order until it is sent */
	struct saina_join join;
	long value, elems, cut, iplen, udplen, tag, tpid, messages, gso, gsotype, csumstart, csumoffset, check;
	bool fragment, options, workers, mixed, socket;
	long rounds, repeat;
};

static void die(const char *what)
{
	fprintf(stderr, "rawsend: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void usage(const char *word)
{
	fprintf(stderr, "rawsend: \"%s\": see the head of rawsend.c\n", word);
	exit(2);
}

static void own_addresses(int fd, const char *dev, struct wish *w)
{
	struct ifreq ifr = { 0 };
	int in = socket(AF_INET, SOCK_DGRAM, 0);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", dev);
	if (ioctl(fd, SIOCGIFHWADDR, &ifr))
		die(dev);
	memcpy(w->smac, ifr.ifr_hwaddr.sa_data, 6);
	if (in < 0 || ioctl(in, SIOCGIFADDR, &ifr))
		die("address of the interface");
	w->sip = ((struct sockaddr_in *)&ifr.ifr_addr)->sin_addr.s_addr;
	close(in);
}

static __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)(sum + (sum >> 16));
}

static __u16 ip_checksum(const void *p, size_t len)
{
	const __u8 *b = p;
	__u32 sum = 0;

	for (size_t i = 0; i < len; i += 2)
		sum += b[i] << 8 | b[i + 1];
	return htons(~fold(sum));
}

static void mac_parse(const char *text, __u8 *mac)
{
	if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4,
		   mac + 5) != 6)
		usage(text);
}

static void parse(struct wish *w, char *word)
{
	char *value = strchr(word, '='), *end;
	struct saina_hdr *h = &w->hdr;
	long n;

	if (!value)
		usage(word);
	*value++ = 0;
	if (!strcmp(word, "smac")) {
		mac_parse(value, w->smac);
		return;
	}
	if (!strcmp(word, "dmac")) {
		mac_parse(value, w->dmac);
		return;
	}
	if (!strcmp(word, "sip") || !strcmp(word, "dip")) {
		if (inet_pton(AF_INET, value, word[0] == 's' ? &w->sip : &w->dip) != 1)
			usage(value);
		return;
	}
	n = strtoull(value, &end, 0);
	if (*end || end == value)
		usage(value);
#define KEY(name, target) else if (!strcmp(word, name)) target = n
	if (0)
		;
	KEY("sport", w->sport);
	KEY("dport", w->dport);
	KEY("version", h->version);
	KEY("type", h->type);
	KEY("flags", h->flags);
	KEY("elem", h->elem);
	KEY("job", h->job);
	KEY("session", h->session);
	KEY("round", h->round);
	KEY("segment", h->segment);
	KEY("count", h->count);
	KEY("worker", h->worker);
	KEY("exponent", h->exponent);
	KEY("k", h->k);
	KEY("reserved", h->reserved);
	KEY("mask", h->mask);
	KEY("contributors", h->contributors);
	KEY("join", w->join.nonce);
	KEY("value", w->value);
	KEY("elems", w->elems);
	KEY("cut", w->cut);
	KEY("iplen", w->iplen);
	KEY("udplen", w->udplen);
	KEY("fragment", w->fragment);
	KEY("options", w->options);
	KEY("tag", w->tag);
	KEY("tpid", w->tpid);
	KEY("rounds", w->rounds);
	KEY("workers", w->workers);
	KEY("repeat", w->repeat);
	KEY("messages", w->messages);
	KEY("mixed", w->mixed);
	KEY("gso", w->gso);
	KEY("gsotype", w->gsotype);
	KEY("csumstart", w->csumstart);
	KEY("csumoffset", w->csumoffset);
	KEY("socket", w->socket);
	KEY("check", w->check);
	else
		usage(word);
#undef KEY
}

/*
 * What the kernel does to a GSO batch that a socket makes: the device is to finish its
 * checksums.
 */
static void metadata(const struct wish *w, struct frame *f, struct udphdr *udp, size_t ihl)
{
	size_t udp_at = sizeof(f->eth) + ihl;
	__u8 pseudo[12] = {};

	f->vnet = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_type = w->gso ? w->gsotype : VIRTIO_NET_HDR_GSO_NONE,
		.hdr_len = udp_at + sizeof(*udp), .gso_size = w->gso,
		.csum_start = w->csumstart >= 0 ? w->csumstart : (long)udp_at,
		.csum_offset = w->csumoffset,
	};
	memcpy(pseudo, &f->ip.saddr, 8);
	pseudo[9] = IPPROTO_UDP;
	memcpy(pseudo + 10, &udp->len, 2);
	udp->check = ~ip_checksum(pseudo, sizeof(pseudo));
}

static bool has_metadata(const struct wish *w)
{
	return w->gso || w->csumstart >= 0;
}

static size_t body_size(const struct wish *w)
{
	long elems = w->elems >= 0 ? w->elems : w->hdr.count;

	switch (w->hdr.type) {
	case SAINA_MSG_JOIN:
		return SAINA_CTRL_LEN - sizeof(struct saina_hdr);
	case SAINA_MSG_ASK:
		return sizeof(struct saina_ask);
	}
	return 4ul * elems;
}

/* One message, its bytes. */
static size_t message(const struct wish *w, const struct saina_hdr *host, struct saina_hdr *h)
{
	size_t body = body_size(w);
	__le32 *payload = (void *)(h + 1);

	*h = *host;
	h->job = htole16(h->job);
	h->session = htole64(h->session);
	h->round = htole32(h->round);
	h->segment = htole32(h->segment);
	h->count = htole16(h->count);
	h->mask = htole64(h->mask);
	if (w->hdr.type == SAINA_MSG_JOIN)
		memcpy(payload, &w->join, sizeof(w->join));
	else for (size_t i = 0; i < body / 4; i++)
		payload[i] = htole32(w->value);
	return sizeof(*h) + body;
}

/* The bytes behind the vnet header. */
static size_t build(const struct wish *w, struct frame *f)
{
	size_t ihl = w->options ? 24 : 20, udplen = sizeof(struct udphdr), len;
	struct udphdr *udp = (void *)(f->rest + ihl - 20);
	struct saina_hdr host = w->hdr;
	__u8 *start = (void *)&f->eth;

	if (w->messages * (sizeof(host) + body_size(w)) > 65507)
		usage("messages: more than a datagram holds");
	memset(f, 0, sizeof(*f));
	for (long i = 0; i < w->messages; i++) {
		udplen += message(w, &host, (void *)((__u8 *)udp + udplen));
		host.segment++;
		host.worker += w->mixed;
	}
	len = sizeof(f->eth) + ihl + udplen;
	memcpy(f->eth.ether_shost, w->smac, 6);
	memcpy(f->eth.ether_dhost, w->dmac, 6);
	f->eth.ether_type = htons(ETHERTYPE_IP);
	f->ip.version = 4;
	f->ip.ihl = ihl / 4;
	f->ip.ttl = 64;
	f->ip.protocol = IPPROTO_UDP;
	f->ip.frag_off = htons(w->fragment ? 0x2000 : 0x4000);
	f->ip.tot_len = htons(w->iplen >= 0 ? w->iplen : (long)(ihl + udplen));
	f->ip.saddr = w->sip;
	f->ip.daddr = w->dip;
	if (w->options)
		memset(f->rest, 1, 4);	/* no-operations */
	f->ip.check = ip_checksum(&f->ip, ihl);
	udp->source = htons(w->sport);
	udp->dest = htons(w->dport);
	udp->len = htons(w->udplen >= 0 ? w->udplen : (long)udplen);
	if (has_metadata(w))
		metadata(w, f, udp, ihl);
	if (w->check >= 0)
		udp->check = htons(w->check);
	if (w->tag >= 0) {
		__be16 tag[2] = { htons(w->tpid), htons(w->tag) };

		memmove(start + 16, start + 12, len - 12);
		memcpy(start + 12, tag, 4);
		len += 4;
		f->vnet.hdr_len += 4;
		f->vnet.csum_start += 4;
	}
	return (long)len > w->cut ? len - w->cut : 0;
}

/* What any process can have, without privileges. */
static int plain_socket(const struct wish *w)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr.s_addr = w->dip, .sin_port = htons(w->dport),
	};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), gso = w->gso;

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		die("UDP socket");
	if (gso && setsockopt(fd, SOL_UDP, UDP_SEGMENT, &gso, sizeof(gso)))
		die("UDP_SEGMENT");
	if (w->options && setsockopt(fd, SOL_IP, IP_OPTIONS, "\1\1\1\1", 4))
		die("IP_OPTIONS");
	return fd;
}

int main(int argc, char **argv)
{
	struct wish w = {
		.sport = 40000, .dport = SAINA_PORT_DATA, .elems = -1, .iplen = -1, .udplen = -1,
		.tag = -1, .tpid = ETHERTYPE_VLAN, .messages = 1, .check = -1,
		.gsotype = VIRTIO_NET_HDR_GSO_UDP_L4, .csumstart = -1, .csumoffset = 6,
		.repeat = 1, .value = 0x01010101,
		.hdr = { .version = SAINA_PROTO_VERSION, .type = SAINA_MSG_GRAD,
			 .elem = SAINA_ELEM_INT32, .count = 256 },
	};
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_halen = 6 };
	static struct frame f;
	int fd, on = 1;
	ssize_t sent;
	size_t vnet;

	if (argc < 2)
		usage("no interface");
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (fd < 0)
		die("packet socket");
	to.sll_ifindex = if_nametoindex(argv[1]);
	if (!to.sll_ifindex)
		die(argv[1]);
	own_addresses(fd, argv[1], &w);
	w.dip = inet_addr("10.190.0.1");
	memset(w.dmac, 0xff, 6);
	for (int i = 2; i < argc; i++)
		parse(&w, argv[i]);
	vnet = has_metadata(&w) ? sizeof(f.vnet) : 0;
	if (w.socket)
		fd = plain_socket(&w);
	else if (vnet && setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)))
		die("PACKET_VNET_HDR");

	for (long n = 0; n < w.repeat; n++) {
		size_t len = build(&w, &f), head = sizeof(f.eth) + (w.options ? 24 : 20) + 8;

		do {
			if (w.socket)
				sent = send(fd, (__u8 *)&f.eth + head, len - head, 0);
			else
				sent = sendto(fd, (__u8 *)&f.eth - vnet, len + vnet, 0,
					      (struct sockaddr *)&to, sizeof(to));
			/* a full queue only means: a little later */
			if (sent < 0 && errno != ENOBUFS && errno != EAGAIN)
				die("sending");
		} while (sent < 0);
		if (w.rounds)
			w.hdr.round = (w.hdr.round + 1) % w.rounds;
		w.hdr.worker += w.workers;
	}
	return 0;
}
