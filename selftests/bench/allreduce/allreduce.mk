# SPDX-License-Identifier: GPL-2.0-or-later
#
# The contenders of `make bench', which selftests/bench starts.  Not part of `make':
# Gloo and Open MPI come with `tools/install-deps bench'.
BENCH_PROGRAMS := $(addprefix $(B)/bench-,saina gloo openmpi)

$(B)/bench-gloo: selftests/bench/allreduce/gloo.cc tools/bench/serve.h $(BENCH_SERVE)
	@echo '  CXX     $@'
	$(CXX) -std=gnu++17 -Wall -Wextra -Wno-unused-parameter $(CFLAGS) $(LDFLAGS) -o $@ \
		$< $(BENCH_SERVE) -lgloo -pthread

$(B)/bench-openmpi: selftests/bench/allreduce/openmpi.c tools/bench/serve.h $(BENCH_SERVE)
	@echo '  MPICC   $@'
	OMPI_CC='$(CC)' mpicc -std=gnu11 -Wall -Wextra -Wno-unused-parameter $(CFLAGS) $(LDFLAGS) -o $@ \
		$< $(BENCH_SERVE)

# The part of `make bench-ddp' that calls libsaina from C.
$(B)/bench-buckets: $(call objs,selftests/bench/allreduce/buckets.c) $(B)/libsaina.a
	$(CC) $(LDFLAGS) -o $@ $^ -pthread -lm

bench-programs: $(BENCH_PROGRAMS) $(B)/bench-buckets

bench-deps: deps
	tools/install-deps bench

bench: bench-deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all bench-programs
	python3 selftests/bench $(BENCH_ARGS)

# Where the processor time of an all-reduce goes, by perf.
bench-profile: bench-deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all bench-programs
	python3 selftests/bench/cpu_profile.py $(BENCH_ARGS)

bench-ddp: torch-deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all $(B)/bench-buckets
	selftests/bench/bench-ddp $(BENCH_ARGS)

.PHONY: bench bench-profile bench-ddp bench-deps bench-programs
