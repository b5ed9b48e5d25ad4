# SPDX-License-Identifier: GPL-2.0-or-later
#
# Scripts that build a lab with tools/saina-lab, in this order.
NET_TESTS := json_test lab plane basic loss delay policy sfcd death join agent ports jobs foreign slowpath generic hostile many tap

CHECKS += $(NET_TESTS:%=selftests/net/%.sh)

$(B)/selftests/rawsend: $(call objs,selftests/net/rawsend.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^
check-programs: $(B)/selftests/rawsend

# What selftests/run runs.  Written last, when every build.mk has had its say.
$(B)/tests.list: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(CHECKS) >$@
check-programs: $(B)/tests.list
# The same for selftests/Makefile, without building anything.
list-tests:
	@printf '%s\n' $(CHECKS)
FORCE:
.PHONY: FORCE list-tests
