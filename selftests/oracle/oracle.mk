# SPDX-License-Identifier: GPL-2.0-or-later
ORACLE_OBJS := $(call objs,selftests/oracle/packet.c selftests/oracle/state.c selftests/oracle/slot.c \
	selftests/oracle/schedule.c selftests/oracle/sfcd.c selftests/oracle/round.c selftests/oracle/answer.c selftests/oracle/ledger.c \
	selftests/oracle/batch.c selftests/oracle/shm.c \
	selftests/oracle/ps.c)

$(B)/obj/selftests/oracle/%.o: CPPFLAGS += -Iselftests

$(B)/selftests/oracle_test: $(call objs,selftests/oracle/oracle_test.c \
	selftests/oracle/harness.c selftests/oracle/lead_test.c selftests/oracle/uplink_test.c) $(ORACLE_OBJS)
	$(call link,$^)

check-programs: $(B)/selftests/oracle_test
$(call test,oracle_test,quick,unit,400,$(B)/selftests/oracle_test)
