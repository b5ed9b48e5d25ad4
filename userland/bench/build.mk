# SPDX-License-Identifier: GPL-2.0-or-later
BENCH_DP_OBJS := $(call objs,$(addprefix userland/bench/,bench-datapath.c rig.c add.c report.c))

$(B)/bench.bpf.o: userland/bench/bench.bpf.c
	@mkdir -p $(@D) $(B)/obj/userland/bench
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(B)/obj/userland/bench/bench.bpf.d -MT $@ -c -o $@ $<

$(B)/bench-datapath: $(BENCH_DP_OBJS) $(DP_LIB)
	$(CC) $(LDFLAGS) -o $@ $^ $(DP_LDLIBS) -ljansson -lm

ALL += $(B)/bench-datapath $(B)/bench.bpf.o
