# SPDX-License-Identifier: GPL-2.0-or-later
#
# The XDP program.  mcpu=v3: 32-bit registers and jumps, atomics that return.

BPF_CFLAGS := -target bpf -O2 -g -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter -Iuapi -Ikmod/bpf \
	-idirafter /usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)

$(B)/%.bpf.o: kmod/bpf/%.bpf.c
	@mkdir -p $(@D) $(B)/obj/kmod/bpf
	@echo '  CLANG   $@'
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(B)/obj/kmod/bpf/$*.bpf.d -MT $@ -c -o $@ $<

ALL += $(B)/saina_xdp.bpf.o $(B)/saina_xdp_kmod.bpf.o

# The same with snapshots from saina.ko.
$(B)/saina_xdp_kmod.bpf.o: kmod/bpf/saina_xdp.bpf.c
	@mkdir -p $(@D) $(B)/obj/kmod/bpf
	@echo '  CLANG   $@'
	$(CLANG) $(BPF_CFLAGS) -DSAINA_KMOD -MMD -MP -MF $(B)/obj/kmod/bpf/saina_xdp_kmod.bpf.d -MT $@ -c -o $@ $<
