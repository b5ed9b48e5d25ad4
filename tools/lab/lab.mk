# SPDX-License-Identifier: GPL-2.0-or-later
install: install-lab
install-lab:
	install -D -m 755 tools/saina-lab $(DESTDIR)$(PREFIX)/sbin/saina-lab
	install -d $(DESTDIR)$(PREFIX)/lib/saina/lab
	install -m 644 $(wildcard tools/lab/*.sh) $(DESTDIR)$(PREFIX)/lib/saina/lab/
.PHONY: install-lab
