# SPDX-License-Identifier: GPL-2.0-or-later
#
# saina-train: the trainer of `make demo'; libtrain.so: what its simulation uses of it.
TRAIN_MODEL := $(addprefix selftests/trainer/,trainer.c mlp.c data.c)
TRAIN_OBJ := $(call objs,$(addprefix selftests/trainer/,main.c train_worker.c train_watch.c) $(TRAIN_MODEL) userland/stop/stop.c)
TRAIN_LIB := selftests/trainer/train_lib.c $(TRAIN_MODEL) tools/saina/dbw.c tools/saina/deadline.c

$(B)/saina-train: $(TRAIN_OBJ) $(B)/libsaina.a
	$(CC) $(LDFLAGS) -o $@ $^ -ljansson -lz -lpthread -lm

$(B)/libtrain.so: $(TRAIN_LIB) $(wildcard selftests/trainer/*.h tools/saina/dbw.h tools/saina/deadline.h tools/saina/arrivals.h)
	$(CC) $(filter-out -MMD -MP,$(SAINA_CFLAGS)) $(CFLAGS) -fPIC -shared $(LDFLAGS) -o $@ $(TRAIN_LIB) -lz -lm

ALL += $(B)/saina-train $(B)/libtrain.so
