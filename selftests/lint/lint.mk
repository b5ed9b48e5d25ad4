# SPDX-License-Identifier: GPL-2.0-or-later
#
# What tools say of the sources.
$(call test,lint/shellcheck,quick,unit,900,selftests/lint/shellcheck.sh)
$(call test,lint/mutants,quick,unit,300,selftests/lint/mutants.sh)
$(call test,lint/rooms,quick,unit,200,selftests/lint/rooms_test.py)
$(call test,lint/layers,quick,unit,400,selftests/lint/layers_test.py)
$(call test,lint/analyzer,full,unit,600,selftests/lint/analyzer.sh)
$(call test,lint/kernel_style,full,unit,300,selftests/lint/kernel_style.sh)
$(call test,lint/independent,quick,unit,60,selftests/lint/independent_test.py)
$(call test,lint/docs,quick,unit,100,selftests/lint/docs_test.py)
