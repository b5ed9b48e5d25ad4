# SPDX-License-Identifier: GPL-2.0-or-later
#
# The targets that people type; `make help` lists them.  The build.mk of each folder says
# how it is built; all output goes to $(B).

# SAN=address, SAN=thread: builds with these sanitizers, in a directory of its own.
B	?= build$(if $(SAN),/san-$(SAN))
CC	?= gcc
CLANG	?= clang
PREFIX	?= /usr/local
DESTDIR	?=
VERSION	:= $(shell cat VERSION)

CFLAGS	?= -O2 -g
SAINA_CFLAGS = -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror -MMD -MP \
	-D_GNU_SOURCE -DSAINA_VERSION='"$(VERSION)"' -Iuapi -Ikmod -Iuserland -Iuserland/lib
LDFLAGS	?=
ifdef SAN
SAN_FLAGS := -fsanitize=$(SAN:address=address,undefined) -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# GCC warns that TSan ignores fences.  They order memory shared with the kernel, which TSan does not check.
SAN_FLAGS += $(if $(filter thread,$(SAN)),-Wno-tsan)
SAINA_CFLAGS += $(SAN_FLAGS)
LDFLAGS += $(SAN_FLAGS)
endif

.DEFAULT_GOAL := all

ALL	 :=	# what `make` builds
TESTS	 :=	# what selftests/run may run, in this order

# $(call test,NAME,TIER,LANE,SECONDS,COMMAND): declares a test.  TIER: quick (make check) or full (make check-all).
# LANE: host (with labs), unit (without; both run side by side), or the kernel of the test VM to run it in: 6.1,
# 6.12 or vm (both).  SECONDS: its limit, many times what it takes.  A full test replaces the quick one of its name and lane in make check-all.
test	= $(eval TESTS += '$(1) $(2) $(3) $(4) $(5)')

# $(call objs,a.c b.c): the objects of these sources
objs	= $(patsubst %.c,$(B)/obj/%.o,$(1))

# $(call link,OBJECTS AND LIBRARIES): the recipe of a program
define link
@mkdir -p $(@D)
$(CC) $(LDFLAGS) -o $@ $(1)
endef

include kmod/module.mk
include kmod/bpf/build.mk
include userland/net/build.mk
include userland/dp/build.mk
include userland/ctl/build.mk
include userland/lib/build.mk
include userland/agent/build.mk
include userland/allreduce/build.mk
include userland/uplink/build.mk
include userland/python/build.mk
include userland/examples/build.mk
include userland/mpi/build.mk
include tools/build.mk
include selftests/build.mk
include Documentation/build.mk

all: $(ALL)

# Commands are shown with V=1.
ifndef V
MAKEFLAGS += --silent
endif

# Made before the first object: names missing packages before the compiler misses their headers.  The build goes on,
# because the headers may come from elsewhere.
$(B)/packages-found: tools/install-deps
	@mkdir -p $(@D)
	missing=$$(tools/install-deps --missing) && touch $@ || \
		echo "make: Debian packages are missing; \`make deps' as root installs them: $$missing" >&2

$(B)/obj/%.o: %.c | $(B)/packages-found
	@mkdir -p $(@D)
	@echo '  CC      $@'
	$(CC) $(SAINA_CFLAGS) $(CFLAGS) $(CPPFLAGS) -c -o $@ $<

# Debian packages this project needs to build, run and test.
deps:
	tools/install-deps

torch-deps: deps
	tools/install-deps torch

demo-torch: torch-deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all
	tools/demo-torch $(DEMO_ARGS)

demo-tree: torch-deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all $(B)/selftests/tree_worker
	tools/demo-tree $(DEMO_ARGS)

demo: deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all
	tools/demo $(DEMO_ARGS)

check: deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all check-programs check-downloads
	selftests/run

# Debian packages that tests of the quick tier unpack and do not install: no test needs a network.
check-downloads:
	selftests/vm/saina-vm fetch --missing 6.1 >/dev/null
	tools/get-digits $(B)/data >/dev/null

# SHARD=2/4: the second of four parts, which can run at different times.
check-all: bench-deps torch-deps deb-deps
	tools/install-deps full
	tools/install-deps fashion
	+$(MAKE) --no-print-directory -j$(shell nproc) all check-programs
	selftests/vm/saina-vm kernel-tools >/dev/null
	selftests/run --full $(if $(SHARD),--shard $(SHARD))

# Prints what was installed where, and, for another PREFIX, the variables that a shell needs.
installed_at = printf '  %-12s %s\n'
install:
	echo 'Installed under $(DESTDIR)$(PREFIX):'
	$(installed_at) sbin 'sainad, saina, saina-lab' bin saina-allreduce lib/saina 'BPF programs of sainad' \
		lib 'libsaina.so.0$(if $(MPI_LIBS), and libsaina-mpi.so), with include/saina.h and lib/pkgconfig/saina.pc'
	echo '  Python       $(PYTHON_DIR)/saina'
	$(installed_at) share/saina 'quickstart/podman, grafana, wireshark' share/doc/saina 'sainad.conf, examples'
	$(if $(filter-out /usr /usr/local,$(PREFIX)),echo 'These paths are not searched by default.  In a shell:' && \
		echo '  export PATH=$(PREFIX)/sbin:$(PREFIX)/bin:$$PATH MANPATH=$(PREFIX)/share/man:' && \
		echo '  export LD_LIBRARY_PATH=$(PREFIX)/lib PYTHONPATH=$(PYTHON_DIR) PKG_CONFIG_PATH=$(PREFIX)/lib/pkgconfig')
	echo 'Next: sainad --bridge BRIDGE --daemonize; saina doctor'

# Debian packages, in $(B)/deb; DEB_VERSION: a version of their own, for tests of an upgrade.
deb-deps: deps
	tools/install-deps deb

deb: deb-deps
	tools/deb $(B)/deb $(DEB_VERSION)

clean:
	rm -rf $(B)

help:
	@echo 'make demo            set up everything, train eight workers five ways, draw the picture'
	@echo 'make demo-torch      a training script under torchrun with stragglers, with Gloo and with SAINA: table and picture'
	@echo 'make demo-tree       workers on four hosts with slow uplinks: a tree, one aggregator, Gloo: table and picture'
	@echo 'make demo-vm         a small version of make demo in a VM, with saina.ko and the kernel datapath of Open vSwitch (DEMO_VM_KERNEL=6.12)'
	@echo 'make check           set up everything, run the quick tests: 8 to 12 minutes on two cores'
	@echo 'make check-all       the same with all tests: more than an hour (SHARD=2/4: the second of four parts)'
	@echo 'make                 build into $(B)/'
	@echo 'make bench           all-reduce compared with Gloo and Open MPI, about 20 minutes (BENCH_ARGS=--quick: 2)'
	@echo 'make bench-datapath  ns per packet of each branch of the XDP program, as ratios (BENCH_ARGS=-c: on 1 to all cores)'
	@echo 'make bench-control   time-outs, and k set by a client, by real workers: promised and measured'
	@echo 'make bench-ddp       what the hook of saina.torch costs, compared with saina.Worker and with Gloo'
	@echo 'make figures         published results of such policies, measured: six to seven hours (FIGURES_ARGS=--quick: 5 minutes)'
	@echo 'make install         install under PREFIX=$(PREFIX) (DESTDIR honoured)'
	@echo 'make deb             Debian packages, in $(B)/deb'
	@echo 'make module          build saina.ko for the running kernel (KDIR=DIRECTORY: for another)'
	@echo 'make install-module  install saina.ko; make install-dkms: its sources, for dkms install saina/$(VERSION)'
	@echo 'make check-debug     tests of saina.ko in a kernel with KASAN, lockdep and kmemleak, which is built first'
	@echo 'make deps            install the Debian packages needed'
	@echo 'make clean           remove $(B)/'
	@echo 'SAN=address          build with ASan and UBSan in build/san-address (SAN=thread: TSan)'
	@echo 'V=1                  show the commands that make runs'

.PHONY: all deps torch-deps deb deb-deps demo demo-torch demo-tree check check-all check-programs check-downloads clean help install
.DELETE_ON_ERROR:

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
