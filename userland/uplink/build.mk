# SPDX-License-Identifier: GPL-2.0-or-later
#
# saina-uplink: between a job and its parent's.
UPLINK_OBJ := $(call objs,$(addprefix userland/uplink/,main.c relay.c up.c down.c member.c slots.c report.c))

$(B)/saina-uplink: $(UPLINK_OBJ) $(B)/libsaina.a
	$(CC) $(LDFLAGS) -o $@ $^ -pthread -lbpf -lelf -lz -lm

ALL += $(B)/saina-uplink

install: install-uplink
install-uplink: $(B)/saina-uplink
	install -D -m 755 $(B)/saina-uplink $(DESTDIR)$(PREFIX)/lib/saina/saina-uplink
.PHONY: install-uplink
