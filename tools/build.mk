# SPDX-License-Identifier: GPL-2.0-or-later
include tools/saina/tool.mk
-include tools/lab/lab.mk

# The dissector is not installed into Wireshark's plugin folder, whose path depends on its version.
install: install-wireshark
install-wireshark:
	install -D -m 644 tools/wireshark/saina.lua $(DESTDIR)$(PREFIX)/share/saina/wireshark/saina.lua
.PHONY: install-wireshark

$(B)/grafana.json: tools/grafana/dashboard.py
	@mkdir -p $(B)
	@echo '  JSON    $@'
	$(PYTHON3) $< >$@
ALL += $(B)/grafana.json

install: install-grafana
install-grafana: $(B)/grafana.json
	install -D -m 644 $< $(DESTDIR)$(PREFIX)/share/saina/grafana/saina.json
.PHONY: install-grafana

# tools/quickstart/qemu is not installed: it needs saina-vm and its kernels.
install: install-quickstart
install-quickstart:
	install -D -m 755 tools/quickstart/podman $(DESTDIR)$(PREFIX)/share/saina/quickstart/podman
	install -m 644 tools/quickstart/common.sh $(DESTDIR)$(PREFIX)/share/saina/quickstart/
	install -m 644 tools/ticker.sh $(DESTDIR)$(PREFIX)/share/saina/
.PHONY: install-quickstart
