# SPDX-License-Identifier: GPL-2.0-or-later
#
# The data path library: link with $(DP_LIB) $(DP_LDLIBS).

DP_LIB	  := $(B)/libsainadp.a
DP_LDLIBS := -lmnl -lbpf -lelf -lz -lpthread
DP_OBJS	  := $(call objs,$(addprefix userland/dp/,base.c map.c prog.c xdp.c tc.c port.c \
		fanout.c job.c touch.c shm.c group.c uplink.c read.c publish.c event.c attach.c open.c) \
		$(addprefix userland/net/,tc.c links.c request.c))

$(DP_LIB): $(DP_OBJS)
	rm -f $@
	$(AR) rcs $@ $^

ALL += $(DP_LIB)
