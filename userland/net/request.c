// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "net/request.h"

#define SEQ	 1
#define TIMEOUT_S 5
/* the longest datagram of a dump */
#define DUMP_MAX	 32768

int net_request(int bus, struct nlmsghdr *nlh, mnl_cb_t cb, void *arg)
{
	char buf[DUMP_MAX] __attribute__((aligned(8)));
	struct timeval wait = { .tv_sec = TIMEOUT_S };
	struct mnl_socket *nl;
	unsigned int portid;
	ssize_t n;
	int ret;

	nl = mnl_socket_open2(bus, SOCK_CLOEXEC);
	if (!nl)
		return -errno;
	setsockopt(mnl_socket_get_fd(nl), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	nlh->nlmsg_seq = SEQ;
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) ||
	    mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0) {
		ret = -errno;
		goto out;
	}
	portid = mnl_socket_get_portid(nl);
	do {
		n = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		ret = n < 0 ? -1 : mnl_cb_run(buf, n, SEQ, portid, cb, arg);
	} while (ret > 0);
	ret = ret < 0 ? -errno : 0;
out:
	mnl_socket_close(nl);
	return ret;
}
