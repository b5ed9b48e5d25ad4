# SPDX-License-Identifier: GPL-2.0-or-later
$(call test,install,quick,host,400,selftests/install/install_test.sh)
$(call test,deb,full,host,900,selftests/install/deb_test.sh)
# They build the packages themselves; the first starts a VM, in which DKMS compiles the module twice.
$(call test,install/debian,full,host,5400,selftests/install/debian_test.sh)
$(call test,install/first_steps,full,host,1800,selftests/install/first_steps.sh)
