# SPDX-License-Identifier: GPL-2.0-or-later
#
# Scripts that build a lab with tools/saina-lab.
NET_TESTS := json_test backend basic shm shm_server ctrl_fields tree_admit loss bad_values send_errors stop firewall delay policy policies control steps groups sfcd death join agent ports jobs foreign slowpath tc_handoff generic hook gso podman hostile many capture metrics top

$(foreach t,$(NET_TESTS),$(call test,net/$(t),quick,host,400,selftests/net/$(t).sh))
# The lab itself, the limit of descriptors, the controller of groups and cloned frames: nearly two
# minutes together.
NET_TESTS_FULL := lab two_hosts replug away nofile grouping skb_clones
$(foreach t,$(NET_TESTS_FULL),$(call test,net/$(t),full,host,400,selftests/net/$(t).sh))
# Again with the tc hook, on a Linux bridge.
HOOK_TESTS := basic loss hostile
HOOK_TESTS_FULL := policy sfcd death foreign steps
$(foreach t,$(HOOK_TESTS),$(call test,net/$(t)-tc,quick,host,400,env SAINA_TEST_HOOK=tc selftests/net/$(t).sh))
$(foreach t,$(HOOK_TESTS_FULL),$(call test,net/$(t)-tc,full,host,600,env SAINA_TEST_HOOK=tc selftests/net/$(t).sh))
# float32 of all magnitudes: short, and each hook alone at length.
$(call test,net/numbers,quick,host,400,env SAINA_TEST_HOOK=mixed selftests/net/numbers.sh)
$(call test,net/numbers-tc,full,host,900,env SAINA_TEST_HOOK=tc selftests/net/numbers.sh all)
$(call test,net/numbers-xdp,full,host,900,env SAINA_TEST_HOOK=xdp selftests/net/numbers.sh all)
$(call test,net/numbers-int16,full,host,900,env SAINA_TEST_HOOK=tc SAINA_TEST_TYPE=int16 selftests/net/numbers.sh all)
$(call test,net/numbers-int16-xdp,full,host,400,env SAINA_TEST_HOOK=xdp SAINA_TEST_TYPE=int16 selftests/net/numbers.sh)
# Jumbo frames: results in pieces, which leave XDP ports by tc.
$(call test,net/loss-jumbo,full,host,600,env SAINA_TEST_HOOK=tc selftests/net/loss.sh jumbo)
$(call test,net/loss-jumbo-xdp,full,host,600,env SAINA_TEST_HOOK=xdp selftests/net/loss.sh jumbo)
# Some workers behind tc, some behind XDP.
MIXED_TESTS := basic loss policy sfcd death hostile
$(foreach t,$(MIXED_TESTS),$(call test,net/$(t)-mixed,full,host,600,env SAINA_TEST_HOOK=mixed selftests/net/$(t).sh))
# It waits twice for ten seconds.
$(call test,net/sweep,full,host,400,selftests/net/sweep.sh)
# Shared memory in front of Open vSwitch.
$(call test,net/shm-ovs,full,host,400,selftests/net/shm.sh ovs)
$(call test,net/host_bench,full,host,400,selftests/net/host_bench.sh)
# A lead of rounds; jobs that share memory are on a Linux bridge.
$(call test,net/lead,full,host,600,env SAINA_TEST_HOOK=xdp selftests/net/lead.sh)
$(call test,net/lead-tc,full,host,600,env SAINA_TEST_HOOK=tc selftests/net/lead.sh)
# All ordered pairs of policies.
$(call test,net/swaps,full,host,600,selftests/net/swaps.sh)
$(call test,net/swaps-tc,full,host,600,env SAINA_TEST_HOOK=tc selftests/net/swaps.sh)
# k that goes down again: gradient descent with a learning rate that drops.
$(call test,net/sfcd_down,full,host,600,selftests/net/sfcd_down.sh)
# A controller that measures for a minute.
$(call test,net/deadline,full,host,400,selftests/net/deadline.sh)
# Twenty jobs at once, each with its slow worker.
$(call test,net/stragglers,full,host,600,selftests/net/stragglers.sh)
# It waits for time-outs.
$(call test,net/hung,full,host,400,selftests/net/hung.sh)
# The Python package, with numpy arrays and with torch tensors.
$(call test,net/python,quick,host,400,selftests/net/python.sh numpy quick)
$(call test,net/python,full,host,600,selftests/net/python.sh)
# DistributedDataParallel.
$(call test,net/torch,full,host,1200,selftests/net/torch.sh)
$(call test,net/torch_states,full,host,900,selftests/net/torch_states.sh)
$(call test,net/torch_gradients,full,host,1800,selftests/net/torch_gradients.sh)
$(call test,net/torch_loops,full,host,1800,selftests/net/torch_loops.sh)
$(call test,net/torch_peers,full,host,1800,selftests/net/torch_peers.sh)
$(call test,net/torch_restart,full,host,1200,selftests/net/torch_restart.sh)
# The hook and the backend on two hosts.
$(call test,net/tree_torch,full,host,600,selftests/net/tree_torch.sh)
# The backend of torch.distributed.
$(call test,net/c10d,full,host,1800,selftests/net/c10d.sh)
# ... of Debian 13's PyTorch 2.6; the first time it makes a Debian 13.
$(call test,net/trixie,full,host,2400,selftests/net/trixie.sh)
# Its GradScaler works without a GPU.
$(call test,net/trixie-amp,full,host,2400,selftests/net/trixie.sh torch_numbers.sh amp)
# PyTorch's own tests of Gloo's all-reduce.
$(call test,net/gloo_suite,full,host,1200,selftests/net/gloo_suite.sh)
# The package of pip.
$(call test,net/pip,full,host,600,selftests/net/pip.sh)
# Results compared with those of float64 and of Gloo.
$(call test,net/torch_numbers,full,host,1200,selftests/net/torch_numbers.sh)
$(call test,net/demo_torch,full,host,1200,selftests/net/demo_torch.sh)
$(call test,net/bench_ddp,full,host,600,selftests/net/bench_ddp.sh)
$(call test,net/python-torch,full,host,600,selftests/net/python.sh torch)
# What the quick tier leaves out: clients that are waited for until they are dropped, captures on Open vSwitch.
$(call test,net/capture,full,host,600,selftests/net/capture.sh all)
# The quickstarts, in all their ways.
$(call test,net/podman,full,host,600,selftests/net/podman.sh all)
$(call test,net/qemu,full,host,900,selftests/net/qemu.sh)
# Beside earlier versions, which it builds.
$(call test,net/upgrade,full,host,1800,selftests/net/upgrade.sh)
# Workers in VMs of their own.
$(call test,net/prometheus,full,host,600,selftests/net/prometheus.sh)
$(call test,net/bench,full,host,600,selftests/net/bench.sh)
$(call test,net/figures,full,host,1200,selftests/net/figures.sh)
$(call test,net/vm_workers,full,host,1200,selftests/net/vm_workers.sh)
$(call test,net/vm_workers_tc,full,host,900,selftests/net/vm_workers_tc.sh)

# Again in the test VM, with the jobs in saina.ko and Open vSwitch's kernel datapath: what depends on the kernel on
# both, the rest on one.  Not there: lab (has no agent), many (emulated processors are too slow for 64 workers
# to join in time), demo (demo_vm_test.sh is that) and vm_workers (starts VMs itself).
net-vm = $(call test,net/$(1),$(2),$(3),1500,selftests/module/with_module.sh selftests/net/$(1).sh)
$(foreach t,agent basic loss policy sfcd,$(call net-vm,$(t),full,vm))
$(foreach t,death backend join slowpath hostile ctrl_fields shm_server hung,$(call net-vm,$(t),full,6.12))
$(foreach t,delay ports jobs generic foreign,$(call net-vm,$(t),full,6.1))

# clsact is what 6.1 has.
$(call test,net/hook,full,6.1,1500,env SAINA_TEST_BACKEND=agent selftests/net/hook.sh)
# The development machines' kernel has no action police.
$(call test,net/away,full,6.1,1500,env SAINA_TEST_BACKEND=agent selftests/net/away.sh policed)

$(B)/selftests/rawsend: $(call objs,selftests/net/rawsend.c)
	$(call link,$^)
check-programs: $(B)/selftests/rawsend

# Jobs across hosts.
$(B)/selftests/tree_worker: $(call objs,selftests/net/tree_worker.c) $(B)/libsaina.a
	$(call link,$^ -pthread -lz -lm)
check-programs: $(B)/selftests/tree_worker
$(call test,net/tree,quick,host,400,selftests/net/tree.sh quick)
$(call test,net/tree,full,host,900,selftests/net/tree.sh)
$(call test,net/tree_deep,quick,host,400,selftests/net/tree_deep.sh quick)
$(call test,net/tree_deep,full,host,900,selftests/net/tree_deep.sh)
$(call test,net/tree,full,6.12,1500,selftests/module/with_module.sh selftests/net/tree.sh quick)
