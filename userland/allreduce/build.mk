# SPDX-License-Identifier: GPL-2.0-or-later
#
# saina-allreduce: a diagnostic worker that verifies every sum.
ALLREDUCE_OBJ := $(call objs,$(addprefix userland/allreduce/,\
	main.c args.c contents.c report.c rounds.c run.c steps.c sweep.c table.c think.c verify.c verify_float.c verify_numbers.c verify_restart.c) \
	userland/stop/stop.c)

$(B)/saina-allreduce: $(ALLREDUCE_OBJ) $(B)/libsaina.a
	$(CC) $(LDFLAGS) -o $@ $^ -pthread -lz -lm

ALL += $(B)/saina-allreduce

install: install-allreduce
install-allreduce: $(B)/saina-allreduce
	install -D -m 755 $(B)/saina-allreduce $(DESTDIR)$(PREFIX)/bin/saina-allreduce
.PHONY: install-allreduce
