# SPDX-License-Identifier: GPL-2.0-or-later
#
# The Python package without a job.
$(call test,python_state,quick,unit,400,selftests/unit/python_state_test.py)
