# SPDX-License-Identifier: GPL-2.0-or-later
$(call test,install,quick,host,180,selftests/install/install_test.sh)
$(call test,deb,full,host,900,selftests/install/deb_test.sh)
