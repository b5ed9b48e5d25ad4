# SPDX-License-Identifier: GPL-2.0-or-later
$(B)/obj/selftests/unit/dbw_test.o: CPPFLAGS += -Itools
$(B)/selftests/dbw_test: $(call objs,selftests/unit/dbw_test.c tools/saina/dbw.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lcmocka -lm
check-programs: $(B)/selftests/dbw_test
$(call test,dbw_test,quick,host,60,$(B)/selftests/dbw_test)
