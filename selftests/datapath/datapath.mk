# SPDX-License-Identifier: GPL-2.0-or-later
DATAPATH_TESTS := trace_test sfcd_parity_test defects_test
DATAPATH_TEST_OBJS := $(call objs,selftests/datapath/rig.c selftests/datapath/state.c) $(ORACLE_OBJS)
TRACE_OBJS := $(call objs,selftests/datapath/world.c selftests/datapath/foreign.c \
	selftests/datapath/hostile.c)

$(B)/obj/selftests/datapath/%.o: CPPFLAGS += -Iselftests

$(B)/selftests/trace_test: $(TRACE_OBJS)
$(DATAPATH_TESTS:%=$(B)/selftests/%): $(B)/selftests/%: $(B)/obj/selftests/datapath/%.o \
		$(DATAPATH_TEST_OBJS) $(DP_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(DP_LDLIBS)

check-programs: $(DATAPATH_TESTS:%=$(B)/selftests/%)
CHECKS += $(DATAPATH_TESTS:%=$(B)/selftests/%)
