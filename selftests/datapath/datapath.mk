# SPDX-License-Identifier: GPL-2.0-or-later
DATAPATH_TESTS := defects_test sfcd_parity_test race_test trace_test tc_test table_test groups_test hostile_test race_table_test
DATAPATH_TEST_OBJS := $(call objs,selftests/datapath/rig.c selftests/datapath/state.c \
	selftests/datapath/shared.c) $(ORACLE_OBJS)
TRACE_OBJS := $(call objs,selftests/datapath/world.c selftests/datapath/foreign.c \
	selftests/datapath/hostile.c)

$(B)/obj/selftests/datapath/%.o: CPPFLAGS += -Iselftests

$(B)/selftests/trace_test: $(TRACE_OBJS)
$(B)/selftests/table_test: $(call objs,selftests/datapath/table_world.c)
$(B)/selftests/defects_test: $(call objs,$(addprefix selftests/datapath/,defects_sfcd.c defects_serene.c defects_table.c arrivals.c))
$(DATAPATH_TESTS:%=$(B)/selftests/%): $(B)/selftests/%: $(B)/obj/selftests/datapath/%.o \
		$(DATAPATH_TEST_OBJS) $(DP_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(DP_LDLIBS)

check-programs: $(DATAPATH_TESTS:%=$(B)/selftests/%)

$(foreach t,defects_test sfcd_parity_test race_test race_table_test tc_test groups_test hostile_test,$(call test,$(t),quick,host,180,$(B)/selftests/$(t)))
$(call test,hostile_tc_test,quick,host,60,$(B)/selftests/hostile_test --tc)
$(call test,trace_test,quick,host,180,$(B)/selftests/trace_test --packets 3000000)
$(call test,trace_test,full,host,400,$(B)/selftests/trace_test --packets 10000000)
$(call test,trace_tc_test,quick,host,180,$(B)/selftests/trace_test --tc --packets 1000000)
$(call test,trace_tc_test,full,host,600,$(B)/selftests/trace_test --tc --packets 10000000)
$(call test,table_test,quick,host,120,$(B)/selftests/table_test --packets 200000)
$(call test,table_test,full,host,600,$(B)/selftests/table_test --packets 10000000)
$(call test,table_tc_test,quick,host,120,$(B)/selftests/table_test --tc --packets 200000)
$(call test,table_tc_test,full,host,600,$(B)/selftests/table_test --tc --packets 10000000)
# Each kind of policy by itself, as often, by both hooks.
$(foreach p,bsp fastest fastest-timeout sfcd sfcd-down timeout external coded,\
	$(call test,trace_test-$(p),full,host,600,$(B)/selftests/trace_test --policy $(p) --packets 10000000) \
	$(call test,trace_tc_test-$(p),full,host,600,$(B)/selftests/trace_test --tc --policy $(p) --packets 10000000))
$(foreach p,ssp asp grouped,$(call test,table_test-$(p),full,host,600,$(B)/selftests/table_test --policy $(p) --packets 10000000) \
	$(call test,table_tc_test-$(p),full,host,600,$(B)/selftests/table_test --tc --policy $(p) --packets 10000000))
