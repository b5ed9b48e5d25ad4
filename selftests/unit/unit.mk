# SPDX-License-Identifier: GPL-2.0-or-later
#
# Unit tests (cmocka): no root, no network.

JOBCORE_TESTS	:= $(addprefix $(B)/selftests/,jobcore_test joblife_test jobrestore_test jobtree_test policy_test schedule_test)

$(JOBCORE_TESTS): $(B)/selftests/%: $(B)/obj/selftests/unit/%.o \
		$(call objs,selftests/unit/jobcore_owner.c $(JOBCORE_SRCS))
	$(call link,$^ -lcmocka)

$(B)/selftests/config_test: $(call objs,selftests/unit/config_test.c $(JOBCORE_SRCS) \
		$(addprefix userland/agent/,config.c log.c))
	$(call link,$^ -lcmocka -lconfig)

$(B)/selftests/decode_test: $(call objs,selftests/unit/decode_test.c $(JOBCORE_SRCS) \
		userland/agent/control/decode.c) $(B)/libsainactl.a
	$(call link,$^ -lcmocka -lmnl)

$(B)/selftests/payload_test: $(call objs,selftests/unit/payload_test.c) $(B)/libsainactl.a
	$(call link,$^ -lcmocka)

UNIT_TESTS := $(JOBCORE_TESTS) $(addprefix $(B)/selftests/,config_test decode_test payload_test)
check-programs: $(UNIT_TESTS)
$(foreach t,jobcore_test joblife_test jobrestore_test jobtree_test policy_test schedule_test config_test decode_test payload_test,$(call test,$(t),quick,unit,400,$(B)/selftests/$(t)))
$(call test,run_test,quick,unit,400,selftests/unit/run_test.sh)
$(call test,vm_test,full,host,900,selftests/unit/vm_test.sh)
$(call test,sainad_test,quick,unit,400,selftests/unit/sainad_test.sh)
$(call test,sainad_state,quick,unit,400,selftests/unit/sainad_state_test.sh)
$(call test,sainad_state,full,unit,600,selftests/unit/sainad_state_test.sh all)

# What other parts put beside it.
include $(filter-out %/unit.mk,$(wildcard selftests/unit/*.mk))
