# SPDX-License-Identifier: GPL-2.0-or-later
#
# Unit tests (cmocka): no root, no network.

$(B)/selftests/jobcore_test: $(call objs,selftests/unit/jobcore_test.c kmod/jobcore.c kmod/policy.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lcmocka

check-programs: $(B)/selftests/jobcore_test
CHECKS += $(B)/selftests/jobcore_test

# What other parts put beside it.
include $(filter-out %/unit.mk,$(wildcard selftests/unit/*.mk))
