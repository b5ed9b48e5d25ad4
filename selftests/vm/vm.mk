# SPDX-License-Identifier: GPL-2.0-or-later
#
# The demo in the test VM, with saina.ko and the kernel datapath of Open vSwitch.
DEMO_VM_KERNEL ?= 6.1
demo-vm: deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all
	selftests/vm/demo-vm --kernel $(DEMO_VM_KERNEL) $(DEMO_ARGS)
.PHONY: demo-vm
