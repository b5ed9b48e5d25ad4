# SPDX-License-Identifier: GPL-2.0-or-later
#
# Parts of sainad that read what they did not write, compiled once more with
# sanitizers.
AGENT_TESTS := $(addprefix $(B)/selftests/,state_test links_test peer_guard_test)

$(B)/selftests/state_test: selftests/unit/state_test.c $(JOBCORE_SRCS) \
		$(addprefix userland/agent/control/,state_parse.c decode.c) userland/ctl/obj.c
$(B)/selftests/links_test: selftests/unit/links_test.c userland/net/links.c userland/net/request.c
$(B)/selftests/links_test: SANITIZE += -Wl,--wrap=net_request

$(B)/selftests/peer_guard_test: selftests/unit/peer_guard_test.c userland/agent/peer_guard.c

$(AGENT_TESTS): $(wildcard userland/agent/*.h userland/agent/control/*.h userland/net/*.h kmod/core/*.h)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(SAINA_CFLAGS)) $(SANITIZE) -Iselftests -o $@ $(filter %.c,$^) -lcmocka -lmnl

check-programs: $(AGENT_TESTS)
$(foreach t,$(notdir $(AGENT_TESTS)),$(call test,$(t),quick,unit,400,$(B)/selftests/$(t)))
# Kernels that cannot refuse descriptors.
$(call test,peer_guard_test,full,vm,300,$(B)/selftests/peer_guard_test)
