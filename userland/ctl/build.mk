# SPDX-License-Identifier: GPL-2.0-or-later
#
# The control client: tables of the objects and the transport.  A static
# archive; programs that use it also need -lmnl.

CTL_LIBS	= $(B)/libsainactl.a -lmnl

$(B)/libsainactl.a: $(call objs,userland/ctl/ctl.c userland/ctl/obj.c)
	rm -f $@
	$(AR) rcs $@ $^
