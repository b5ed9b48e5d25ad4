# SPDX-License-Identifier: GPL-2.0-or-later
$(B)/selftests/train_test: $(call objs,selftests/unit/train_test.c \
		$(TRAIN_MODEL))
	$(call link,$^ -lcmocka -lz -lm)

check-programs: $(B)/selftests/train_test
$(call test,train_test,quick,unit,400,$(B)/selftests/train_test)

# The same trainer in a lab, by way of tools/demo.
$(call test,net/demo,quick,host,400,selftests/net/demo.sh linux)
$(call test,net/demo,full,host,600,selftests/net/demo.sh)
