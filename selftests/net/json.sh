# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Reads JSON without starting a process: jq takes 0.6 s to start in the test VM.  Where that does
# not matter there is saina_jq().  These functions read what SAINA's tools and workers print: flat
# objects, no name within a string.
#
# A name that is not there prints nothing and returns 1, so that a comparison with the
# result fails: a test that asks for a misspelled counter must not read 0.

# json_value NAME TEXT: the first value of that name in TEXT, a number or a string
json_value() {
	local re="\"$1\": ?(\"([^\"]*)\"|([^],}]*))"
	[[ $2 =~ $re ]] || return 1
	echo "${BASH_REMATCH[2]}${BASH_REMATCH[3]}"
}

# json_count NAME TEXT [NUMBER]: how many values of that name there are, or how many are NUMBER
json_count() {
	local re="\"$1\": ?(${3-[0-9]+})[],}]" rest=$2 n=0
	while [[ $rest =~ $re ]]; do
		n=$((n + 1))
		rest=${rest#*"${BASH_REMATCH[0]}"}
	done
	echo $n
}

# json_sum NAME TEXT: the sum of all values of that name
json_sum() {
	local re="\"$1\": ?([0-9]+)" rest=$2 sum=
	while [[ $rest =~ $re ]]; do
		sum=$((sum + BASH_REMATCH[1]))
		rest=${rest#*"${BASH_REMATCH[0]}"}
	done
	[ -n "$sum" ] || { echo "json_sum: no \"$1\"" >&2; return 1; }
	echo "$sum"
}

# json_length NAME TEXT: how many elements the array of that name has
json_length() {
	local re="\"$1\": ?\[([^]]*)\]" all
	[[ $2 =~ $re ]] || return 1
	IFS=, read -ra all <<<"${BASH_REMATCH[1]}"
	echo ${#all[@]}
}

# --- logs of workers: a JSON object for each round -----------------------------------

# For awk: value(NAME) of the line.
# shellcheck disable=SC2016
json_awk='function value(name,  v) {
	if (!match($0, "\"" name "\": [^,}]*"))
		return ""
	v = substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 4)
	gsub(/"/, "", v)
	return v
}'

# field TAG NAME: that field of every round in the log TAG, one a line
field() {
	awk -v name="$2" "$json_awk"' { print value(name) }' "$WORK/$1.log"
}

# last_field TAG NAME: of the newest round
last_field() {
	local re="^.*\"$2\": (\"([^\"]*)\"|([^],}]*))[],}]" text
	# The last line may still be on its way.
	text=$(tail -n 2 "$WORK/$1.log" 2>/dev/null)
	[[ $text =~ $re ]] || return 1
	echo "${BASH_REMATCH[2]}${BASH_REMATCH[3]}"
}

# log_round [TAG]: newest round in a worker's log (worker 0's), 0 if there is none
log_round() {
	last_field "${1:-0}" round || echo 0
}

log_at_least() { # ROUND [TAG]
	[ "$(log_round "${2:-0}")" -ge "$1" ]
}

minmax() { # TAG FIELD_MIN FIELD_MAX: the least of one field and the largest of the other, of all rounds
	awk -v a="$2" -v b="$3" "$json_awk"' {
		x = value(a); y = value(b)
		if (x == "" || y == "") { NR = 0; exit }
		if (NR == 1 || x + 0 < low) low = x + 0
		if (NR == 1 || y + 0 > high) high = y + 0
	} END { if (NR) print low, high; else { print "null null"; exit 1 } }' "$WORK/$1.log"
}

total() { # TAG FIELD: its sum over all rounds
	awk -v name="$2" "$json_awk"' {
		v = value(name)
		if (v == "") { NR = 0; exit }
		sum += v
	} END { if (NR) print sum; else exit 1 }' "$WORK/$1.log"
}

# same_results TAG...: the workers have the same results, bit for bit, in each round that several
# of them have; each has a round in common with another one
same_results() {
	local files=("${@/%/.log}")
	files=("${files[@]/#/$WORK/}")
	awk -v n=$# "$json_awk"' FNR == 1 { file++ } {
		round = value("round")
		what = value("crc") " " value("mask_any") " " value("mask_all")
		if (!(round in is)) {
			is[round] = what
			first[round] = file
			next
		}
		if (is[round] != what) {
			print "round " round " differs: " is[round] " and " what
			bad = 1
		}
		compared[file] = compared[first[round]] = 1
	} END {
		if (length(compared) != n)
			print "of " n " workers " length(compared) " have a round that another one has, too"
		exit bad || length(compared) != n
	}' "${files[@]}"
}

# summary TAG FIELD...: these fields of what the worker printed at its end
summary() {
	local text name all=()
	text=$(<"$WORK/$1.out")
	for name in "${@:2}"; do
		all+=("$(json_value "$name" "$text")")
	done
	echo "${all[*]}"
}

# counted_in TAG WORKER ROUND: in a round of TAG's from ROUND on, WORKER is counted in
# every segment
counted_in() {
	local round mask
	while read -r round mask; do
		[ "$round" -ge "$3" ] && (((mask >> $2) & 1)) && return 0
	done < <(awk "$json_awk"' { print value("round"), value("mask_all") }' "$WORK/$1.log" 2>/dev/null)
	return 1
}
