// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor: checks the bridge and its ports, and whether they fit the jobs.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor_check.h"
#include "net/tc.h"
#include "net/ovsdb.h"

#define ANSWER_MS 3000	/* time for OVSDB to answer */

/* IPv4, UDP and SAINA headers of a message, in front of its payload */
#define HEADERS (20 + 8 + (unsigned int)sizeof(struct saina_hdr))

static unsigned int max_payload(const struct doc_state *s)
{
	const struct saina_job_attrs *job = s->jobs.v;
	unsigned int max = 0;

	for (size_t i = 0; i < s->jobs.n; i++) {
		if (job[i].payload > max)
			max = job[i].payload;
	}
	return max;
}

static const struct saina_port_attrs *find_agent_port(const struct doc_state *s, int ifindex)
{
	const struct saina_port_attrs *p = s->ports.v;

	for (size_t i = 0; i < s->ports.n; i++) {
		if ((int)p[i].ifindex == ifindex)
			return &p[i];
	}
	return NULL;
}

/* Kernels before 6.3 do not report XDP support; in 6.1 these drivers have it. */
static bool driver_has_xdp(const char *driver)
{
	static const char *const drivers[] = {
		"veth", "tun", "virtio_net", "mlx5_core", "mlx4_en", "ice", "i40e", "ixgbe", "igb",
		"igc", "bnxt_en", "ena", "sfc", "qede", "nfp", "hv_netvsc", "xen_netfront",
	};

	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++) {
		if (!strcmp(drivers[i], driver))
			return true;
	}
	return false;
}

static void check_port_hook(const struct doc_state *s, const struct link *l,
			    const struct doc_driver *d)
{
	const struct saina_port_attrs *p = find_agent_port(s, l->ifindex);

	if (p && p->mode == SAINA_PORT_MODE_TC) {
		doc_report_of(DOC_OK, "port-hook", l->name, NULL, "attached, tc (driver %s)", d->name);
	} else if (p && p->mode == SAINA_PORT_MODE_NATIVE) {
		doc_report_of(DOC_OK, "port-hook", l->name, NULL, "attached, native XDP (driver %s)%s%s",
			      d->name, p->text[0] ? ": " : "", p->text);
	} else if (p && p->mode == SAINA_PORT_MODE_GENERIC) {
		doc_report_of(DOC_WARN, "port-hook", l->name,
			      "saina port set {} hook auto (and the same in sainad's configuration)",
			      "attached, generic XDP: every packet is copied first, several times slower");
	} else if (p) {
		doc_report_of(DOC_FAIL, "port-hook", l->name,
			      l->xdp_id ? doc_fix("remove the other XDP program (id %u): ip link set {} xdp off",
						  l->xdp_id) :
					  "see the log of sainad",
			      "not attached: %s", p->text[0] ? p->text : "no reason given");
	} else if (s->ctl_ok) {
		doc_report_of(DOC_WARN, "port-hook", l->name,
			      "see the log of sainad, and check that sainad serves this bridge",
			      "sainad does not know this port");
	} else if (l->xdp_id) {
		doc_report_of(DOC_WARN, "port-hook", l->name,
			      "if sainad --keep did not leave the program there: ip link set {} xdp off",
			      "an XDP program (id %u) is attached already", l->xdp_id);
	} else if (d->has_features && !(d->features & DOC_XDP_BASIC)) {
		doc_report_of(DOC_FAIL, "port-hook", l->name,
			      "use a port whose driver has native XDP; or start sainad, then: saina port set {} hook generic (slower)",
			      "driver %s has no native XDP", d->name);
	} else if (!d->has_features && !driver_has_xdp(d->name)) {
		doc_report_of(DOC_SKIP, "port-hook", l->name, NULL,
			      "driver %s; this kernel does not say whether it has native XDP (6.3 and later do)",
			      d->name);
	} else {
		doc_report_of(DOC_OK, "port-hook", l->name, NULL, "driver %s has native XDP", d->name);
	}
}

/* Checks the other end of a veth: XDP redirects need its support, hook tc does not. */
static void check_port_peer(const struct doc_state *s, const struct link *l, const struct doc_driver *d)
{
	const struct saina_port_attrs *p = find_agent_port(s, l->ifindex);
	/* without an agent: would hook auto be tc? */
	bool tc = p ? p->mode == SAINA_PORT_MODE_TC : !s->ctl_ok && !s->userspace;

	if (!d->has_features || strcmp(l->kind, "veth"))
		return;
	if (!(d->features & DOC_XDP_NDO_XMIT) && tc)
		doc_report_of(DOC_OK, "port-redirect", l->name, NULL,
			      "stock container (GRO is off at its end): XDP redirects would not reach it, hook tc does");
	else if (!(d->features & DOC_XDP_NDO_XMIT) && s->userspace)
		doc_report_of(DOC_WARN, "port-redirect", l->name,
			      "at its other end, in the container: ethtool -K eth0 gro on; then start the worker again",
			      "stock container (GRO is off at its end) behind Open vSwitch's userspace datapath, which needs XDP: its results take the slow path through the bridge");
	else if (!(d->features & DOC_XDP_NDO_XMIT))
		doc_report_of(DOC_WARN, "port-redirect", l->name,
			      "saina port set {} hook auto, which is tc (and hook in sainad's configuration); then start the worker again",
			      "stock container (GRO is off at its end): XDP redirects do not reach it, results take the slow path through the bridge");
	else if (!tc)
		doc_report_of(DOC_OK, "port-redirect", l->name, NULL,
			      "results can be redirected to its other end");
}

static void check_port_mtu(const struct doc_state *s, const struct link *l)
{
	const struct saina_job_attrs *job = s->jobs.v;

	for (size_t i = 0; i < s->jobs.n; i++) {
		unsigned int size = job[i].elem_type == SAINA_ELEM_BFLOAT16 ? 2 : 4;
		unsigned int need = HEADERS + size * job[i].payload;

		if (job[i].by_reference != SAINA_REFERENCE_ONLY && l->mtu < need)
			doc_report_of(DOC_FAIL, "port-mtu", l->name,
				      doc_fix("ip link set {} mtu %u (and the same at its other end), or give the job a smaller payload",
					      need),
				      "MTU %u, but messages of job %s take %u", l->mtu, job[i].name,
				      need);
	}
}

/* What keeps frames of workers from the bridge, or from each other.  Gradients are summed before. */
static void check_port_forwarding(const struct link *l, long long policing)
{
	const char *stp = link_stp_text(l);

	if (stp)
		doc_report_of(DOC_FAIL, "port-stp", l->name,
			      "bridge link set dev {} state 3; or wait until the spanning tree has settled (30 s)",
			      "spanning-tree state %s: the bridge forwards nothing from this port, so its workers cannot join",
			      stp);
	if (l->isolated)
		doc_report_of(DOC_WARN, "port-isolated", l->name, "bridge link set dev {} isolated off",
			      "isolated: its workers reach the aggregator, but no worker behind another isolated port (rendezvous, Gloo)");
	if (policing)
		doc_report_of(DOC_WARN, "port-policed", l->name, "ovs-vsctl set interface {} ingress_policing_rate=0",
			      "Open vSwitch drops what comes in above %lld kbit/s: heartbeats and other traffic of its workers can be lost",
			      policing);
	else if (tc_is_policed(l->ifindex))
		doc_report_of(DOC_WARN, "port-policed", l->name,
			      "tc filter show dev {} ingress shows the filter: remove it, or raise its rate",
			      "policed by a tc filter: heartbeats and other traffic of its workers can be lost");
}

static void check_port(const struct doc_state *s, const struct link *l, long long policing)
{
	struct doc_driver d;

	doc_read_driver(l, &d);
	if (!(l->flags & IFF_UP))
		doc_report_of(DOC_WARN, "port-up", l->name, "ip link set {} up", "down");
	check_port_forwarding(l, policing);
	check_port_hook(s, l, &d);
	check_port_peer(s, l, &d);
	check_port_mtu(s, l);
}

static void check_relayed_workers(const struct doc_state *s, const struct links *links)
{
	const struct saina_worker_attrs *w = s->workers.v;
	char who[128];

	for (size_t i = 0; i < s->workers.n; i++) {
		const struct link *l = links_by_index(links, (int)w[i].ifindex);
		const struct saina_port_attrs *p = find_agent_port(s, (int)w[i].ifindex);

		if (!w[i].relay || w[i].state == SAINA_WORKER_STATE_LEFT)
			continue;
		snprintf(who, sizeof(who), "worker %u (%.31s) of job %s behind %s", w[i].id, w[i].name,
			 w[i].job_name, l ? l->name : "a port that is gone");
		if (p && p->mode == SAINA_PORT_MODE_TC)
			doc_report_of(DOC_WARN, "relayed", who,
				      "give all ports of the job the same hook: saina port set PORT hook tc",
				      "its port has hook tc: results completed at ports with XDP reach it by the slow path");
		else if (s->userspace)
			doc_report_of(DOC_WARN, "relayed", who,
				      "in its container: ethtool -K eth0 gro on; then start the worker again",
				      "gets its results by the slow path");
		else
			doc_report_of(DOC_WARN, "relayed", who,
				      "saina port set PORT hook auto, which is tc; where XDP has to stay, in its container: ethtool -K eth0 gro on; then start the worker again",
				      "gets its results by the slow path");
	}
	doc_report_group();
}

static bool uses_relay(const struct doc_state *s)
{
	const struct saina_worker_attrs *w = s->workers.v;

	for (size_t i = 0; i < s->workers.n; i++) {
		if (w[i].relay)
			return true;
	}
	/* larger messages have several fragments, which cannot be cloned */
	return max_payload(s) > SAINA_ELEMS_LINEAR_MAX;
}

static void check_snooping(const struct doc_state *s, int on, const char *fix)
{
	if (on < 0)
		return;
	if (!on)
		doc_report(DOC_OK, "snooping", NULL, "multicast snooping is off");
	else if (uses_relay(s))
		doc_report(DOC_WARN, "snooping", fix,
			   "multicast snooping is on: relayed results stop when the bridge forgets the members of their group");
	else
		doc_report(DOC_OK, "snooping", NULL,
			   "multicast snooping is on; redirected results are not affected by it");
}

static void check_ovs_handlers(const struct doc_state *s)
{
	int pid = 0, handlers = doc_ovs_handlers(s->ovsdb, &pid);

	if (handlers < 0)
		doc_report(DOC_SKIP, "ovs-handlers", NULL,
			   "no process ovs-vswitchd is visible from here");
	else if (!handlers)
		doc_report(DOC_FAIL, "ovs-handlers",
			   "restart ovs-vswitchd (started within 10 s of boot, it has no handler threads)",
			   "ovs-vswitchd (process %d) has no handler threads: it forwards nothing", pid);
	else
		doc_report(DOC_OK, "ovs-handlers", NULL, "ovs-vswitchd (process %d) has %d handler threads",
			   pid, handlers);
}

struct ovs_walk {
	const struct doc_state *s;
	const struct links *links;
	int n;
};

static void count_ovs_port(void *arg, const struct ovsdb_interface *i)
{
	struct ovs_walk *walk = arg;

	walk->n++;
}

static void check_ovs_port(void *arg, const struct ovsdb_interface *i)
{
	const struct ovs_walk *walk = arg;
	const struct link *l = links_by_name(walk->links, i->name);

	if (!strcmp(i->name, walk->s->bridge))
		return;	/* the bridge's internal port */
	if (i->error[0])
		doc_report(DOC_FAIL, "port", doc_fix("fix the port, or remove it: ovs-vsctl del-port %s", i->name),
			   "%s: Open vSwitch says: %s", i->name, i->error);
	else if (!strcmp(i->type, "afxdp"))
		doc_report(DOC_FAIL, "port", doc_fix("ovs-vsctl set interface %s type=system", i->name),
			   "%s: type afxdp takes the XDP hook for itself", i->name);
	else if (l && (!i->type[0] || !strcmp(i->type, "system") || !strcmp(i->type, "tap")))
		check_port(walk->s, l, i->policing);
	else if (i->type[0] && strcmp(i->type, "system"))
		doc_report(DOC_OK, "port", NULL, "%s: of type %s, not for workers", i->name, i->type);
	else
		doc_report(DOC_WARN, "port", "run saina doctor in the network namespace of the bridge",
			   "%s is not an interface here", i->name);
}

static void check_ovs(struct doc_state *s, const struct links *links)
{
	struct ovs_walk walk = { .s = s, .links = links };
	struct ovsdb db = { .fd = -1 };
	struct ovsdb_bridge bridge;
	int ret = ovsdb_connect(&db, s->ovsdb);

	if (!ret)
		ret = ovsdb_wait(&db, ANSWER_MS);
	if (ret) {
		doc_report(DOC_FAIL, "ovsdb",
			   "start Open vSwitch (systemctl start openvswitch-switch), or name its socket: saina doctor host ovsdb SOCKET",
			   "%s: %s", s->ovsdb, strerror(-ret));
		goto out;
	}
	doc_report(DOC_OK, "ovsdb", NULL, "%s", s->ovsdb);
	if (ovsdb_bridge(&db, s->bridge, &bridge)) {
		doc_report(DOC_FAIL, "bridge", "name the right one: saina doctor host bridge NAME",
			   "%s is not a bridge of the Open vSwitch at %s", s->bridge, s->ovsdb);
		goto out;
	}
	s->userspace = bridge.userspace;
	ovsdb_interfaces(&db, s->bridge, count_ovs_port, &walk);
	doc_report(DOC_OK, "bridge", NULL, "%s: Open vSwitch, %s datapath, %d ports", s->bridge,
		   bridge.userspace ? "userspace" : "kernel", walk.n);
	check_ovs_handlers(s);
	check_snooping(s, bridge.snooping,
		       doc_fix("ovs-vsctl set bridge %s mcast_snooping_enable=false", s->bridge));
	ovsdb_interfaces(&db, s->bridge, check_ovs_port, &walk);
	doc_report_group();
out:
	ovsdb_close(&db);
}

static void check_linux_bridge(const struct doc_state *s, const struct links *links,
			       const struct link *br)
{
	const struct link *mac_owner = NULL;
	int n = 0;

	for (int i = 0; i < links->n; i++) {
		if (links->v[i].master != br->ifindex)
			continue;
		n++;
		if (!memcmp(links->v[i].mac, br->mac, sizeof(br->mac)))
			mac_owner = &links->v[i];
	}
	doc_report(DOC_OK, "bridge", NULL, "%s: Linux bridge, %d ports", s->bridge, n);
	/* A Linux bridge takes the lowest MAC address of its ports unless it was given one. */
	if (mac_owner)
		doc_report(DOC_WARN, "bridge-mac",
			   doc_fix("ip link set %s address %02x:%02x:%02x:%02x:%02x:%02x (or any address of its own)",
				   s->bridge, (br->mac[0] | 2) & 0xfe, br->mac[1], br->mac[2], br->mac[3],
				   br->mac[4], br->mac[5] ^ 1),
			   "%s has the MAC address of its port %s: when ports come or go, the address changes, and workers must hear sainad's announcement",
			   s->bridge, mac_owner->name);
	check_snooping(s, br->snooping,
		       doc_fix("ip link set %s type bridge mcast_snooping 0", s->bridge));
	for (int i = 0; i < links->n; i++) {
		if (links->v[i].master == br->ifindex)
			check_port(s, &links->v[i], 0);
	}
	doc_report_group();
}

/* The process at the other end of @ctl; 0: none, or not visible here. */
static pid_t agent_process(const struct saina_ctl *ctl)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);

	if (!ctl || !strcmp(saina_ctl_peer(ctl), "kernel") ||
	    getsockopt(saina_ctl_fd(ctl), SOL_SOCKET, SO_PEERCRED, &who, &len))
		return 0;
	return who.pid;
}

/* Has process @pid the socket with @inode open?  -1: it cannot be seen. */
static int has_socket(pid_t pid, unsigned long inode)
{
	char want[64], path[600], to[64];
	struct dirent *f;
	int has = 0;
	ssize_t n;
	DIR *fds;

	snprintf(want, sizeof(want), "socket:[%lu]", inode);
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	fds = opendir(path);
	if (!fds)
		return -1;
	while (!has && (f = readdir(fds))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, f->d_name);
		n = readlink(path, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = 0;
		has = !strcmp(to, want);
	}
	closedir(fds);
	return has;
}

/*
 * Finds the UDP socket at @port that concerns the agent: its own, where other agents of this host have
 * sockets at other addresses.  Whose they are is not visible to everybody: then one at an address of
 * the bridge.  Returns its inode, or 0, and sets *@address to its address.
 */
static unsigned long find_udp_socket(const struct doc_state *s, unsigned int port, struct in_addr *address)
{
	FILE *f = fopen("/proc/self/net/udp", "re");
	pid_t agent = agent_process(s->ctl);
	unsigned long inode = 0, found = 0;
	int rank, best = 0, own;
	struct in_addr at;
	unsigned int local;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %*d: %x:%x %*x:%*x %*x %*x:%*x %*x:%*x %*x %*u %*u %lu", &at.s_addr,
			   &local, &inode) != 3 || local != port)
			continue;
		own = agent ? has_socket(agent, inode) : -1;
		/* of another process, beside this agent; at the same address the kernel would have refused it */
		if (!own)
			continue;
		rank = own > 0 ? 4 : link_has_address(s->bridge, at) ? 3 : !at.s_addr ? 2 : 1;
		if (rank <= best)
			continue;
		best = rank;
		found = inode;
		*address = at;
	}
	if (f)
		fclose(f);
	return found;
}

/* Finds the process that has the socket with @inode open, and formats its name and id. */
static void find_socket_owner(unsigned long inode, char *name, size_t size)
{
	char path[64], comm[32];
	DIR *proc = opendir("/proc");
	struct dirent *p;

	snprintf(name, size, "another program");
	while (proc && (p = readdir(proc))) {
		if (atoi(p->d_name) <= 0 || has_socket(atoi(p->d_name), inode) <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/comm", atoi(p->d_name));
		if (doc_read_line(path, comm, sizeof(comm)))
			snprintf(name, size, "%s (process %d)", comm, atoi(p->d_name));
	}
	if (proc)
		closedir(proc);
}

static void check_udp_ports(const struct doc_state *s)
{
	static const unsigned int ports[] = { SAINA_PORT_CTRL, SAINA_PORT_DATA };
	struct in_addr address;
	char name[64];
	bool agent = s->ctl && strcmp(saina_ctl_peer(s->ctl), "kernel");

	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		unsigned long found = find_udp_socket(s, ports[i], &address);

		name[0] = 0;
		if (found)
			find_socket_owner(found, name, sizeof(name));
		if (found && !strncmp(name, "sainad ", 7))
			doc_report(DOC_OK, "udp-port", NULL, "%u is used by %s", ports[i], name);
		else if (found && geteuid())
			doc_report(DOC_SKIP, "udp-port", NULL, "%u is in use; only root sees by which process",
				   ports[i]);
		else if (found)
			doc_report(DOC_FAIL, "udp-port", "stop that process: sainad needs this port",
				   "%u is used by %s", ports[i], name);
		else if (agent && ports[i] == SAINA_PORT_CTRL)
			doc_report(DOC_WARN, "udp-port",
				   "run saina doctor in the network namespace where sainad runs",
				   "sainad answers, but no process uses UDP port %u here", ports[i]);
		else
			doc_report(DOC_OK, "udp-port", NULL, "%u is free", ports[i]);
	}
}

static void check_address(const struct doc_state *s, const struct link *br)
{
	char text[INET_ADDRSTRLEN];
	struct in_addr ip, used = { 0 };

	if (!(br->flags & IFF_UP))
		doc_report(DOC_FAIL, "bridge-up", doc_fix("ip link set %s up", s->bridge),
			   "%s is down: workers cannot reach the aggregator", s->bridge);
	if (link_address(br->name, &ip, NULL))
		doc_report(DOC_FAIL, "address",
			   doc_fix("ip addr add 10.190.0.1/24 dev %s (any free address)", s->bridge),
			   "%s has no IPv4 address: workers cannot reach the aggregator", s->bridge);
	else if (s->ctl && find_udp_socket(s, SAINA_PORT_CTRL, &used) && used.s_addr &&
		 !link_has_address(br->name, used))
		doc_report(DOC_FAIL, "address",
			   doc_fix("ip addr add %s/24 dev %s, or start sainad again with another --address",
				   inet_ntop(AF_INET, &used, text, sizeof(text)), s->bridge),
			   "sainad listens at %s, which %s does not have", text, s->bridge);
	else
		doc_report(DOC_OK, "address", NULL, "workers use the aggregator address %s",
			   inet_ntop(AF_INET, used.s_addr ? &used : &ip, text, sizeof(text)));
}

void doc_bridge(struct doc_state *s)
{
	struct links links = { 0 };
	const struct link *br;
	int ret = links_read(&links);

	if (ret) {
		doc_report(DOC_FAIL, "bridge", "run this where rtnetlink can be used",
			   "interfaces cannot be read: %s", strerror(-ret));
		return;
	}
	br = links_by_name(&links, s->bridge);
	if (!br) {
		doc_report(DOC_FAIL, "bridge",
			   doc_fix("create it (ip link add %s type bridge, or ovs-vsctl add-br %s), or name the right one: saina doctor host bridge NAME",
				   s->bridge, s->bridge),
			   "there is no interface %s", s->bridge);
	} else {
		if (!strcmp(br->kind, "bridge"))
			check_linux_bridge(s, &links, br);
		else
			check_ovs(s, &links);
		check_address(s, br);
	}
	check_relayed_workers(s, &links);
	check_udp_ports(s);
	doc_buffers(s);
	links_close(&links);
}
