# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of saina.ko, in the test VM (selftests/in-vm).

MODULE_BPF := $(addprefix $(B)/selftests/,kfunc_test.bpf.o tracepoint_test.bpf.o live_test.bpf.o)
$(MODULE_BPF): $(B)/selftests/%.bpf.o: selftests/module/%.bpf.c
	@mkdir -p $(@D) $(B)/obj/selftests/module
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(B)/obj/selftests/module/$*.bpf.d -MT $@ -c -o $@ $<

$(B)/selftests/kfunc_test: $(call objs,$(addprefix selftests/module/,kfunc_test.c requests.c)) $(B)/libsainactl.a
	$(call link,$^ -lmnl -lbpf -lpthread)

XDP_KMOD_TESTS := $(addprefix $(B)/selftests/,xdp_kmod_test xdp_float_test)
$(XDP_KMOD_TESTS): $(B)/selftests/%: $(B)/obj/selftests/module/%.o \
		$(call objs,$(addprefix selftests/module/,xdp_harness.c requests.c)) $(B)/libsainactl.a $(B)/libsainadp.a
	$(call link,$^ $(DP_LDLIBS) -lmnl -lbpf -lpthread)

$(B)/selftests/netlink_fuzz: $(call objs,$(addprefix selftests/module/,netlink_fuzz.c fuzz_msg.c)) \
		$(B)/libsainactl.a
	$(call link,$^ -lmnl)

NETLINK_TESTS := $(addprefix $(B)/selftests/,netlink_storm tracepoint_test live_test \
	unload_test)
$(NETLINK_TESTS): $(B)/selftests/%: $(B)/obj/selftests/module/%.o \
		$(call objs,selftests/module/requests.c) $(B)/libsainactl.a
	$(call link,$^ -lmnl -lbpf -lpthread)

XDP_TRACE_OBJS := $(call objs,selftests/module/xdp_trace_test.c $(addprefix selftests/module/,xdp_harness.c requests.c))
$(B)/selftests/xdp_trace_test: $(XDP_TRACE_OBJS) $(DATAPATH_TEST_OBJS) $(B)/libsainactl.a $(DP_LIB)
	$(call link,$^ $(DP_LDLIBS) -lmnl -lbpf -lpthread)
$(B)/obj/selftests/module/xdp_trace_test.o: CPPFLAGS += -Iselftests

MODULE_PROGRAMS := $(MODULE_BPF) $(addprefix $(B)/selftests/,kfunc_test netlink_fuzz) \
	$(XDP_KMOD_TESTS) $(B)/selftests/xdp_trace_test $(NETLINK_TESTS) $(B)/saina_xdp_kmod.bpf.o

check-programs: $(MODULE_PROGRAMS)

# make check: one kernel, the older one; on the host the same programs meet the newest.
$(call test,module/smoke,quick,6.1,900,selftests/module/smoke_test.sh)
$(call test,module/smoke,full,6.12,900,selftests/module/smoke_test.sh)
$(call test,module/traces,quick,6.1,900,selftests/module/traces.sh 1000 500 xdp)
$(call test,module/traces,full,vm,2400,selftests/module/traces.sh 100000 2000)
$(call test,module/api,full,vm,2400,selftests/module/guest.sh 1000000 100)
$(call test,module/backend,full,vm,900,selftests/module/backend_test.sh)
$(call test,module/verifier,full,vm,900,selftests/module/verifier.sh)
$(call test,module/float,full,vm,1800,selftests/module/float_test.sh)
$(call test,module/float-tc,full,vm,1800,env SAINA_TEST_HOOK=tc selftests/module/float_test.sh)
$(call test,module/reload,full,vm,1500,selftests/module/reload_test.sh)
$(call test,module/parity,full,vm,1200,selftests/module/parity_test.sh)
$(call test,module/monitor,full,vm,1200,selftests/module/monitor_test.sh)
$(call test,module/ynl,full,vm,600,selftests/module/ynl_cli_test.py)
$(call test,ynl_test,full,host,600,selftests/module/ynl_test.sh)
# These start VMs themselves.
$(foreach k,6.1 6.12,$(call test,nomem_test-$(k),full,host,900,selftests/module/nomem_test.sh $(k) 900))
$(call test,dkms_test,full,host,600,selftests/module/dkms_test.sh)
$(call test,demo_vm_test,full,host,1500,selftests/module/demo_vm_test.sh)
$(call test,kselftest,full,host,1200,selftests/module/kselftest_test.sh)

# guest.sh in a kernel with KASAN, lockdep and kmemleak.  Not in make check: the
# first time it builds that kernel.
check-debug: deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all check-programs
	selftests/module/debug.sh
.PHONY: check-debug
