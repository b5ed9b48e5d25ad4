# SPDX-License-Identifier: GPL-2.0-or-later
#
# The XDP and tc programs.  mcpu=v3: 32-bit arithmetic and jumps, and atomic operations that return the old value.

BPF_CFLAGS := -target bpf -O2 -g -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter \
	-Iuapi -Ikmod/bpf -idirafter /usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)

$(B)/%.bpf.o: kmod/bpf/%.bpf.c
	@mkdir -p $(@D) $(B)/obj/kmod/bpf
	@echo '  CLANG   $@'
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(B)/obj/kmod/bpf/$*.bpf.d -MT $@ -c -o $@ $<

ALL += $(foreach p,xdp tc,$(B)/saina_$(p).bpf.o $(B)/saina_$(p)_kmod.bpf.o)

$(B)/saina_tc.bpf.o $(B)/saina_tc_kmod.bpf.o: BPF_CFLAGS += -DSAINA_HOOK_TC

# The same programs with the jobs' snapshots from saina.ko.
$(B)/%_kmod.bpf.o: kmod/bpf/%.bpf.c
	@mkdir -p $(@D) $(B)/obj/kmod/bpf
	@echo '  CLANG   $@'
	$(CLANG) $(BPF_CFLAGS) -DSAINA_KMOD -MMD -MP -MF $(B)/obj/kmod/bpf/$*_kmod.bpf.d -MT $@ \
		-c -o $@ $<
