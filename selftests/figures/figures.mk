# SPDX-License-Identifier: GPL-2.0-or-later
#
# Measures published results of policies: Documentation/figures.rst.
figures: deps
	+$(MAKE) --no-print-directory -j$(shell nproc) all
	/usr/bin/python3 selftests/figures $(FIGURES_ARGS)
.PHONY: figures
