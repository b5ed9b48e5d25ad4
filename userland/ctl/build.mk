# SPDX-License-Identifier: GPL-2.0-or-later
#
# The control client: tables of the objects and the transport.  A static
# archive; programs that use it also need -lmnl.

CTL_SRC		= $(addprefix userland/ctl/,error.c ack.c transport.c open.c obj.c payload.c policy_text.c tree_text.c) \
		  $(addprefix kmod/core/,attrs_gen.c policy.c err.c)
CTL_LIBS	= $(B)/libsainactl.a -lmnl

$(B)/libsainactl.a: $(call objs,$(CTL_SRC))
	rm -f $@
	$(AR) rcs $@ $^
