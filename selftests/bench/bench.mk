# SPDX-License-Identifier: GPL-2.0-or-later
DATAPATH_BENCH := $(addprefix selftests/bench/,bench-datapath.c lookup.c harness.c kernel_job.c add.c args.c \
		   report.c)

SCALE_BENCH := $(addprefix selftests/bench/,bench-scale.c harness.c kernel_job.c args.c report.c)

$(B)/bench.bpf.o $(B)/bench_kernel.bpf.o $(B)/bench_scale.bpf.o: $(B)/%.bpf.o: selftests/bench/%.bpf.c
	@mkdir -p $(@D) $(B)/obj/selftests/bench
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(B)/obj/selftests/bench/$*.bpf.d -MT $@ -c -o $@ $<

$(B)/bench-datapath: $(call objs,$(DATAPATH_BENCH)) $(DP_LIB) $(B)/libsainactl.a
	$(CC) $(LDFLAGS) -o $@ $^ $(DP_LDLIBS) -lmnl -ljansson -lm

$(B)/bench-scale: $(call objs,$(SCALE_BENCH)) $(DP_LIB) $(B)/libsainactl.a
	$(CC) $(LDFLAGS) -o $@ $^ $(DP_LDLIBS) -lmnl -ljansson -lm -pthread

$(B)/bench-control: $(call objs,selftests/bench/bench-control.c) $(B)/libsainactl.a
	$(CC) $(LDFLAGS) -o $@ $^ -lmnl

ALL += $(addprefix $(B)/,bench-datapath bench-scale bench-control bench.bpf.o bench_kernel.bpf.o bench_scale.bpf.o)

# Messages per second of the switch alone, by cores, and what limits larger machines.
bench-scale: all
	python3 selftests/bench/scale.py $(BENCH_ARGS)
.PHONY: bench-scale

# Whether policies keep what they promise about time, measured with real workers.
bench-policies: all
	python3 selftests/bench/policies.py $(BENCH_ARGS)
.PHONY: bench-policies

# What looking up a job in saina.ko costs, in the test VM with kernel VM_KERNEL.
VM_KERNEL ?= 6.1
bench-lookup: all
	ko=$$(selftests/module/build.sh $(VM_KERNEL)) && selftests/vm/saina-vm run -k $(VM_KERNEL) -- \
		sh -c "insmod $$ko && exec $(abspath $(B))/bench-datapath --lookup $(BENCH_ARGS)"
.PHONY: bench-lookup
include selftests/bench/allreduce/allreduce.mk
