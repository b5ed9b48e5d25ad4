#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# json.sh, which the tests of this directory use: what is missing has no value.

set -u
dir=$(dirname "$(readlink -f "$0")")
# shellcheck source=../tap.sh
. "$dir/../tap.sh"
# shellcheck source=json.sh
. "$dir/json.sh"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# gives DESCRIPTION EXPECTED COMMAND...: EXPECTED is what it prints and its status
gives() {
	local what=$1 expected=$2 got
	got="$("${@:3}" 2>/dev/null) $?"
	check "$what" [ "$got" = "$expected" ] || diag "expected: $expected, got: $got"
}

text='[{"a": 1, "b": {"late": 3, "name": "x"}, "list": [4,5]},{"a":2,"b":{"late":4},"list":[]}]'
gives "json_value: a number is found" "1 0" json_value a "$text"
gives "json_value: a text is found" "x 0" json_value name "$text"
gives "json_value: an unknown name fails" " 1" json_value nam "$text"
gives "json_sum: adds all values of a name" "7 0" json_sum late "$text"
gives "json_sum: an unknown name fails" " 1" json_sum no_memory "$text"
gives "json_sum: no output to read fails" " 1" json_sum late ""
gives "json_count: counts the values of a name" "2 0" json_count a "$text"
gives "json_count: counts the values of a name that are equal to a given one" "1 0" json_count a "$text" 2
gives "json_length: gives the length of the first array" "2 0" json_length list "$text"
gives "json_length: an unknown name fails" " 1" json_length lst "$text"

printf '%s\n' '{"round": 0, "late": 2, "crc": "aa", "mask_any": 3, "mask_all": 3}' \
	'{"round": 1, "late": 5, "crc": "bb", "mask_any": 3, "mask_all": 1}' >"$WORK/0.log"
sed 's/bb/cc/' "$WORK/0.log" >"$WORK/1.log"
: >"$WORK/2.log"
gives "last_field: gives the field of the newest round" "1 0" last_field 0 round
gives "last_field: an unknown name fails" " 1" last_field 0 rounds
gives "minmax: looks at all rounds" "2 5 0" minmax 0 late late
gives "minmax: an unknown name fails" "null null 1" minmax 0 late latest
gives "minmax: a log without rounds fails" "null null 1" minmax 2 late late
gives "total: adds all rounds" "7 0" total 0 late
gives "total: an unknown name fails" " 1" total 0 latest
gives "total: a log without rounds fails" " 1" total 2 late
gives "same_results: a log equals itself" " 0" same_results 0 0
gives "same_results: another checksum differs" "round 1 differs: bb 3 1 and cc 3 1 1" same_results 0 1
gives "same_results: logs without a common round fail" "of 2 workers 0 have a round that another one has, too 1" same_results 0 2
echo '{"round": 2, "crc": "dd", "mask_any": 3, "mask_all": 1}' >"$WORK/3.log"
cat "$WORK/0.log" "$WORK/3.log" >"$WORK/4.log"
gives "same_results: no round that all have is needed" " 0" same_results 0 3 4
gives "same_results: a log without a common round fails beside others" "of 3 workers 2 have a round that another one has, too 1" \
	same_results 0 3 0
gives "counted_in: a worker that is in every segment of a round is counted" " 0" counted_in 0 1 0
gives "counted_in: rounds before the given one do not count" " 1" counted_in 0 1 1
plan
