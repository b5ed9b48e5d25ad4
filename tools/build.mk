# SPDX-License-Identifier: GPL-2.0-or-later
include tools/saina/tool.mk
-include tools/lab/lab.mk
