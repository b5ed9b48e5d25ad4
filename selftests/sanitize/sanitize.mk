# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests with sanitizers: built by the script, in $(B)/san-address and $(B)/san-thread.
$(call test,sanitize/address,full,host,1800,selftests/sanitize/sanitize.sh address)
$(call test,sanitize/thread,full,host,1800,selftests/sanitize/sanitize.sh thread)
