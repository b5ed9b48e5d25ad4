# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the data path, sainad and `saina doctor` need of the host: links, tc, OVSDB, bpffs.  A
# static archive; programs that use it also need $(NET_LDLIBS).

NET_SRC	   := $(addprefix userland/net/,request.c links.c arp.c tc.c ovsdb.c bpffs.c)
NET_LIB	   := $(B)/libsainanet.a
NET_LDLIBS := -lmnl -ljansson

$(NET_LIB): $(call objs,$(NET_SRC))
	rm -f $@
	$(AR) rcs $@ $^
