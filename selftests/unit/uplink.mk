# SPDX-License-Identifier: GPL-2.0-or-later
#
# Parts of saina-uplink.
$(B)/obj/selftests/unit/uplink_slots_test.o: CPPFLAGS += -Iselftests
$(B)/selftests/uplink_slots_test: $(call objs,selftests/unit/uplink_slots_test.c userland/uplink/slots.c)
	$(call link,$^ -lbpf -lelf -lz -lpthread)

check-programs: $(B)/selftests/uplink_slots_test
$(call test,uplink_slots_test,quick,host,400,$(B)/selftests/uplink_slots_test)
