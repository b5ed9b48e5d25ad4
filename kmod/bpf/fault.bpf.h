/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Injected faults, for the lab: loss by port and direction, from a seeded sequence.
 * Documentation/datapath.rst section 7.
 */
#ifndef SAINA_FAULT_BPF_H
#define SAINA_FAULT_BPF_H

#include "count.bpf.h"
#include "maps.bpf.h"

#define FAULT_OUT_SALT	0x5851f42d4c957f2dull

static __always_inline __u64 splitmix64(__u64 x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static __always_inline bool fault_drawn(__u64 seed, __u64 n, __u32 loss)
{
	return (splitmix64(seed + n * 0x9e3779b97f4a7c15ull) >> 32) < loss;
}

/* Is a frame that came in by @port lost?  NULL: the port has no faults. */
static __always_inline bool fault_port_in(struct saina_port_conf *port)
{
	if (!port || !port->loss_in ||
	    !fault_drawn(port->seed, __sync_fetch_and_add(&port->drawn_in, 1), port->loss_in))
		return false;
	count_global(SAINA_C_INJECTED_IN);
	return true;
}

/* Is a frame that leaves by @port lost? */
static __always_inline bool fault_port_out(struct saina_port_conf *port)
{
	if (!port || !port->loss_out ||
	    !fault_drawn(port->seed + FAULT_OUT_SALT, __sync_fetch_and_add(&port->drawn_out, 1),
			 port->loss_out))
		return false;
	count_global(SAINA_C_INJECTED_OUT);
	return true;
}

static __always_inline bool fault_in(__u32 ifindex)
{
	return fault_port_in(bpf_map_lookup_elem(&saina_ports, &ifindex));
}

static __always_inline bool fault_out(__u32 ifindex)
{
	return fault_port_out(bpf_map_lookup_elem(&saina_ports, &ifindex));
}

#endif /* SAINA_FAULT_BPF_H */
