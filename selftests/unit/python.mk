# SPDX-License-Identifier: GPL-2.0-or-later
#
# The Python package without a job.  python_state and python_round need PyTorch, which make check does not install.
$(call test,peer_link,quick,unit,400,selftests/unit/peer_link_test.py)
$(call test,peer_link,full,unit,400,selftests/unit/peer_link_test.py all)
$(call test,python_state,full,unit,400,selftests/unit/python_state_test.py)
$(call test,python_round,full,unit,400,selftests/unit/python_round_test.py)
