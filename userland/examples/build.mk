# SPDX-License-Identifier: GPL-2.0-or-later
#
# One NAME.mk for each example program.
include $(filter-out userland/examples/build.mk,$(wildcard userland/examples/*.mk))
