# SPDX-License-Identifier: GPL-2.0-or-later
include selftests/oracle/oracle.mk
include selftests/datapath/datapath.mk
-include selftests/unit/unit.mk
include selftests/tool/tool.mk
-include selftests/net/net.mk
include selftests/module/module.mk

# The kernel's runner instead of selftests/run.
CHECKS += selftests/kselftest_test.sh
