# SPDX-License-Identifier: GPL-2.0-or-later
#
# What sainad and `saina doctor` ask of the host: links, OVSDB, bpffs.  A static
# archive; programs that use it also need $(NET_LDLIBS).

NET_SRC	   := $(addprefix userland/net/,request.c links.c tc.c ovsdb.c bpffs.c)
NET_LIB	   := $(B)/libsainanet.a
NET_LDLIBS := -lmnl -ljansson

$(NET_LIB): $(call objs,$(NET_SRC))
	rm -f $@
	$(AR) rcs $@ $^
