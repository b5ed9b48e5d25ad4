# SPDX-License-Identifier: GPL-2.0-or-later
DATAPATH_TESTS := defects_test away_test sfcd_parity_test race_test race_window_test race_shm_test shm_ring_test touch_test trace_test tc_test ps_test groups_test hostile_test race_ps_test numbers_test tc_handoff_test meta_test
DATAPATH_TEST_OBJS := $(call objs,$(addprefix selftests/datapath/,harness.c harness_jobs.c harness_packets.c \
	harness_events.c harness_state.c harness_shm.c)) $(ORACLE_OBJS)
TRACE_OBJS := $(call objs,$(addprefix selftests/datapath/,sim.c sim_jobs.c sim_policy.c \
	sim_workers.c sim_uplink.c sim_channel.c sim_answers.c malformed_foreign.c malformed_hostile.c))

$(B)/obj/selftests/datapath/%.o $(B)/obj/selftests/module/backend.o: CPPFLAGS += -Iselftests

$(B)/selftests/trace_test: $(TRACE_OBJS)
$(B)/selftests/ps_test: $(call objs,$(addprefix selftests/datapath/,ps_sim.c \
	ps_workers.c ps_ledger.c ps_rules.c))
# With the jobs in saina.ko, too (--module).
$(B)/selftests/trace_test $(B)/selftests/ps_test: \
	$(call objs,selftests/datapath/trace.c $(addprefix selftests/module/,backend.c xdp_harness.c requests.c)) \
	$(B)/libsainactl.a
# A worker reads.
$(B)/selftests/race_shm_test: $(B)/libsaina.a
$(B)/selftests/race_shm_test: DP_LDLIBS += -lm
$(B)/selftests/tc_handoff_test: LDFLAGS += -Wl,--wrap=bpf_link_detach
$(B)/selftests/shm_ring_test: LDFLAGS += -Wl,--wrap=bpf_map_freeze
$(B)/selftests/touch_test: LDFLAGS += -Wl,--wrap=bpf_map_lookup_elem
$(B)/selftests/defects_test: $(call objs,$(addprefix selftests/datapath/,defects_sfcd.c defects_serene.c defects_ps.c defects_arrivals.c defects_events.c))
$(DATAPATH_TESTS:%=$(B)/selftests/%): $(B)/selftests/%: $(B)/obj/selftests/datapath/%.o \
		$(DATAPATH_TEST_OBJS) $(DP_LIB)
	$(call link,$(filter %.o,$^) $(filter %.a,$^) $(DP_LDLIBS))

# libsaina's machines through the program, beside the oracle.
SWITCH_TESTS := flow_test steps_test lib_numbers_test
$(B)/selftests/switch_flow_test: $(FLOW_TEST_OBJS)
$(B)/selftests/switch_steps_test: $(STEPS_TEST_OBJS)
$(B)/selftests/switch_lib_numbers_test: $(LIB_NUMBERS_OBJS)
$(SWITCH_TESTS:%=$(B)/selftests/switch_%): $(call objs,selftests/datapath/switch.c) $(DATAPATH_TEST_OBJS) $(B)/libsaina.a $(DP_LIB)
	$(call link,$(filter %.o,$^) $(filter %.a,$^) $(DP_LDLIBS) -pthread -lm)

# It loads the program.
$(B)/selftests/race_window_test: | $(B)/selftests/window.bpf.o
$(B)/selftests/window.bpf.o: selftests/datapath/window.bpf.c
	@mkdir -p $(@D) $(B)/obj/selftests/datapath
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(B)/obj/selftests/datapath/window.bpf.d -MT $@ -c -o $@ $<

$(B)/selftests/verifier_test: $(B)/obj/selftests/datapath/verifier_test.o
	$(call link,$^ $(DP_LDLIBS))

check-programs: $(B)/selftests/verifier_test $(DATAPATH_TESTS:%=$(B)/selftests/%) $(SWITCH_TESTS:%=$(B)/selftests/switch_%)

$(foreach t,defects_test race_test race_shm_test race_window_test race_ps_test tc_test groups_test hostile_test tc_handoff_test meta_test touch_test,$(call test,$(t),quick,unit,400,$(B)/selftests/$(t)))
$(call test,verifier_test,quick,unit,400,$(B)/selftests/verifier_test)
$(call test,verifier_test,full,vm,300,$(B)/selftests/verifier_test)
$(call test,shm_ring_test,full,unit,400,$(B)/selftests/shm_ring_test)
# No mutant is seen by it alone.
$(call test,sfcd_parity_test,full,unit,400,$(B)/selftests/sfcd_parity_test)
# What the kernel makes of metadata is each kernel's own.
$(call test,meta_test,full,vm,1200,$(B)/selftests/meta_test 3000)
$(call test,away_test,quick,unit,400,$(B)/selftests/away_test)
$(call test,away_tc_test,quick,unit,400,$(B)/selftests/away_test --tc)
$(call test,hostile_tc_test,quick,unit,400,$(B)/selftests/hostile_test --tc)
$(call test,numbers_test,quick,unit,400,$(B)/selftests/numbers_test)
$(call test,numbers_tc_test,quick,unit,400,$(B)/selftests/numbers_test --tc)
$(call test,trace_test,quick,unit,400,$(B)/selftests/trace_test --packets 3000000)
$(call test,trace_test,full,unit,400,$(B)/selftests/trace_test --packets 10000000)
$(call test,trace_tc_test,quick,unit,400,$(B)/selftests/trace_test --tc --packets 500000)
$(call test,trace_tc_test,full,unit,600,$(B)/selftests/trace_test --tc --packets 10000000)
$(call test,ps_test,quick,unit,400,$(B)/selftests/ps_test --packets 200000)
$(call test,ps_test,full,unit,1200,$(B)/selftests/ps_test --packets 10000000)
$(call test,ps_tc_test,quick,unit,400,$(B)/selftests/ps_test --tc --packets 200000)
$(call test,ps_tc_test,full,unit,1200,$(B)/selftests/ps_test --tc --packets 10000000)
# 10 million steps, with the programs' own clocks bounded after each.
$(call test,ps_test-steps,full,unit,1200,$(B)/selftests/ps_test --policy ssp --steps 10000000)
$(call test,ps_tc_test-steps,full,unit,1200,$(B)/selftests/ps_test --tc --policy ssp --steps 1000000)
# Each kind of policy by itself, as often, by both hooks.
$(foreach p,bsp fastest fastest-timeout sfcd sfcd-down timeout external coded,\
	$(call test,trace_test-$(p),full,unit,600,$(B)/selftests/trace_test --policy $(p) --packets 10000000) \
	$(call test,trace_tc_test-$(p),full,unit,600,$(B)/selftests/trace_test --tc --policy $(p) --packets 10000000))
$(foreach p,ssp asp grouped,$(call test,ps_test-$(p),full,unit,600,$(B)/selftests/ps_test --policy $(p) --packets 10000000) \
	$(call test,ps_tc_test-$(p),full,unit,600,$(B)/selftests/ps_test --tc --policy $(p) --packets 10000000))
$(call test,switch_flow_test,quick,unit,400,$(B)/selftests/switch_flow_test 3)
$(call test,switch_flow_test,full,unit,1800,$(B)/selftests/switch_flow_test 60)
$(call test,switch_steps_test,full,unit,400,$(B)/selftests/switch_steps_test)
$(call test,switch_lib_numbers_test,quick,unit,400,$(B)/selftests/switch_lib_numbers_test 100)
$(call test,switch_lib_numbers_test-tc,full,unit,1200,env SAINA_TEST_HOOK=tc $(B)/selftests/switch_lib_numbers_test 20000)
$(call test,datapath/cores,full,unit,300,selftests/datapath/cores.sh)
