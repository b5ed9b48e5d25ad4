#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# DistributedDataParallel with saina.torch: four ranks of selftests/python/ddp.py, which use Gloo
# beside it for what DDP itself does and to compare.
#
#     rank 0 .. 3: w0 .. w3 --- br0 (Linux bridge)
#
# 1. One case after the other
# 2. A rank is killed in its backward
# 3. The agent is killed and started
# 4. torchrun starts all ranks again

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../python/lib.sh
. "$NET_DIR/../python/lib.sh"
ddp=$TOP/selftests/python/ddp.py
# Ranks are killed in sections 2 and 4.
expected_log='job bsp: worker [0-9]+ .* is dead: silent for'
DEFAULT_BRIDGE=linux

lab_up --workers 4

# 1. One case after the other
job bsp id 0 elements 700000 workers 4 token s3cret
job fastest id 1 elements 700000 workers 4 token s3cret policy fastest:k=3
job small id 2 elements 1000 workers 4 token s3cret
job bad id 3 elements 700000 workers 4 token s3cret
job drop id 4 elements 700000 workers 4 token s3cret policy fastest:k=3,late=drop
job auto id 5 elements auto workers 4 token s3cret
ranks 4 "$ddp" same accumulate unused residual lost lost_at_first late_rule straggler broadcast refuse auto order
check "ddp: all ranks end well" wait_all 400
points ddp

# 2. A rank is killed in its backward
saina job del bsp >/dev/null
job bsp id 0 elements 700000 workers 4 token s3cret dead 3000
ranks 4 "$ddp" killed
for i in 0 1 2; do
	check "killed: rank $i goes on when rank 3 was killed in its backward" slowwait 120 grep -q finished "$WORK/$i.py.out"
done
check "killed: the three that are left have the same model" models_are 3
kill -KILL "${worker_pids[@]}" 2>/dev/null
worker_pids=()

# 3. The agent is killed and started
saina job del bsp >/dev/null
job bsp id 0 elements 700000 workers 4 token s3cret
ranks 4 "$ddp" restart
check "agent: they train" slowwait 120 grep -q "step 5" "$WORK/0.py.out"
lab agent kill >/dev/null
lab agent start >/dev/null
check "agent: all ranks go on when it was killed and started again" wait_all 120
check "agent: all models are the same" models_are 4

# 4. torchrun starts all ranks again
saina job del bsp >/dev/null
job bsp id 0 elements 700000 workers 4 token s3cret dead 3000
rm -f "$WORK"/*.py.out "$WORK"/digest-*
for i in 0 1 2 3; do
	# torchrun looks for the first rank by the name of its host, which is an address here.
	# shellcheck disable=SC2016
	py_env=(TZ=UTC unshare --uts sh -c 'hostname "$0"; exec "$@"' "10.190.0.1$i")
	py "$i" "$i" /usr/bin/torchrun --nnodes=4 --nproc_per_node=1 --rdzv_backend=c10d --rdzv_id=t "--rdzv_conf=is_host=$((i == 0)),timeout=240" --max_restarts=3 \
		--redirects=1 --tee=1 "--log_dir=$WORK/torchrun-$i" \
		--rdzv_endpoint=10.190.0.10:29400 "$ddp" torchrun
done
check "torchrun: all ranks end well after rank 2 was killed" wait_all 240
check "torchrun: rank 2 was killed" test -e "$WORK/died"
check "torchrun: all models are the same" models_are 4

finished
