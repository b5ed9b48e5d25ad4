# SPDX-License-Identifier: GPL-2.0-or-later
TOOL_MOCK := $(call objs,selftests/tool/mock_agent.c selftests/tool/mock_replies.c)
TOOL_TESTS := $(addprefix $(B)/selftests/,tool_args_test tool_json_test tool_decode_test \
	tool_hostile_test tool_arrivals_test doctor_buffers_test)

SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=undefined -O1 -g

$(B)/obj/selftests/tool/%.o: CPPFLAGS += -Iselftests -I.

$(addprefix $(B)/selftests/,tool_args_test tool_json_test tool_hostile_test tool_arrivals_test): \
$(B)/selftests/%: $(B)/obj/selftests/tool/%.o $(TOOL_MOCK) $(B)/libsainactl.a
	$(call link,$^ -lmnl -ljansson -lpthread)

# Beside libsaina, whose window it is about; the kernel's part is played by the test.
$(B)/selftests/doctor_buffers_test: $(B)/obj/selftests/tool/doctor_buffers_test.o \
		$(B)/obj/tools/saina/doctor_buffers.o $(B)/libsaina.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -Wl,--wrap=setsockopt,--wrap=getsockopt -o $@ $^ -lcmocka -lmnl -pthread -lm

# These include or compile the real sources once more, with sanitizers.
$(B)/selftests/tool_decode_test: selftests/tool/tool_decode_test.c \
		$(CTL_SRC) $(wildcard userland/ctl/*.h) \
		selftests/tool/mock_agent.c selftests/tool/mock_replies.c
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(SAINA_CFLAGS)) $(SANITIZE) -Iselftests -I. -o $@ \
		selftests/tool/tool_decode_test.c selftests/tool/mock_agent.c selftests/tool/mock_replies.c \
		-lmnl -lpthread

$(B)/selftests/saina-sanitized: $(TOOL_SRC) $(wildcard tools/saina/*.h userland/ctl/*.[ch] userland/net/*.[ch])
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(SAINA_CFLAGS)) $(SANITIZE) -o $@ $(TOOL_SRC) \
		$(CTL_SRC) $(NET_SRC) -lmnl -ljansson -lconfig -lncursesw -ltinfo -lm

$(B)/selftests/tool_hostile_test: | $(B)/selftests/saina-sanitized

check-programs: $(TOOL_TESTS) $(B)/selftests/saina-sanitized
$(foreach t,$(notdir $(TOOL_TESTS)),$(call test,$(t),quick,unit,300,$(B)/selftests/$(t)))
$(call test,tool_test,quick,unit,400,selftests/tool/tool_test.sh)
$(call test,tool_wireshark,quick,unit,400,selftests/tool/wireshark_test.py)
$(call test,tool_figures,quick,unit,300,selftests/tool/figures_test.py)
$(call test,tool_train_sim,quick,unit,120,selftests/tool/train_sim_test.py)
$(call test,tool_bench,quick,unit,400,selftests/tool/bench_test.py)
