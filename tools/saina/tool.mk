# SPDX-License-Identifier: GPL-2.0-or-later

TOOL_SRC = $(sort $(wildcard tools/saina/*.c))

$(B)/saina: $(call objs,$(TOOL_SRC)) $(B)/libsainactl.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(call objs,$(TOOL_SRC)) $(CTL_LIBS) -ljansson -lconfig -lm

ALL += $(B)/saina
