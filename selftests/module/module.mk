# SPDX-License-Identifier: GPL-2.0-or-later
#
# Programs that test saina.ko, in the test VM (selftests/module/module.sh).

$(B)/selftests/kfunc_test.bpf.o: selftests/module/kfunc_test.bpf.c
	@mkdir -p $(@D) $(B)/obj/selftests/module
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(B)/obj/selftests/module/kfunc_test.bpf.d -MT $@ -c -o $@ $<

$(B)/selftests/kfunc_test: $(call objs,selftests/module/kfunc_test.c) $(B)/libsainactl.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lmnl -lbpf -lpthread

$(B)/selftests/xdp_kmod_test: $(call objs,selftests/module/xdp_kmod_test.c) $(B)/libsainactl.a $(B)/libsainadp.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(DP_LDLIBS) -lmnl -lbpf -lpthread

$(B)/selftests/netlink_fuzz: $(call objs,selftests/module/netlink_fuzz.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^

MODULE_PROGRAMS := $(addprefix $(B)/selftests/,kfunc_test.bpf.o kfunc_test xdp_kmod_test \
	netlink_fuzz) $(B)/saina_xdp_kmod.bpf.o

# In the order of the tests: the cheap one first.
MODULE_TESTS := $(addprefix selftests/module/,spec_check.py dkms_test.sh module.sh plane_test.sh \
	reload_test.sh monitor_test.sh)
CHECKS += $(MODULE_TESTS)

check-programs: $(MODULE_PROGRAMS)

check-module: deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all check-programs
	selftests/run $(patsubst %.sh,%,$(notdir $(MODULE_TESTS)))
.PHONY: check-module
