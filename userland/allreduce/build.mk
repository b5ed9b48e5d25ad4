# SPDX-License-Identifier: GPL-2.0-or-later
$(B)/saina-allreduce: $(call objs,userland/allreduce/allreduce.c userland/allreduce/verify.c userland/allreduce/verify_float.c) \
		$(B)/libsaina.a
	$(CC) $(LDFLAGS) -o $@ $^ -pthread -lz -lm

ALL += $(B)/saina-allreduce

install: install-allreduce
install-allreduce: $(B)/saina-allreduce
	install -D -m 755 $(B)/saina-allreduce $(DESTDIR)$(PREFIX)/bin/saina-allreduce
.PHONY: install-allreduce
