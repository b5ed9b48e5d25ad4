# SPDX-License-Identifier: GPL-2.0-or-later
#
# Manual pages: Documentation/man/NAME.SECTION.rst -> $(B)/man/NAME.SECTION.  A page of several functions names
# them all in its title; the first is NAME, and the others are installed as pages that refer to it (.so).

MAN_PAGES := $(patsubst Documentation/man/%.rst,$(B)/man/%,$(wildcard Documentation/man/*.rst))

$(B)/man/%: Documentation/man/%.rst
	@mkdir -p $(@D)
	rst2man --strict --no-generator --no-datestamp $< $@
	sed -i '/^\.TH/s/"\([^",]*\),[^"]*"/"\1"/' $@

$(B)/man/libsaina.3: userland/examples/fit.c

ALL += $(MAN_PAGES)

install: install-man
install-man: $(MAN_PAGES)
	for p in $(MAN_PAGES); do \
		install -D -m 644 $$p $(DESTDIR)$(PREFIX)/share/man/man$${p##*.}/$${p##*/} || exit 1; \
	done
	for p in $(filter %.3,$(MAN_PAGES)); do \
		for f in $$(sed -n '/^\.SH NAME/{n;s/ \\-.*//;s/,//g;p;q;}' $$p); do \
			[ "$$f.3" = "$${p##*/}" ] || echo ".so man3/$${p##*/}" | \
				install -D -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/share/man/man3/$$f.3 || exit 1; \
		done; \
	done
.PHONY: install-man
