# SPDX-License-Identifier: GPL-2.0-or-later
#
# The Python package without a job.  It needs PyTorch, which make check does not install.
$(call test,python_state,full,unit,400,selftests/unit/python_state_test.py)
