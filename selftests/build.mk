# SPDX-License-Identifier: GPL-2.0-or-later
include selftests/bench/bench.mk
include selftests/trainer/trainer.mk
include selftests/figures/figures.mk
include selftests/vm/vm.mk
include selftests/oracle/oracle.mk
include selftests/unit/unit.mk
include selftests/datapath/datapath.mk
include selftests/tree/tree.mk
include selftests/tool/tool.mk
include selftests/net/net.mk
include selftests/mpi/mpi.mk
include selftests/module/module.mk
include selftests/lint/lint.mk
include selftests/install/install.mk
include selftests/sanitize/sanitize.mk

# What selftests/run reads.  Its recipe is expanded when all .mk files have been read.
$(B)/tests.list: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(TESTS) >$@
check-programs: $(B)/tests.list
FORCE:
.PHONY: FORCE
