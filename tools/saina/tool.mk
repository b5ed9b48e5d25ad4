# SPDX-License-Identifier: GPL-2.0-or-later

TOOL_SRC = $(sort $(wildcard tools/saina/*.c))

$(B)/saina: $(call objs,$(TOOL_SRC)) $(B)/libsainactl.a $(B)/libsainanet.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(call objs,$(TOOL_SRC)) $(B)/libsainanet.a $(CTL_LIBS) -ljansson -lconfig -lncursesw -ltinfo -lm

# The modules of tools/bench and tools/lab that `saina bench' runs.
BENCH_HOST := $(addprefix tools/bench/,$(addsuffix .py,host host_lab host_report peer group measure peers saina) rsh) \
	      tools/lab/lab.py tools/lab/interrupt.py

$(B)/bench:
	@mkdir -p $(B)
	ln -sfn $(abspath tools/bench) $@

# The contender of `saina bench'.
$(B)/bench-saina: $(call objs,tools/bench/saina.c) $(B)/libsaina.a
	$(CC) $(LDFLAGS) -Wl,--wrap=setsockopt -o $@ $^ -pthread -lm

ALL += $(B)/saina $(B)/bench $(B)/bench-saina

install: install-saina
install-saina: $(B)/saina $(B)/bench-saina
	install -d $(DESTDIR)$(PREFIX)/lib/saina/bench
	install -m 644 $(filter %.py,$(BENCH_HOST)) $(DESTDIR)$(PREFIX)/lib/saina/bench/
	install -m 755 $(filter-out %.py,$(BENCH_HOST)) $(DESTDIR)$(PREFIX)/lib/saina/bench/
	install -m 755 $(B)/bench-saina $(DESTDIR)$(PREFIX)/lib/saina/
	install -D -m 755 $(B)/saina $(DESTDIR)$(PREFIX)/sbin/saina
	install -D -m 644 tools/completion/saina.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/saina
	install -D -m 644 tools/completion/saina.zsh $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_saina
.PHONY: install-saina
