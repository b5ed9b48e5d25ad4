// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of links: a torn dump is no dump and is read again, a failed one changes
 * nothing, and notifications are taken in.
 *
 * net_request() is the real one between what fails on purpose (linked with --wrap).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/resource.h>

#include "net/request.h"
#include "net/links.h"
#include "../lib/statement.h"

static char buf[8192] __attribute__((aligned(8)));
static size_t used;

/* So many of the next questions fail, with this error, after a part of the answer. */
static int failing, error, asked;

int __real_net_request(int bus, struct nlmsghdr *nlh, mnl_cb_t cb, void *arg);
int __wrap_net_request(int bus, struct nlmsghdr *nlh, mnl_cb_t cb, void *arg);

static struct nlmsghdr *message(int type, int flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf + used);

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = flags;
	return nlh;
}

static void put_link(int type, int flags, int family, int ifindex, const char *name, int master)
{
	struct nlmsghdr *nlh = message(type, flags);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	nlh->nlmsg_seq = flags & NLM_F_MULTI ? 1 : 0;
	ifi->ifi_family = family;
	ifi->ifi_index = ifindex;
	mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	if (master)
		mnl_attr_put_u32(nlh, IFLA_MASTER, master);
	used += NLMSG_ALIGN(nlh->nlmsg_len);
}

static void put_done(void)
{
	struct nlmsghdr *nlh = message(NLMSG_DONE, NLM_F_MULTI);

	nlh->nlmsg_seq = 1;
	mnl_nlmsg_put_extra_header(nlh, sizeof(int));
	used += NLMSG_ALIGN(nlh->nlmsg_len);
}

static int parse(struct links *l)
{
	size_t len = used;

	used = 0;
	return links_parse(l, buf, len);
}

int __wrap_net_request(int bus, struct nlmsghdr *nlh, mnl_cb_t cb, void *arg)
{
	asked++;
	if (!failing)
		return __real_net_request(bus, nlh, cb, arg);
	failing--;
	put_link(RTM_NEWLINK, NLM_F_MULTI, AF_UNSPEC, 4711, "gone", 7);
	used = 0;
	assert_int_equal(cb((struct nlmsghdr *)buf, arg), MNL_CB_OK);
	return error;
}

static void links_of_a_dump(void **state)
{
	struct links l = { 0 };

	put_link(RTM_NEWLINK, NLM_F_MULTI, AF_UNSPEC, 1, "lo", 0);
	put_link(RTM_NEWLINK, NLM_F_MULTI, AF_UNSPEC, 5, "p0", 7);
	assert_int_equal(parse(&l), 1);
	put_done();
	assert_int_equal(parse(&l), 0);
	assert_int_equal(l.n, 2);
	assert_int_equal(links_by_name(&l, "p0")->master, 7);
	links_close(&l);
}

static void a_torn_dump_is_refused(void **state)
{
	struct links l = { 0 };

	put_link(RTM_NEWLINK, NLM_F_MULTI, AF_UNSPEC, 1, "lo", 0);
	put_link(RTM_NEWLINK, NLM_F_MULTI | NLM_F_DUMP_INTR, AF_UNSPEC, 5, "p0", 7);
	put_done();
	assert_int_equal(parse(&l), -EINTR);
	links_close(&l);
}

static void a_failed_read_keeps_the_table(void **state)
{
	struct rlimit old, none = { 0 };
	struct links l = { 0 };

	put_link(RTM_NEWLINK, 0, AF_UNSPEC, 5, "p0", 7);
	parse(&l);
	getrlimit(RLIMIT_NOFILE, &old);
	none.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
	assert_int_equal(links_read(&l), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(l.n, 1);
	assert_string_equal(links_by_index(&l, 5)->name, "p0");
	links_close(&l);
}

static void a_dump_that_fails_is_read_again(void **state)
{
	static const int errors[] = { -EINTR, -ENOBUFS };

	for (int i = 0; i < 2; i++) {
		struct links l = { 0 };

		error = errors[i];
		failing = 3;
		asked = 0;
		assert_int_equal(links_read(&l), 0);
		assert_int_equal(asked, 4);
		assert_non_null(links_by_name(&l, "lo"));
		assert_null(links_by_name(&l, "gone"));
		/* not for ever, and what was known stays */
		failing = 1000;
		assert_int_equal(links_read(&l), error);
		assert_in_range(failing, 900, 999);
		assert_non_null(links_by_name(&l, "lo"));
		assert_null(links_by_name(&l, "gone"));
		failing = 0;
		links_close(&l);
	}
}

static void a_good_read_replaces_the_table(void **state)
{
	struct links l = { 0 };

	put_link(RTM_NEWLINK, 0, AF_UNSPEC, 4711, "gone", 7);
	parse(&l);
	assert_int_equal(links_read(&l), 0);
	assert_non_null(links_by_name(&l, "lo"));
	assert_null(links_by_name(&l, "gone"));
	links_close(&l);
}

static void notifications_change_the_table(void **state)
{
	struct links l = { 0 };

	put_link(RTM_NEWLINK, 0, AF_UNSPEC, 5, "p0", 7);
	put_link(RTM_NEWLINK, 0, AF_UNSPEC, 6, "p1", 7);
	parse(&l);
	/* the bridge says so when a port leaves it; the link is still there */
	put_link(RTM_DELLINK, 0, AF_BRIDGE, 5, "p0", 7);
	put_link(RTM_NEWLINK, 0, AF_UNSPEC, 5, "renamed", 0);
	put_link(RTM_DELLINK, 0, AF_UNSPEC, 6, "p1", 0);
	parse(&l);
	assert_int_equal(l.n, 1);
	assert_int_equal(links_by_name(&l, "renamed")->master, 0);
	assert_null(links_by_index(&l, 6));
	links_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("links: a dump gives the links and their bridge", links_of_a_dump),
		statement("links: a torn dump is refused", a_torn_dump_is_refused),
		statement("links: a read that fails keeps the table", a_failed_read_keeps_the_table),
		statement("links: a dump that is torn or overflows is read again, and not for ever", a_dump_that_fails_is_read_again),
		statement("links: a read that succeeds replaces the table", a_good_read_replaces_the_table),
		statement("links: notifications update the table", notifications_change_the_table),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
