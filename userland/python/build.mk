# SPDX-License-Identifier: GPL-2.0-or-later
#
# The Python package; PYTHONPATH=$(B)/python uses it without installing it.
PYTHON3		?= /usr/bin/python3
PYTHON_SRC	:= $(wildcard userland/python/saina/*.py) userland/python/saina/py.typed
PYTHON_OUT	:= $(PYTHON_SRC:userland/python/%=$(B)/python/%)
# Where Debian's python3 looks: lib/python3 below /usr, which is for packages, lib/python3.N below other prefixes.
PYTHON_DIR	?= $(PREFIX)/lib/$(if $(filter /usr,$(PREFIX)),python3,python$(shell $(PYTHON3) -c \
		   'import sys; print("%d.%d" % sys.version_info[:2])'))/dist-packages

$(PYTHON_OUT): $(B)/python/%: userland/python/%
	@mkdir -p $(@D)
	cp $< $@

$(B)/python/saina/_libsaina.py: userland/python/cdef.py userland/lib/saina.h
	@mkdir -p $(@D)
	@echo '  CDEF    $@'
	$(PYTHON3) userland/python/cdef.py userland/lib/saina.h $@

ALL += $(PYTHON_OUT) $(B)/python/saina/_libsaina.py

install: install-python
install-python: $(PYTHON_OUT) $(B)/python/saina/_libsaina.py
	install -d $(DESTDIR)$(PYTHON_DIR)/saina
	install -m 644 $^ $(DESTDIR)$(PYTHON_DIR)/saina/
.PHONY: install-python
