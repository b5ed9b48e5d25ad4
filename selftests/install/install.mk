# SPDX-License-Identifier: GPL-2.0-or-later
$(call test,install,quick,host,180,selftests/install/install_test.sh)
