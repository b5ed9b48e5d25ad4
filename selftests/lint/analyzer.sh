#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# gcc -fanalyzer has nothing to say about the C sources of processes (BPF programs are
# clang's and the kernel's verifier's, the module's own files are built by kbuild).
#
# Off, because gcc 12 is wrong about it here:
#	malloc-leak	what is stored through a pointer to the tail of a list counts as
#			lost; LeakSanitizer looks for leaks (selftests/sanitize)

set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=../tap.sh
. selftests/tap.sh
normal=${SAINA_BUILD:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

mapfile -t objects < <(cd "$normal" && find obj/userland obj/tools obj/kmod/core -name '*.o' | sort)
check "analyzer: sources are found (${#objects[@]})" [ ${#objects[@]} -gt 50 ] || bail "nothing to look at: make all"
# Only objects that still have a source: those of files that were moved are left in the build.
for o in "${objects[@]}"; do
	f=${o#obj/}
	[ ! -e "${f%.o}.c" ] || echo "$tmp/b/$o"
done >"$tmp/targets"
xargs make -k -j2 B="$tmp/b" CFLAGS='-O1 -g -fanalyzer -Wno-analyzer-malloc-leak -Wno-error -fdiagnostics-plain-output' \
	<"$tmp/targets" >"$tmp/log" 2>&1
point $? "analyzer: all sources compile" || diag "$(grep -A3 'error:\|Error' "$tmp/log" | head -n 40)"

found=$(grep -- '-Wanalyzer-' "$tmp/log")
[ -z "$found" ]
point $? "analyzer: no warning" || diag "$found"

printf '%s\n' '#include <stdlib.h>' 'int f(void) { int *p = malloc(4); free(p); return *p; }' >"$tmp/bad.c"
gcc -fanalyzer -c -o /dev/null "$tmp/bad.c" 2>&1 | grep -q 'Wanalyzer-use-after-free'
point $? "analyzer: a planted use after free is found"
plan
