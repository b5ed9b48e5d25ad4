# SPDX-License-Identifier: GPL-2.0-or-later
#
# Programs that test saina.ko, in the test VM (selftests/module/module.sh).

MODULE_BPF := $(addprefix $(B)/selftests/,kfunc_test.bpf.o tracepoint_test.bpf.o live_test.bpf.o)
$(MODULE_BPF): $(B)/selftests/%.bpf.o: selftests/module/%.bpf.c
	@mkdir -p $(@D) $(B)/obj/selftests/module
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(B)/obj/selftests/module/$*.bpf.d -MT $@ -c -o $@ $<

$(B)/selftests/kfunc_test: $(call objs,selftests/module/kfunc_test.c) $(B)/libsainactl.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lmnl -lbpf -lpthread

XDP_KMOD_TESTS := $(addprefix $(B)/selftests/,xdp_kmod_test xdp_float_test)
$(XDP_KMOD_TESTS): $(B)/selftests/%: $(B)/obj/selftests/module/%.o \
		$(call objs,$(addprefix selftests/module/,xdp_rig.c calls.c)) $(B)/libsainactl.a $(B)/libsainadp.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(DP_LDLIBS) -lmnl -lbpf -lpthread

$(B)/selftests/netlink_fuzz: $(call objs,$(addprefix selftests/module/,netlink_fuzz.c fuzz_msg.c)) \
		$(B)/libsainactl.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lmnl

NETLINK_TESTS := $(addprefix $(B)/selftests/,netlink_storm netlink_bench tracepoint_test live_test)
$(NETLINK_TESTS): $(B)/selftests/%: $(B)/obj/selftests/module/%.o \
		$(call objs,selftests/module/calls.c) $(B)/libsainactl.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lmnl -lbpf -lpthread

MODULE_PROGRAMS := $(MODULE_BPF) $(addprefix $(B)/selftests/,kfunc_test netlink_fuzz) \
	$(XDP_KMOD_TESTS) $(NETLINK_TESTS) $(B)/saina_xdp_kmod.bpf.o

# In the order of the tests: the cheap one first.
MODULE_TESTS := $(addprefix selftests/module/,spec_check.py dkms_test.sh module.sh float_test.sh plane_test.sh \
	reload_test.sh parity_test.sh monitor_test.sh demo_vm_test.sh net_vm.sh)
CHECKS += $(MODULE_TESTS)

check-programs: $(MODULE_PROGRAMS)

check-module: deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all check-programs
	selftests/run $(patsubst %.sh,%,$(notdir $(MODULE_TESTS)))

# How long configuration calls take with 64 jobs of 64 workers, in the test VM.
# slub_debug: without it slabinfo counts whole partial slabs as in use.
bench-netlink: all check-programs
	ko=$$(selftests/module/build.sh $(VM_KERNEL)) && tools/saina-vm run -k $(VM_KERNEL) \
		-a 'slub_debug=FZP,kmalloc-cg-*' -- \
		sh -c "insmod $$ko && exec $(abspath $(B))/selftests/netlink_bench $(BENCH_ARGS)"

# The same in a kernel with KASAN, lockdep and kmemleak.  Not in make check: the
# first time it builds that kernel.
check-debug: deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all check-programs
	selftests/module/debug.sh
.PHONY: check-module bench-netlink check-debug
