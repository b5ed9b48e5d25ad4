# SPDX-License-Identifier: GPL-2.0-or-later
# Trees of aggregators: the oracle as the switch of each, and relays, workers and agents simulated.
$(B)/obj/selftests/tree/%.o: CPPFLAGS += -Iselftests

$(B)/selftests/tree_test: $(call objs,$(addprefix selftests/tree/,tree_test.c tree.c tree_net.c tree_check.c \
	tree_worker.c tree_relay.c tree_agent.c)) $(ORACLE_OBJS)
	$(call link,$^)

check-programs: $(B)/selftests/tree_test
$(call test,tree_test,quick,unit,400,$(B)/selftests/tree_test)
$(call test,tree_test,full,unit,400,$(B)/selftests/tree_test 10000)
