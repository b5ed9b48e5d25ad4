# SPDX-License-Identifier: GPL-2.0-or-later
#
# The data path library: link with $(DP_LIB) $(DP_LDLIBS).

DP_LIB	  := $(B)/libsainadp.a
DP_LDLIBS := -lmnl -lbpf -lelf -lz -lpthread
DP_OBJS	  := $(call objs,$(addprefix userland/dp/,dp_load.c dp_prog.c dp_job.c dp_state.c \
		dp_counters.c dp_share.c dp_view.c dp_port.c dp_tc.c dp_outlet.c dp_event.c dp_delay.c) \
		$(addprefix userland/net/,tc.c links.c ask.c))

$(DP_OBJS): CPPFLAGS += -DSAINA_PREFIX='"$(PREFIX)"'

$(DP_LIB): $(DP_OBJS)
	rm -f $@
	$(AR) rcs $@ $^

ALL += $(DP_LIB)
