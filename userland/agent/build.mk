# SPDX-License-Identifier: GPL-2.0-or-later
#
# sainad, with the job core of kmod/core compiled in.

JOBCORE_SRCS	:= $(addprefix kmod/core/,job.c check.c schedule.c tree.c worker.c memory.c show.c policy.c err.c attrs_gen.c adopt.c) \
		   userland/ctl/policy_text.c userland/ctl/tree_text.c

SAINAD_SRCS	:= $(addprefix userland/agent/,main.c args.c process.c config.c log.c loop.c jobs.c runtime.c peer_guard.c \
		   ports/bridge.c ports/sync.c ports/attach.c ports/announce.c \
		   members/tick.c members/changes.c members/ctrl_socket.c members/admit.c members/node.c members/reply.c members/liveness.c members/straggler.c \
		   members/delivery.c members/shm_grant.c members/shm_server.c members/diagnose.c members/numerics.c \
		   uplink/watch.c uplink/relay.c uplink/earlier.c uplink/link.c uplink/command.c \
		   control/client.c control/server.c control/request.c control/encode.c control/decode.c \
		   control/state.c control/state_parse.c control/restore.c control/events.c \
		   metrics/http.c metrics/snapshot.c metrics/families.c \
		   backend/choose.c backend/detached.c backend/local.c backend/kernel.c backend/kernel_client.c)

$(B)/sainad: $(call objs,$(SAINAD_SRCS) $(JOBCORE_SRCS)) $(B)/libsainadp.a $(B)/libsainactl.a $(NET_LIB)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(DP_LDLIBS) $(NET_LDLIBS) -lconfig -lmicrohttpd -lpthread

ALL += $(B)/sainad

install: install-agent
BPF_OBJECTS := $(foreach p,xdp tc,$(B)/saina_$(p).bpf.o $(B)/saina_$(p)_kmod.bpf.o)
install-agent: $(B)/sainad $(BPF_OBJECTS)
	install -D -m 755 $(B)/sainad $(DESTDIR)$(PREFIX)/sbin/sainad
	install -d $(DESTDIR)$(PREFIX)/lib/saina
	install -m 644 $(BPF_OBJECTS) $(DESTDIR)$(PREFIX)/lib/saina
	install -D -m 644 userland/agent/sainad.conf $(DESTDIR)$(PREFIX)/share/doc/saina/sainad.conf
.PHONY: install-agent
