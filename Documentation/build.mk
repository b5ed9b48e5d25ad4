# SPDX-License-Identifier: GPL-2.0-or-later
#
# Manual pages: Documentation/man/NAME.SECTION.rst -> $(B)/man/NAME.SECTION

MAN_PAGES := $(patsubst Documentation/man/%.rst,$(B)/man/%,$(wildcard Documentation/man/*.rst))

$(B)/man/%: Documentation/man/%.rst
	@mkdir -p $(@D)
	rst2man --strict --no-generator --no-datestamp $< $@

$(B)/man/libsaina.3: userland/examples/fit.c

ALL += $(MAN_PAGES)

install: install-man
install-man: $(MAN_PAGES)
	for p in $(MAN_PAGES); do \
		install -D -m 644 $$p $(DESTDIR)$(PREFIX)/share/man/man$${p##*.}/$${p##*/} || exit 1; \
	done
.PHONY: install-man
