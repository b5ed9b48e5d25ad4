# SPDX-License-Identifier: GPL-2.0-or-later
#
# saina-train: the trainer of `make demo'.
TRAIN_OBJ := $(call objs,$(addprefix selftests/trainer/,main.c trainer.c train_worker.c \
	train_watch.c train_steps.c train_sim.c train_sim_state.c train_sim_policy.c \
	train_sim_steps.c train_read.c train_report.c mlp.c data.c) userland/stop/stop.c tools/saina/dbw.c \
	tools/saina/deadline.c)

$(B)/saina-train: $(TRAIN_OBJ) $(B)/libsaina.a
	$(CC) $(LDFLAGS) -o $@ $^ -ljansson -lz -lpthread -lm

ALL += $(B)/saina-train
