# shellcheck shell=bash disable=SC2015,SC2034,SC2153,SC2154
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A tree: the lab NAME, whose workers' namespaces are hosts, and in each host a lab NAME.h0, .h1, ..
# of its own.  Sourced by tools/saina-lab.
#
#     saina-NAME-sw                 saina-NAME-w<H>, a host
#   +----------------------+      +-----------------------------------------+      saina-NAME.h<H>-w0 ..
#   | sainad               |      | sainad                                  |    +------------------+
#   |  br0 10.190.0.1/24   | veth |  eth0 10.190.0.(10+H)  br0 10.190.(H+1).1 veth | eth0             |
#   |   +--- p<H>----------+------+--+ [tbf, ifb0]          +--- p0 ..------+----+  10.190.(H+1).10 |
#   +----------------------+      +-----------------------------------------+    +------------------+

tree_hosts() { # NAME: the labs of the hosts that exist, in order
	lab_names_all | sed -nE "s/^(${1//./\\.}\.h[0-9]+)$/\1/p" | sort -V
}

tree_json() { # NAME HOSTS WORKERS
	local h i sep host_sep=
	printf '{"name":"%s","namespace":"saina-%s-sw","address":"10.190.0.1","control":"%s/control","hosts":[' "$1" "$1" "$LAB_ROOT/$1"
	for ((h = 0; h < $2; h++)); do
		printf '%s\n {"name":"%s.h%d","namespace":"saina-%s-w%d","address":"10.190.%d.1","uplink":"10.190.0.%d","control":"%s/control","workers":[' \
			"$host_sep" "$1" "$h" "$1" "$h" $((h + 1)) $((10 + h)) "$LAB_ROOT/$1.h$h"
		sep=
		for ((i = 0; i < $3; i++)); do
			printf '%s"saina-%s.h%d-w%d"' "$sep" "$1" "$h" "$i"
			sep=,
		done
		printf ']}'
		host_sep=,
	done
	printf ']}\n'
}

# Interrupted or failed: nothing stays.
tree_undo() { # NAME
	local lab
	trap '' INT TERM HUP
	for lab in $(tree_hosts "$1") "$1"; do
		lab_use "$lab"
		lab_undo
	done
}

tree_up() { # NAME OPTIONS
	local name=$1 hosts=2 workers=2 owner=$PPID root=() both=() rc h
	shift
	while [ $# -gt 0 ]; do
		case $1 in
		--hosts|--workers|--uplink|--loss|--seed|--owner|--bridge|--datapath|--mtu|--hook|--gro|--csum)
			[ $# -ge 2 ] || usage_error "$1 needs a value" ;;
		*) usage_error "\"$1\" is not an option of \`tree up'" ;;
		esac
		case $1 in
		--hosts) number "$1" "$2" 1 63; hosts=$2 ;;
		--workers) number "$1" "$2" 1 63; workers=$2 ;;
		--owner) number "$1" "$2" 1 4194304; owner=$2 ;;
		--uplink) root+=(--rate "$2") ;;
		--loss|--seed) root+=("$1" "$2") ;;
		*) both+=("$1" "$2") ;;
		esac
		shift 2
	done
	[ "$(id -u)" -eq 0 ] || die "needs root: run it with sudo"
	[ -z "$(tree_hosts "$name")" ] && [ ! -d "$LAB_ROOT/$name" ] ||
		die "a lab $name exists already: saina-lab tree down $name removes it"

	trap stop INT TERM HUP
	trap 'rc=$?; [ $rc -eq 0 ] || { echo "saina-lab: tree $name could not be built" >&2; tree_undo "$name"; }; exit $rc' EXIT
	"$self" up "$name" --owner "$owner" --workers "$hosts" "${root[@]}" "${both[@]}" || exit
	for ((h = 0; h < hosts; h++)); do
		"$self" up "$name.h$h" --owner "$owner" --inside "$name:$h" --workers "$workers" "${both[@]}" || exit
	done
	trap - INT TERM HUP EXIT
	tree_json "$name" "$hosts" "$workers"
}

tree_down() { # NAME
	[ -n "$(tree_hosts "$1")" ] || die "there is no tree $1; saina-lab list prints all labs"
	tree_undo "$1"
	trap - INT TERM HUP
}
