# SPDX-License-Identifier: GPL-2.0-or-later
#
# sainad, and the job core that it compiles in.

JOBCORE_SRCS	:= $(addprefix kmod/,jobcore.c jobcheck.c jobworker.c jobmirror.c policy.c)

SAINAD_SRCS	:= $(addprefix userland/agent/,main.c config.c log.c loop.c jobs.c runtime.c rtnl.c \
		   ovsdb.c ports.c attach.c admit.c health.c relay.c events.c encode.c decode.c \
		   request.c ctlserver.c state.c plane.c \
		   kernel.c family.c \
		   mirror.c)

$(B)/sainad: $(call objs,$(SAINAD_SRCS) $(JOBCORE_SRCS)) $(B)/libsainadp.a $(B)/libsainactl.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(DP_LDLIBS) -lmnl -lconfig -ljansson -lpthread

ALL += $(B)/sainad

install: install-agent
install-agent: $(B)/sainad $(B)/saina_xdp.bpf.o $(B)/saina_xdp_kmod.bpf.o
	install -D -m 755 $(B)/sainad $(DESTDIR)$(PREFIX)/sbin/sainad
	install -D -m 644 $(B)/saina_xdp.bpf.o $(DESTDIR)$(PREFIX)/lib/saina/saina_xdp.bpf.o
	install -D -m 644 $(B)/saina_xdp_kmod.bpf.o $(DESTDIR)$(PREFIX)/lib/saina/saina_xdp_kmod.bpf.o
	install -D -m 644 userland/agent/sainad.conf $(DESTDIR)$(PREFIX)/share/doc/saina/sainad.conf
.PHONY: install-agent
