# SPDX-License-Identifier: GPL-2.0-or-later

TOOL_SRC = $(sort $(wildcard tools/saina/*.c))

$(B)/saina: $(call objs,$(TOOL_SRC)) $(B)/libsainactl.a $(B)/libsainanet.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(call objs,$(TOOL_SRC)) $(B)/libsainanet.a $(CTL_LIBS) -ljansson -lconfig -lncursesw -ltinfo -lm

# The modules of tools/bench and tools/lab that `saina bench' runs.
BENCH_HOST := $(addprefix tools/bench/,$(addsuffix .py,host host_lab host_report peer group measure peers saina) rsh) \
	      tools/lab/lab.py tools/lab/interrupt.py

# A tree that was built before may have a folder of this name.
$(B)/bench: FORCE
	@mkdir -p $(B)
	@test -L $@ || { rm -rf $@; ln -s $(abspath tools/bench) $@; }

ALL += $(B)/saina $(B)/bench

install: install-saina
install-saina: $(B)/saina
	install -d $(DESTDIR)$(PREFIX)/lib/saina/bench
	install -m 644 $(filter %.py,$(BENCH_HOST)) $(DESTDIR)$(PREFIX)/lib/saina/bench/
	install -m 755 $(filter-out %.py,$(BENCH_HOST)) $(DESTDIR)$(PREFIX)/lib/saina/bench/
	install -D -m 755 $(B)/saina $(DESTDIR)$(PREFIX)/sbin/saina
	install -D -m 644 tools/completion/saina.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/saina
	install -D -m 644 tools/completion/saina.zsh $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_saina
.PHONY: install-saina
