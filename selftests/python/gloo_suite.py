#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""PyTorch's own tests of Gloo's all-reduce, unchanged, with the backend saina in the place of Gloo.

    gloo_suite.py [TEST...]      in PYTHONPATH: test/distributed of PyTorch's source

Four processes, each of which enters a network namespace of the lab, $NETNS with the rank behind it.
"""

import ctypes
import datetime
import os
import sys
import types
import unittest

import torch.distributed as dist

import saina.c10d

try:
    import expecttest
except ImportError:     # Debian 12 lacks it: a base class of PyTorch's tests, of which these use no method
    expecttest = types.ModuleType("expecttest")
    expecttest.TestCase = unittest.TestCase
    expecttest.ACCEPT = False
    sys.modules["expecttest"] = expecttest
import test_c10d_gloo

CLONE_NEWNET = 0x40000000
# Without test_sparse_allreduce_basics, which PyTorch skips, and those of CUDA.
TESTS = ("test_allreduce_checks", "test_allreduce_basics", "test_allreduce_basics_using_work_api", "test_allreduce_stress",
         "test_allreduce_coalesced_checks", "test_allreduce_coalesced_basics", "test_allreduce_coalesced_stress",
         "test_sparse_allreduce_checks", "test_barrier_implies_wait", "test_empty_tensors",
         "test_multi_device_constructor")


def create(self, store, rank, world_size, _opts):
    with open(f"/run/netns/{os.environ['NETNS']}{rank}", "rb") as f:
        if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    group = saina.c10d._create(store, rank, world_size, datetime.timedelta(seconds=50))
    assert isinstance(group, saina.c10d.ProcessGroup) and group._sums
    dist.barrier(group=group)
    return group


# The processes of the tests import this file, too.
test_c10d_gloo.ProcessGroupGlooTest._create_process_group_gloo = create


if __name__ == "__main__":
    suite = unittest.TestSuite(test_c10d_gloo.ProcessGroupGlooTest(t) for t in sys.argv[1:] or TESTS)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    sys.exit(not result.wasSuccessful() or bool(result.skipped))
