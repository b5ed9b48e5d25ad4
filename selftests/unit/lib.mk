# SPDX-License-Identifier: GPL-2.0-or-later
#
# libsaina.  LIB_AGG is a stand-in for the aggregator on a loopback address: the
# oracle behind real sockets.
LIB_AGG := $(addprefix selftests/unit/,lib_agg.c lib_switch.c lib_member.c)
LIB_TESTS := lib_quant_test lib_check_test lib_job_test lib_admit_test lib_env_test lib_behind_test lib_thread_test lib_layout_test lib_step_test

$(addprefix $(B)/selftests/,$(LIB_TESTS)): $(B)/selftests/%: $(B)/obj/selftests/unit/%.o \
		$(call objs,$(LIB_AGG) $(addprefix userland/allreduce/,contents.c verify.c verify_float.c verify_numbers.c verify_restart.c)) $(ORACLE_OBJS) $(B)/libsaina.a
	$(call link,$^ -lcmocka -pthread -lm)
$(call objs,$(LIB_TESTS:%=selftests/unit/%.c) $(LIB_AGG)): \
	SAINA_CFLAGS += -Iuserland/allreduce -Iselftests -pthread

check-programs: $(addprefix $(B)/selftests/,$(LIB_TESTS))
$(foreach t,$(LIB_TESTS),$(call test,$(t),quick,unit,400,$(B)/selftests/$(t)))

# The pure machines, with a clock of the test's own.
LIB_CLOCK_TESTS := cwnd_test resend_test session_test lib_doorbell_test verify_test lib_exponent_test
$(addprefix $(B)/selftests/,$(LIB_CLOCK_TESTS)): $(B)/selftests/%: $(B)/obj/selftests/unit/%.o $(B)/libsaina.a
	$(call link,$^ -lcmocka -pthread -lm)

$(B)/selftests/verify_test: $(call objs,$(addprefix userland/allreduce/,contents.c verify.c verify_float.c verify_numbers.c verify_restart.c))
$(B)/obj/selftests/unit/verify_test.o: SAINA_CFLAGS += -Iuserland/allreduce

check-programs: $(addprefix $(B)/selftests/,$(LIB_CLOCK_TESTS))
$(foreach t,$(LIB_CLOCK_TESTS),$(call test,$(t),quick,unit,400,$(B)/selftests/$(t)))
# Many workers, the oracle and a network, all simulated.
FLOW_TEST_OBJS := $(call objs,$(addprefix selftests/unit/,flow_test.c lib_sim.c lib_record.c lib_link.c lib_events.c lib_switch.c))
$(FLOW_TEST_OBJS): SAINA_CFLAGS += -Iselftests
$(B)/selftests/flow_test: $(FLOW_TEST_OBJS) $(ORACLE_OBJS) $(B)/libsaina.a
	$(call link,$^ -pthread -lm)

check-programs: $(B)/selftests/flow_test
$(call test,flow_test,quick,unit,400,$(B)/selftests/flow_test)
$(call test,flow_long,full,unit,1200,$(B)/selftests/flow_test 3000 1000)
# float32 against float64: likewise.
LIB_NUMBERS_OBJS := $(call objs,$(addprefix selftests/unit/,lib_numbers_test.c lib_switch.c))
$(LIB_NUMBERS_OBJS): SAINA_CFLAGS += -Iselftests
$(B)/selftests/lib_numbers_test: $(LIB_NUMBERS_OBJS) $(ORACLE_OBJS) $(B)/libsaina.a
	$(call link,$^ -lm)

check-programs: $(B)/selftests/lib_numbers_test
$(call test,lib_numbers_test,quick,host,60,$(B)/selftests/lib_numbers_test)
$(call test,lib_numbers_long,full,host,600,$(B)/selftests/lib_numbers_test 100000)
# The steps of parameter-server mode: likewise.
STEPS_TEST_OBJS := $(call objs,$(addprefix selftests/unit/,steps_test.c lib_switch.c))
$(STEPS_TEST_OBJS): SAINA_CFLAGS += -Iselftests
$(B)/selftests/steps_test: $(STEPS_TEST_OBJS) $(ORACLE_OBJS) $(B)/libsaina.a
	$(call link,$^ -lm)

check-programs: $(B)/selftests/steps_test
$(call test,steps_test,quick,unit,400,$(B)/selftests/steps_test)
# Jobs of two levels: likewise, with both sides of saina-uplink.
RELAY_TEST_OBJS := $(call objs,$(addprefix selftests/unit/,relay_test.c lib_switch.c))
$(RELAY_TEST_OBJS): SAINA_CFLAGS += -Iselftests
$(B)/selftests/relay_test: $(RELAY_TEST_OBJS) $(call objs,$(addprefix userland/uplink/,relay.c up.c down.c slots.c)) \
		$(ORACLE_OBJS) $(B)/libsaina.a
	$(call link,$^ -lbpf -lelf -lz -lcmocka -pthread -lm)

check-programs: $(B)/selftests/relay_test
$(call test,relay_test,quick,unit,400,$(B)/selftests/relay_test)
$(call test,relay_long,full,unit,900,$(B)/selftests/relay_test 40)
# Workers that start different sizes: likewise.
SIZE_CHECK_TEST_OBJS := $(call objs,$(addprefix selftests/unit/,size_check_test.c lib_switch.c))
$(SIZE_CHECK_TEST_OBJS): SAINA_CFLAGS += -Iselftests
$(B)/selftests/size_check_test: $(SIZE_CHECK_TEST_OBJS) $(ORACLE_OBJS) $(B)/libsaina.a
	$(call link,$^ -lcmocka -pthread -lm)

check-programs: $(B)/selftests/size_check_test
$(call test,size_check_test,quick,unit,400,$(B)/selftests/size_check_test)
