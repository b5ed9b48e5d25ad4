// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <net/if_arp.h>
#include <netinet/if_ether.h>
#include <netpacket/packet.h>
#include <sys/socket.h>

#include "net/arp.h"

int arp_announce(int ifindex, const unsigned char mac[6], struct in_addr addr)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ARP),
		.sll_ifindex = ifindex,
		.sll_halen = ETH_ALEN,
	};
	struct ether_arp arp = {
		.arp_hrd = htons(ARPHRD_ETHER),
		.arp_pro = htons(ETH_P_IP),
		.arp_hln = ETH_ALEN,
		.arp_pln = sizeof(addr),
		.arp_op = htons(ARPOP_REQUEST),
	};
	/* protocol 0: it receives nothing */
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret;

	if (fd < 0)
		return -errno;
	memset(to.sll_addr, 0xff, ETH_ALEN);
	memcpy(arp.arp_sha, mac, ETH_ALEN);
	memcpy(arp.arp_spa, &addr, sizeof(addr));
	memcpy(arp.arp_tpa, &addr, sizeof(addr));
	ret = sendto(fd, &arp, sizeof(arp), MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}
