# SPDX-License-Identifier: GPL-2.0-or-later
#
# Measures; Documentation/bench.rst says how.
DATAPATH_BENCH := $(addprefix selftests/bench/,bench-datapath.c cores.c harness.c report.c)

$(B)/bench.bpf.o: selftests/bench/bench.bpf.c
	@mkdir -p $(@D) $(B)/obj/selftests/bench
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(B)/obj/selftests/bench/bench.bpf.d -MT $@ -c -o $@ $<

$(B)/bench-datapath: $(call objs,$(DATAPATH_BENCH)) $(DP_LIB)
	$(CC) $(LDFLAGS) -o $@ $^ $(DP_LDLIBS) -ljansson -lm -pthread

$(B)/bench-control: $(call objs,selftests/bench/bench-control.c) $(B)/libsainactl.a
	$(CC) $(LDFLAGS) -o $@ $^ -lmnl

ALL += $(addprefix $(B)/,bench-datapath bench-control bench.bpf.o)

bench-deps: deps
	tools/install-deps bench

# All-reduce, compared with the peers.
bench: bench-deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all
	/usr/bin/python3 selftests/bench $(BENCH_ARGS)

bench-datapath: all
	@mkdir -p result
	$(B)/bench-datapath -o result/bench-datapath.json $(BENCH_ARGS)

# The control plane: time-outs, and k set by a client.
bench-control: all
	/usr/bin/python3 selftests/bench/control.py $(BENCH_ARGS)

# Training with PyTorch: the hook of saina.torch.
bench-ddp: torch-deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all
	selftests/bench/bench-ddp $(BENCH_ARGS)

.PHONY: bench bench-datapath bench-control bench-ddp bench-deps
