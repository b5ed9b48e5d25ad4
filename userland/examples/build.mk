# SPDX-License-Identifier: GPL-2.0-or-later
#
# The example of libsaina(3), whose text is in that page.
$(B)/example-fit: $(call objs,userland/examples/fit.c) $(B)/libsaina.a
	$(CC) $(LDFLAGS) -o $@ $^ -pthread -lm

ALL += $(B)/example-fit
