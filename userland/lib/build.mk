# SPDX-License-Identifier: GPL-2.0-or-later
#
# libsaina: the worker library, shared and static.
LIBSAINA_SRC	:= $(addprefix userland/lib/,open.c env.c allreduce.c step.c request.c info.c layout.c base.c \
		   $(addprefix progress/,drive.c turn.c rx.c session_events.c ctl_tx.c data_tx.c notes.c) \
		   $(addprefix reduce/,rounds.c transfer.c reduce_msg.c reduce_shm.c round.c ps.c size_mismatch.c) \
		   $(addprefix transport/,rx.c tx.c cwnd.c reorder.c steps.c size_check.c) \
		   $(addprefix gradient/,gradient.c residual.c move.c quant.c quant_select.c quant_avx2.c quant_avx512.c half.c pairs.c) \
		   $(addprefix session/,session.c state.c timeout.c check.c) wire/check.c shm/shm.c $(addprefix net/,socket.c recv.c send.c))
LIBSAINA_OBJ	:= $(call objs,$(LIBSAINA_SRC))
LDCONFIG	?= ldconfig
LIBSAINA_SO	:= libsaina.so.0

# Position independent, so that the static library can be linked into shared objects.
$(LIBSAINA_OBJ): SAINA_CFLAGS += -fPIC -fvisibility=hidden -pthread

$(B)/libsaina.a: $(LIBSAINA_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/$(LIBSAINA_SO): $(LIBSAINA_OBJ) userland/lib/libsaina.map
	$(CC) -shared -Wl,-soname,$(LIBSAINA_SO) -Wl,--version-script=userland/lib/libsaina.map \
		-Wl,-z,defs $(LDFLAGS) -o $@ $(LIBSAINA_OBJ) -pthread -lm

$(B)/libsaina.so: $(B)/$(LIBSAINA_SO)
	ln -sf $(LIBSAINA_SO) $@

ALL += $(B)/libsaina.a $(B)/libsaina.so

install: install-lib
install-lib: $(B)/libsaina.a $(B)/libsaina.so
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -m 644 $(B)/libsaina.a $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(B)/$(LIBSAINA_SO) $(DESTDIR)$(PREFIX)/lib/
	ln -sf $(LIBSAINA_SO) $(DESTDIR)$(PREFIX)/lib/libsaina.so
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' userland/lib/saina.pc.in | \
		install -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/lib/pkgconfig/saina.pc
	install -m 644 userland/lib/saina.h $(DESTDIR)$(PREFIX)/include/
	[ -n "$(DESTDIR)" ] || $(LDCONFIG)
.PHONY: install-lib
