# SPDX-License-Identifier: GPL-2.0-or-later
# What controllers (tools/saina/controller.c) choose by.
CONTROLLER_TESTS := dbw_test grouping_test deadline_test
$(CONTROLLER_TESTS:%=$(B)/obj/selftests/unit/%.o) $(B)/obj/selftests/unit/deadline_sim.o $(B)/obj/selftests/unit/deadline_table.o: CPPFLAGS += -Itools
$(B)/selftests/dbw_test $(B)/selftests/grouping_test: $(B)/selftests/%_test: $(B)/obj/selftests/unit/%_test.o $(B)/obj/tools/saina/%.o
	$(call link,$^ -lcmocka -lm)
$(B)/selftests/deadline_test $(B)/selftests/deadline_table: $(B)/selftests/%: $(B)/obj/selftests/unit/%.o $(call objs,selftests/unit/deadline_sim.c tools/saina/deadline.c tools/saina/dbw.c)
	$(call link,$^ -lcmocka -lm)
check-programs: $(CONTROLLER_TESTS:%=$(B)/selftests/%) $(B)/selftests/deadline_table
$(foreach t,$(CONTROLLER_TESTS),$(call test,$(t),quick,unit,400,$(B)/selftests/$(t)))
