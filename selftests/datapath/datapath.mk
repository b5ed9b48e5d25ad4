# SPDX-License-Identifier: GPL-2.0-or-later
DATAPATH_TESTS := defects_test sfcd_parity_test race_test trace_test tc_test table_test groups_test hostile_test race_table_test numbers_test door_test meta_test
DATAPATH_TEST_OBJS := $(call objs,$(addprefix selftests/datapath/,rig.c rig_jobs.c rig_packets.c \
	rig_events.c rig_state.c rig_shared.c)) $(ORACLE_OBJS)
TRACE_OBJS := $(call objs,$(addprefix selftests/datapath/,world.c world_life.c world_policy.c \
	world_workers.c world_channel.c world_answers.c foreign.c hostile.c))

$(B)/obj/selftests/datapath/%.o $(B)/obj/selftests/module/backend.o: CPPFLAGS += -Iselftests

$(B)/selftests/trace_test: $(TRACE_OBJS)
$(B)/selftests/table_test: $(call objs,$(addprefix selftests/datapath/,table_world.c \
	table_workers.c table_ledger.c table_rules.c))
# With the jobs in saina.ko, too (--module).
$(B)/selftests/trace_test $(B)/selftests/table_test: \
	$(call objs,$(addprefix selftests/module/,backend.c xdp_harness.c requests.c)) $(B)/libsainactl.a
$(B)/selftests/door_test: LDFLAGS += -Wl,--wrap=bpf_link_detach
$(B)/selftests/defects_test: $(call objs,$(addprefix selftests/datapath/,defects_sfcd.c defects_serene.c defects_table.c arrivals.c))
$(DATAPATH_TESTS:%=$(B)/selftests/%): $(B)/selftests/%: $(B)/obj/selftests/datapath/%.o \
		$(DATAPATH_TEST_OBJS) $(DP_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(DP_LDLIBS)

$(B)/selftests/verifier_test: $(B)/obj/selftests/datapath/verifier_test.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(DP_LDLIBS)

check-programs: $(B)/selftests/verifier_test $(DATAPATH_TESTS:%=$(B)/selftests/%)

$(foreach t,defects_test sfcd_parity_test race_test race_table_test tc_test groups_test hostile_test door_test meta_test,$(call test,$(t),quick,unit,400,$(B)/selftests/$(t)))
$(call test,verifier_test,quick,unit,400,$(B)/selftests/verifier_test)
$(call test,verifier_test,full,vm,300,$(B)/selftests/verifier_test)
# What the kernel makes of metadata is each kernel's own.
$(call test,meta_test,full,vm,1200,$(B)/selftests/meta_test 3000)
$(call test,hostile_tc_test,quick,unit,400,$(B)/selftests/hostile_test --tc)
$(call test,numbers_test,quick,unit,400,$(B)/selftests/numbers_test)
$(call test,numbers_tc_test,quick,unit,400,$(B)/selftests/numbers_test --tc)
$(call test,numbers_test,full,unit,1200,$(B)/selftests/numbers_test --rounds 100000)
$(call test,numbers_tc_test,full,unit,1200,$(B)/selftests/numbers_test --tc --rounds 100000)
$(call test,trace_test,quick,unit,400,$(B)/selftests/trace_test --packets 3000000)
$(call test,trace_test,full,unit,400,$(B)/selftests/trace_test --packets 10000000)
$(call test,trace_tc_test,quick,unit,400,$(B)/selftests/trace_test --tc --packets 500000)
$(call test,trace_tc_test,full,unit,600,$(B)/selftests/trace_test --tc --packets 10000000)
$(call test,table_test,quick,unit,400,$(B)/selftests/table_test --packets 200000)
$(call test,table_test,full,unit,600,$(B)/selftests/table_test --packets 10000000)
$(call test,table_tc_test,quick,unit,400,$(B)/selftests/table_test --tc --packets 200000)
$(call test,table_tc_test,full,unit,600,$(B)/selftests/table_test --tc --packets 10000000)
# 10 million steps, with the programs' own clocks bounded after each.
$(call test,table_test-steps,full,unit,1200,$(B)/selftests/table_test --policy ssp --steps 10000000)
$(call test,table_tc_test-steps,full,unit,1200,$(B)/selftests/table_test --tc --policy ssp --steps 1000000)
# Each kind of policy by itself, as often, by both hooks.
$(foreach p,bsp fastest fastest-timeout sfcd sfcd-down timeout external coded,\
	$(call test,trace_test-$(p),full,unit,600,$(B)/selftests/trace_test --policy $(p) --packets 10000000) \
	$(call test,trace_tc_test-$(p),full,unit,600,$(B)/selftests/trace_test --tc --policy $(p) --packets 10000000))
$(foreach p,ssp asp grouped,$(call test,table_test-$(p),full,unit,600,$(B)/selftests/table_test --policy $(p) --packets 10000000) \
	$(call test,table_tc_test-$(p),full,unit,600,$(B)/selftests/table_test --tc --policy $(p) --packets 10000000))
