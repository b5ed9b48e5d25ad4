# SPDX-License-Identifier: GPL-2.0-or-later
#
# libsaina-mpi.so, for LD_PRELOAD, with libsaina linked in.  Not built where there is no MPI; MPI_PC
# names the pkg-config file of the MPI implementation that it is built for.
MPI_PC		?= ompi-c
MPI_LIBS	:= $(shell pkg-config --libs $(MPI_PC) 2>/dev/null)
MPI_OBJ		:= $(call objs,$(addprefix userland/mpi/,intercept.c join.c helper.c))

$(MPI_OBJ): SAINA_CFLAGS += $(shell pkg-config --cflags $(MPI_PC)) -fPIC -fvisibility=hidden -pthread

# The symbols of libsaina are hidden: the program may use a libsaina of its own.
$(B)/libsaina-mpi.so: $(MPI_OBJ) $(B)/libsaina.a
	$(CC) -shared -Wl,-soname,libsaina-mpi.so -Wl,--exclude-libs,ALL -Wl,-z,defs $(LDFLAGS) -o $@ $^ \
		$(MPI_LIBS) -pthread -lm

ifneq ($(MPI_LIBS),)
ALL += $(B)/libsaina-mpi.so

install: install-mpi
endif
install-mpi: $(B)/libsaina-mpi.so
	install -D -m 755 $(B)/libsaina-mpi.so $(DESTDIR)$(PREFIX)/lib/libsaina-mpi.so
.PHONY: install-mpi
