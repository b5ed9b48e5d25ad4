# SPDX-License-Identifier: GPL-2.0-or-later
#
# fit.c: the example of libsaina(3), which includes its text.  ddp.py: the example of Documentation/containers.rst.
$(B)/example-fit: $(call objs,userland/examples/fit.c) $(B)/libsaina.a
	$(CC) $(LDFLAGS) -o $@ $^ -pthread -lm

ALL += $(B)/example-fit

install: install-examples
install-examples:
	install -d $(DESTDIR)$(PREFIX)/share/doc/saina/examples
	install -m 644 userland/examples/fit.c userland/examples/ddp.py $(DESTDIR)$(PREFIX)/share/doc/saina/examples
.PHONY: install-examples
