# SPDX-License-Identifier: GPL-2.0-or-later
#
# libsaina-mpi.so under Open MPI, and under mpi4py's own tests.
$(B)/selftests/mpi-sums: selftests/mpi/sums.c
	@mkdir -p $(@D)
	@echo '  CC      $@'
	$(CC) -std=gnu11 -Wall -Wextra -Werror $(CFLAGS) $(shell pkg-config --cflags $(MPI_PC)) $(LDFLAGS) -o $@ $< $(MPI_LIBS)

ifneq ($(MPI_LIBS),)
check-programs: $(B)/selftests/mpi-sums
endif
$(call test,mpi/mpi,quick,host,400,selftests/mpi/mpi.sh quick)
$(call test,mpi/mpi,full,host,600,selftests/mpi/mpi.sh)
$(call test,mpi/mpi4py,full,host,300,selftests/mpi/mpi4py.sh)
$(call test,mpi/hosts,full,host,300,selftests/mpi/hosts.sh)
