/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells neighbours which MAC address an IPv4 address has. */
#ifndef NET_ARP_H
#define NET_ARP_H

#include <netinet/in.h>

/**
 * arp_announce() - send an ARP announcement (RFC 5227, 3): one broadcast frame, which updates the
 *	neighbour entries that hosts have of @addr
 * @ifindex: of an Ethernet interface that is up; needs CAP_NET_RAW
 * @mac: its address
 *
 * Return: 0 or a negative errno.
 */
int arp_announce(int ifindex, const unsigned char mac[6], struct in_addr addr);

#endif /* NET_ARP_H */
