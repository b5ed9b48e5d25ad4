# SPDX-License-Identifier: GPL-2.0-or-later
#
# Scripts that build a lab with tools/saina-lab, in this order.
NET_TESTS :=

CHECKS += $(NET_TESTS:%=selftests/net/%.sh)

# What selftests/run runs.  Written last, when every build.mk has had its say.
$(B)/tests.list: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(CHECKS) >$@
check-programs: $(B)/tests.list
FORCE:
.PHONY: FORCE
