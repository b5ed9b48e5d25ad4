# SPDX-License-Identifier: GPL-2.0-or-later

TOOL_SRC = $(sort $(wildcard tools/saina/*.c))

$(B)/saina: $(call objs,$(TOOL_SRC)) $(B)/libsainactl.a $(B)/libsainanet.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(call objs,$(TOOL_SRC)) $(B)/libsainanet.a $(CTL_LIBS) -ljansson -lconfig -lncursesw -ltinfo -lm

ALL += $(B)/saina

install: install-saina
install-saina: $(B)/saina
	install -D -m 755 $(B)/saina $(DESTDIR)$(PREFIX)/sbin/saina
	install -D -m 644 tools/completion/saina.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/saina
	install -D -m 644 tools/completion/saina.zsh $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_saina
.PHONY: install-saina
