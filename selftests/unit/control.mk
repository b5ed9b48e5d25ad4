# SPDX-License-Identifier: GPL-2.0-or-later
# What controllers (tools/saina/control.c) choose by.
CONTROL_TESTS := dbw_test grouping_test
$(CONTROL_TESTS:%=$(B)/obj/selftests/unit/%.o): CPPFLAGS += -Itools
$(B)/selftests/dbw_test $(B)/selftests/grouping_test: $(B)/selftests/%_test: $(B)/obj/selftests/unit/%_test.o $(B)/obj/tools/saina/%.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lcmocka -lm
check-programs: $(CONTROL_TESTS:%=$(B)/selftests/%)
$(foreach t,$(CONTROL_TESTS),$(call test,$(t),quick,unit,400,$(B)/selftests/$(t)))
