-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Wireshark's dissector for the SAINA protocol (Documentation/protocol.rst, uapi/saina/proto.h),
-- version 6.  Documentation/wireshark.rst says how to use it, and what a capture can see.
--
-- The tables come first: a new message type, flag or field needs a row there and nothing else.
-- selftests/tool/wireshark_test.py compares them with proto.h.

set_plugin_info({ version = "6", author = "SAINA", description = "SAINA in-network aggregation" })

local VERSION = 6
local PORT_DATA, PORT_CTRL, PORT_RESULT = 48864, 48865, 48866
local HEADER = 48
local TO_CTRL = 220
local WORKER_NONE = 0xff
-- Block scales of int32 and int16; NaN instead of one: the segment holds a NaN or an infinity
local EXPONENT_BIAS, EXPONENT_NAN, EXPONENT_INT = 22, -128, -127

-- type = { name, sender, body, flags, { flag, second body that this flag announces } }
--   sender: "worker" (to DATA or CTRL) or "aggregator"
--   body: payload (count elements), padding (as long as the other messages of the frame), none,
--         rest (whatever follows), or a name in BODIES
local TYPES = {
	[1] = { "GRAD", "worker", "payload", "again" },
	[2] = { "RESULT", "aggregator", "payload", "answer" },
	[3] = { "NOP", "aggregator", "padding" },
	[4] = { "PULL", "worker", "payload", "again" },
	[5] = { "INC", "worker", "payload", "again" },
	[6] = { "READ", "worker", "payload", "again" },
	[7] = { "CLOCK", "worker", "none", "again" },
	[8] = { "STALE", "aggregator", "padding", "answer" },
	[9] = { "PROBE", "worker", "none" },
	[10] = { "PROBE_REPLY", "aggregator", "none" },
	[11] = { "ASK", "worker", "ask" },
	[12] = { "ASK_REPLY", "aggregator", "ask", "ask_reply" },
	[13] = { "SUM", "aggregator", "payload", "sum" },
	[14] = { "NAK", "aggregator", "padding" },
	[15] = { "GO", "aggregator", "none" },
	[16] = { "JOIN", "worker", "join", "join", { 0x02, "named" } },
	[17] = { "WELCOME", "aggregator", "welcome", "welcome", { 0x08, "tree" } },
	[18] = { "REFUSE", "aggregator", "refuse" },
	[19] = { "READY", "worker", "none", "ready" },
	[20] = { "HEARTBEAT", "worker", "none", "heartbeat", { 0x04, "report" } },
	[21] = { "STATUS", "aggregator", "status" },
	[22] = { "LEAVE", "worker", "none" },
	[23] = { "DOORBELL", "worker", "doorbell", "again" },
	[24] = { "COMPLETION", "aggregator", "doorbell" },
	[25] = { "FETCH", "worker", "doorbell", "again" },
}

-- elem = { name, bytes of one, accessor of one }; of int16, hdr.count counts pairs
local ELEMS = {
	[1] = { "int32", 4, "le_int" },
	[2] = { "float32", 4, "le_float" },
	[3] = { "bfloat16", 2 },
	[4] = { "int16", 4, "pair" },
}

local PAYLOADS = { [64] = true, [128] = true, [256] = true, [352] = true, [1024] = true, [2048] = true }

local JOB_STATES = { [1] = "forming", [2] = "running", [3] = "stopped" }
local PATHS = { [0] = "no READY received", [1] = "redirected", [2] = "relayed through the bridge" }

local REFUSALS = {
	[1] = "malformed", [2] = "no such job", [3] = "wrong token", [4] = "job is full", [5] = "worker identifier taken",
	[6] = "too many elements", [7] = "job stopped", [8] = "not yet seen on a port of the bridge",
	[9] = "session unknown: JOIN again", [10] = "unknown protocol version",
	[11] = "the job is in a tree: JOIN with TREE", [12] = "not admitted by its parent yet",
	[13] = "not as the parent's job", [14] = "more workers than the parent has room for",
}

-- bits of the flags, by kind of message: { abbreviation, bit, text }
local FLAGS = {
	answer = {
		{ "degraded", 0x01, "DEGRADED: fewer than k, because workers died or a time-out expired" },
		{ "late", 0x02, "LATE: the addressee is not in the sum" },
		{ "resend", 0x04, "RESEND: the addressee is in the sum" },
		{ "pulled", 0x08, "PULLED: answers a PULL" },
		{ "drop_late", 0x10, "DROP_LATE: late gradients are dropped, not kept as residuals" },
		{ "types", 0x80, "TYPES: of integers and floats, so there is no sum: the payload begins with the mask of integers" },
	},
	sum = {
		{ "resend", 0x04, "RESEND: it was counted before" },
		{ "pulled", 0x08, "PULLED: answers a READ" },
		{ "fresh", 0x40, "FRESH: may be used for the next step" },
	},
	again = { { "retransmit", 0x20, "RETRANSMIT: sent before" } },
	join = {
		{ "named", 0x02, "NAMED: the job's name follows" },
		{ "tree", 0x08, "TREE: divides by weight" },
		{ "node", 0x10, "NODE: a job joins its parent" },
	},
	welcome = { { "tree", 0x08, "TREE: the numbers of the tree follow" } },
	ask_reply = { { "away", 0x20, "AWAY: the sum of a slot is with the parent" } },
	heartbeat = { { "report", 0x04, "REPORT: statistics of the worker follow" } },
	ready = { { "fast", 0x01, "FAST: a PROBE_REPLY was received" } },
}

-- { abbreviation, bytes, kind, text, values or display }
-- kinds: uint, dec, hex, int, workers (mask), bytes, text, secret, ipv4, zero
local FIELDS = {
	{ "version", 1, "dec", "Version" },
	{ "type", 1, "dec", "Type" },
	{ "flags", 1, "flags", "Flags" },
	{ "elem", 1, "dec", "Elements are" },
	{ "job", 2, "dec", "Job" },
	{ "k", 1, "dec", "k, latched when the slot opened" },
	{ "reserved", 1, "dec", "Reserved" },
	{ "round", 4, "dec", "Round" },
	{ "segment", 4, "dec", "Segment" },
	{ "count", 2, "dec", "Elements in the payload" },
	{ "worker", 1, "dec", "Worker" },
	{ "exponent", 1, "int", "Exponent of the block scale" },
	{ "contributors", 1, "dec", "Contributors" },
	{ "next_k", 1, "dec", "k of the next round" },
	{ "policy", 2, "dec", "Policy sequence number (low 16 bits)" },
	{ "mask", 8, "workers", "Workers in the sum" },
	{ "aux", 4, "dec", "1 + last round in which the addressee was counted" },
	{ "slot_round", 4, "dec", "Next round the data path opens" },
	{ "session", 8, "hex", "Session" },
}

local NAKS = { [1] = "out of order", [2] = "may not begin yet", [3] = "another exponent",
	[4] = "the job runs steps, not rounds, or the other way round" }
local GOING = { "going", 8, "workers", "Workers that may do the step they are in" }
local STEP = { "step", 4, "dec", "Step the addressee is in" }
local LOW = { "low", 4, "dec", "Steps that all workers of the group have finished" }
-- ... instead of LOW, in a NAK or GO with k 4
local FENCE = { "fence", 4, "dec", "First round or step of the other mode" }
local PROBE = { "probe", 4, "dec", "Id of the probe for redirected results, 0: none" }

-- header fields that have another meaning in messages of a type
local OVERRIDES = {
	[9] = { segment = PROBE },
	[10] = { segment = PROBE },
	[12] = { mask = { "behind", 8, "workers", "Workers too many rounds behind for the round to begin" } },
	[13] = { mask = { "updates", 8, "dec", "Updates in the sums" }, slot_round = LOW },
	[14] = { k = { "nak", 1, "dec", "Reason of the NAK", NAKS }, mask = GOING, aux = STEP, slot_round = LOW },
	[15] = {
		k = { "mode", 1, "dec", "The job runs", { [0] = "steps", [4] = "rounds: no worker may begin a step" } },
		segment = { "window", 4, "dec", "Steps ahead of the slowest, 4294967295: no bound" }, mask = GOING, aux = STEP, slot_round = LOW,
	},
	[19] = { segment = PROBE },
	[21] = {
		segment = PROBE, aux = { "board", 4, "dec", "Output array that doorbells are answered in, 0: none" },
		k = { "parts_told", 1, "dec", "1 + parts of a coded policy, 0: not given" },
		contributors = { "part", 1, "dec", "Part that the addressee computes" },
		mask = { "missing", 8, "workers", "Workers that the newest open round waits for" },
	},
}
-- ... and in a multicast RESULT
local BROADCAST = { aux = { "timeout_us", 4, "dec", "Time-out of the policy (us), 0: none" } }

local BODIES = {
	doorbell = {
		{ "bell.rung", 8, "segments", "Posted: the gradient is in shared memory, or its result is requested there" },
		{ "bell.done", 8, "segments", "Done: the result is there" },
	},
	ask = {
		{ "ask.time", 8, "hex", "Time stamp of the worker, echoed" },
		{ "ask.counted", 8, "segments", "Counted: the gradient is in the sum" },
		{ "ask.done", 8, "segments", "Done: the result is there" },
		{ "ask.due", 8, "segments", "Due: a PULL would complete it" },
	},
	join = {
		{ "join.token", 32, "secret", "Token" },
		{ "join.name", 32, "text", "Name" },
		{ "nonce", 8, "hex", "Nonce" },
		{ "elements", 8, "dec", "Elements" },
		{ "join.round", 4, "dec", "First round that the worker would send" },
		{ "join.arrays", 2, "dec", "Arrays that the elements are reduced in, at most" },
		{ "join.per_worker", 2, "dec", "Elements for each worker in one more array" },
	},
	report = {
		{ "report.sent", 8, "dec", "Gradients sent for the first time" },
		{ "report.resent", 8, "dec", "Gradients sent again" },
		{ "report.rtt_us", 4, "dec", "Round-trip time (us)" },
		{ "report.window", 4, "dec", "Window (messages)" },
		{ "report.refused", 4, "dec", "Errno with which gradients are refused" },
		{ "report.refused_ms", 4, "dec", "Refused since (ms ago)" },
		{ "report.unanswered_ms", 4, "dec", "Unanswered since (ms ago)" },
	},
	named = {
		{ "join.job", 32, "text", "Name of the job" },
	},
	welcome = {
		{ "nonce", 8, "hex", "Nonce" },
		{ "elements", 8, "dec", "Elements" },
		{ "welcome.segments", 4, "dec", "Segments" },
		{ "welcome.payload", 2, "dec", "Elements in a message" },
		{ "welcome.pool", 2, "dec", "Pool of slots" },
		{ "welcome.ring", 2, "dec", "Rounds of results kept" },
		{ "welcome.workers", 1, "dec", "Workers of the job" },
		{ "state", 1, "dec", "State of the job", JOB_STATES },
		{ "welcome.round", 4, "dec", "First round that the worker may contribute to" },
		{ "welcome.group", 4, "ipv4", "Group of the results" },
		{ "welcome.heartbeat_ms", 2, "dec", "Heartbeat every (ms)" },
		{ "welcome.dead_ms", 2, "dec", "Dead when silent for (ms)" },
		{ "welcome.exponent", 1, "int", "First exponent of the parameters (ssp, asp, grouped)" },
		{ "welcome.elem", 1, "dec", "Elements of the job are", "elems" },
		{ "welcome.formed", 1, "dec", "Admitted while the job was forming" },
		{ "welcome.reports", 1, "dec", "Heartbeats may have a report" },
		{ "welcome.part", 1, "dec", "Part that the worker computes" },
		{ "welcome.parts", 1, "dec", "Parts of the gradient" },
		{ "welcome.by_reference", 1, "dec", "The job may share memory" },
		{ "welcome.reserved", 1, "zero", "Reserved" },
	},
	tree = {
		{ "tree.weight", 4, "dec", "Workers of the tree" },
		{ "tree.rank0", 4, "dec", "Number of the worker, or of the node's first one, in the tree" },
		{ "tree.depth", 1, "dec", "Jobs above" },
		{ "tree.reserved", 3, "zero", "Reserved" },
		{ "tree.quorum", 4, "dec", "Workers without which the tree does not go on, 0: not set" },
	},
	refuse = {
		{ "nonce", 8, "hex", "Nonce" },
		{ "refuse.reason", 4, "dec", "Reason", REFUSALS },
		{ "refuse.text", 160, "text", "Sentence" },
	},
	status = {
		{ "status.active", 8, "workers", "Workers alive" },
		{ "status.round", 4, "dec", "Next round to open" },
		{ "state", 1, "dec", "State of the job", JOB_STATES },
		{ "status.path", 1, "dec", "Path of the results to the worker", PATHS },
		{ "status.timeout_ms", 2, "dec", "Time-out of the policy (ms), 0: none" },
		{ "status.text", 156, "text", "What those are kept away by that are waited for" },
	},
}

-- --- fields -------------------------------------------------------------------------------

local saina = Proto("saina", "SAINA In-Network Aggregation")
local F = {}

local function value_names(list)
	local names = {}
	for value, entry in pairs(list) do
		names[value] = entry[1]
	end
	return names
end

local VALUES = { type = value_names(TYPES), elem = value_names(ELEMS), elems = value_names(ELEMS) }

local function declare_field(spec)
	local abbr, bytes, kind, text, values = table.unpack(spec)
	if F[abbr] then
		return
	end
	if type(values) == "string" then
		values = VALUES[values]
	end
	values = values or VALUES[abbr]
	local full, bits = "saina." .. abbr, bytes * 8
	if kind == "dec" then
		F[abbr] = ProtoField["uint" .. bits](full, text, base.DEC, values)
	elseif kind == "hex" or kind == "workers" or kind == "segments" or kind == "flags" then
		F[abbr] = ProtoField["uint" .. bits](full, text, base.HEX)
	elseif kind == "int" then
		F[abbr] = ProtoField["int" .. bits](full, text, base.DEC)
	elseif kind == "ipv4" then
		F[abbr] = ProtoField.ipv4(full, text)
	elseif kind == "text" then
		F[abbr] = ProtoField.stringz(full, text)
	else
		F[abbr] = ProtoField.bytes(full, text)
	end
end

for _, spec in ipairs(FIELDS) do
	declare_field(spec)
end
for _, fields in pairs(OVERRIDES) do
	for _, spec in pairs(fields) do
		declare_field(spec)
	end
end
declare_field(BROADCAST.aux)
declare_field(FENCE)
for _, body in pairs(BODIES) do
	body.size = 0
	for _, spec in ipairs(body) do
		declare_field(spec)
		body.size = body.size + spec[2]
	end
end
for _, bits in pairs(FLAGS) do
	for _, bit in ipairs(bits) do
		F["flags." .. bit[1]] = ProtoField.bool("saina.flags." .. bit[1], bit[3], 8, nil, bit[2])
	end
end
F.contributor = ProtoField.uint8("saina.contributor", "Counted", base.DEC)
F.alive = ProtoField.uint8("saina.alive", "Alive", base.DEC)
F.payload = ProtoField.bytes("saina.payload", "Payload")
F.int = ProtoField.int32("saina.element", "Element", base.DEC)
F.float = ProtoField.float("saina.element_float", "Element")
F.data = ProtoField.bytes("saina.data", "Data")
F.messages = ProtoField.uint32("saina.messages", "Messages in this frame", base.DEC)
F.asked = ProtoField.framenum("saina.asked_in", "Answers the ASK in frame", base.NONE, frametype.REQUEST)
F.rtt = ProtoField.relative_time("saina.rtt", "Time since that ASK")
F.opened = ProtoField.framenum("saina.first_grad", "First GRAD of this segment seen in frame")
F.wait = ProtoField.relative_time("saina.wait", "Time since that GRAD")
F.newest = ProtoField.framenum("saina.last_grad", "Last GRAD of this segment seen in frame")
F.straggler = ProtoField.uint8("saina.last_worker", "Worker of that last GRAD", base.DEC)
saina.fields = F

-- name = { text, severity }: expert information about a malformed message
local EXPERTS = {
	truncated = { "shorter than a message of its type", "ERROR" },
	cut = { "the capture ends before the message does", "NOTE" },
	trailing = { "trailing bytes that are not a message", "WARN" },
	version = { "a protocol version that this dissector does not know", "WARN" },
	unknown = { "unknown message type", "WARN" },
	direction = { "a message of this type is not sent to, or from, this port", "WARN" },
	not_zero = { "must be 0 here", "WARN" },
	flags = { "a flag that this message type does not have", "WARN" },
	job = { "not a job number: 0 to 255", "WARN" },
	worker = { "not a worker number: 0 to 63, or 255 for none", "WARN" },
	elem = { "unknown element type", "WARN" },
	count = { "not a payload size: 64, 128, 256, 352, 1024 or 2048", "WARN" },
	exponent = { "not a block scale: in INC and SUM not -128 (NaN), in a job of int16 not -127 (integers), 0 where elements are floats", "WARN" },
	mask = { "the number of bits in the mask is not the number of contributors", "ERROR" },
}
local E = {}
for name, text in pairs(EXPERTS) do
	E[name] = ProtoExpert.new("saina.bad." .. name, text[1], expert.group.PROTOCOL, expert.severity[text[2]])
end
saina.experts = E

saina.prefs.elements = Pref.uint("Elements to show", 8, "How many elements of each payload are shown (0: none)")
saina.prefs.token = Pref.bool("Show tokens", false, "Show the job's token in JOIN; it is in the capture in any case")

-- --- state of the capture: earlier messages that a later one refers to ------------------------------------------------------

-- asks[job.worker.time] = { frame, time }; rounds[job.segment] = { round, first frame, its time,
-- last frame, its worker }; found_in[frame] = what the first pass found
local asks, rounds, found_in

function saina.init()
	asks, rounds, found_in = {}, {}, {}
end

local function record_gradient(m, pinfo)
	local key = m.job .. "." .. m.segment
	local at = rounds[key]
	if not at or at.round ~= m.round then
		at = { round = m.round, first = pinfo.number, since = pinfo.abs_ts }
		rounds[key] = at
	end
	at.last, at.worker = pinfo.number, m.worker
end

-- Only the first message of each frame is kept, which bounds the memory of a long capture.
local function record_answer(m, pinfo)
	if found_in[pinfo.number] then
		return
	end
	local found = {}
	if m.type == 12 then
		local ask = asks[m.job .. "." .. m.worker .. "." .. tostring(m.time)]
		if ask then
			found.asked, found.rtt = ask.frame, pinfo.abs_ts - ask.since
		end
	else
		local at = rounds[m.job .. "." .. m.segment]
		if at and at.round == m.round then
			found.opened, found.wait = at.first, pinfo.abs_ts - at.since
			found.newest, found.straggler = at.last, at.worker
		end
	end
	found_in[pinfo.number] = found
end

local function record_message(m, pinfo)
	if pinfo.visited then
		return
	elseif m.type == 1 then
		record_gradient(m, pinfo)
	elseif m.type == 11 then
		asks[m.job .. "." .. m.worker .. "." .. tostring(m.time)] = { frame = pinfo.number, since = pinfo.abs_ts }
	elseif m.type == 2 or m.type == 12 then
		record_answer(m, pinfo)
	end
end

local function to_nstime(t)
	local whole = math.floor(t)
	return NSTime.new(whole, math.floor((t - whole) * 1e9 + 0.5))
end

local function add_analysis(tree, frame)
	local found = found_in[frame] or {}
	for _, name in ipairs({ "asked", "opened", "newest", "straggler" }) do
		if found[name] then
			tree:add(F[name], found[name]):set_generated()
		end
	end
	for _, name in ipairs({ "rtt", "wait" }) do
		if found[name] then
			tree:add(F[name], to_nstime(found[name])):set_generated()
		end
	end
end

-- --- fields ----------------------------------------------------------------------------------

-- The numbers of the set bits of a little endian mask.
local function set_bits(tvb)
	local set = {}
	for byte = 0, tvb:len() - 1 do
		local value = tvb(byte, 1):uint()
		for bit = 0, 7 do
			if value % 2 == 1 then
				set[#set + 1] = byte * 8 + bit
			end
			value = math.floor(value / 2)
		end
	end
	return set
end

-- { 0, 1, 2, 5 } -> "0-2,5"
local function format_ranges(set, base)
	local parts, i = {}, 1
	while i <= #set do
		local j = i
		while set[j + 1] == set[j] + 1 do
			j = j + 1
		end
		local first, last = set[i] + base, set[j] + base
		parts[#parts + 1] = first == last and tostring(first) or string.format("%d-%d", first, last)
		i = j + 1
	end
	return #parts > 0 and table.concat(parts, ",") or "none"
end

local function all_zero(tvb)
	for i = 0, tvb:len() - 1 do
		if tvb(i, 1):uint() ~= 0 then
			return false
		end
	end
	return true
end

local function add_workers(tree, spec, tvb)
	local set = set_bits(tvb)
	local item = tree:add_le(F[spec[1]], tvb)
	item:append_text(" (" .. format_ranges(set, 0) .. ")")
	local each = spec[1] == "mask" and F.contributor or spec[1] == "status.active" and F.alive
	for _, worker in ipairs(each and set or {}) do
		item:add(each, tvb, worker):set_generated()
	end
	return item
end

-- Are its elements integers with a block scale?
local function is_int(m)
	return m.elem == 1 or m.elem == 4
end

local SCALED = { [1] = true, [2] = true, [5] = true, [13] = true }	-- messages that use the exponent

local function add_field(tree, spec, tvb, m)
	local kind = spec[3]
	if kind == "workers" then
		return add_workers(tree, spec, tvb)
	elseif kind == "segments" then
		return tree:add_le(F[spec[1]], tvb):append_text(" (" .. format_ranges(set_bits(tvb), m.segment) .. ")")
	elseif kind == "secret" and not saina.prefs.token then
		return tree:add(F[spec[1]], tvb, "", spec[4] .. ": not shown")
	elseif kind == "secret" or kind == "text" then
		return tree:add(F[spec[1]], tvb)
	elseif spec[1] == "exponent" and m.exponent == EXPONENT_NAN then
		return tree:add_le(F.exponent, tvb):append_text(" (NaN: the segment holds a NaN or an infinity)")
	elseif spec[1] == "exponent" and m.exponent == EXPONENT_INT then
		return tree:add_le(F.exponent, tvb):append_text(" (integers, without a block scale)")
	elseif spec[1] == "welcome.exponent" or (spec[1] == "exponent" and SCALED[m.type] and is_int(m)) then
		return tree:add_le(F[spec[1]], tvb):append_text(" (integer = value * 2^" .. tvb:int() + EXPONENT_BIAS .. ")")
	elseif kind == "zero" then
		local item = tree:add(F[spec[1]], tvb)
		if not all_zero(tvb) then
			item:add_proto_expert_info(E.not_zero)
		end
		return item
	end
	return tree:add_le(F[spec[1]], tvb)
end

local function add_flags(tree, tvb, type_of)
	local item = tree:add(F.flags, tvb)
	local value, allowed = tvb:uint(), 0
	for _, bit in ipairs(FLAGS[type_of[4]] or {}) do
		item:add(F["flags." .. bit[1]], tvb)
		allowed = allowed + bit[2]
	end
	-- Versions of Wireshark have different Lua bit operators, so use arithmetic.
	for power = 0, 7 do
		local one = 2 ^ power
		if value % (2 * one) >= one and allowed % (2 * one) < one then
			item:add_proto_expert_info(E.flags)
			break
		end
	end
end

-- Is it a gradient or a result whose exponent says NaN?
local function is_nan(m)
	return m.type < 3 and is_int(m) and m.exponent == EXPONENT_NAN
end

local function signed16(x)
	return x < 32768 and x or x - 65536
end

-- A word is the first number plus 65536 times the second.
local function add_pair(item, i, at)
	local word = at:le_uint()
	item:add(F.int, at, signed16(word % 65536)):prepend_text(2 * i .. ": ")
	item:add(F.int, at, signed16(math.floor((word + 32768) / 65536) % 65536)):prepend_text(2 * i + 1 .. ": ")
end

local function add_payload(tree, tvb, m)
	local item = tree:add(F.payload, tvb)
	local elem = ELEMS[m.elem]
	if is_nan(m) then
		item:append_text(m.type == 1 and " (ignored)" or " (NaN in every element)")
		if m.type == 2 and not all_zero(tvb) then
			item:add_proto_expert_info(E.not_zero)
		end
		return
	end
	if not elem or not elem[3] then
		return
	end
	for i = 0, math.min(saina.prefs.elements, math.floor(tvb:len() / elem[2])) - 1 do
		local at = tvb(i * elem[2], elem[2])
		if elem[3] == "pair" then
			add_pair(item, i, at)
		else
			item:add(elem[3] == "le_float" and F.float or F.int, at, at[elem[3]](at)):prepend_text(i .. ": ")
		end
	end
end

-- --- messages ----------------------------------------------------------------------------------

local function parse_header(tvb)
	return {
		version = tvb(0, 1):uint(), type = tvb(1, 1):uint(), flags = tvb(2, 1):uint(), elem = tvb(3, 1):uint(),
		job = tvb(4, 2):le_uint(), k = tvb(6, 1):uint(), reserved = tvb(7, 1):uint(), round = tvb(8, 4):le_uint(),
		segment = tvb(12, 4):le_uint(), count = tvb(16, 2):le_uint(), worker = tvb(18, 1):uint(),
		exponent = tvb(19, 1):int(), contributors = tvb(20, 1):uint(),
	}
end

local NO_BODY = { size = 0 }

-- The bodies of a message, in order.
local function find_bodies(m, type_of)
	local more = type_of[5]
	if more and m.flags % (2 * more[1]) >= more[1] then
		return { BODIES[type_of[3]] or NO_BODY, BODIES[more[2]] }
	end
	return { BODIES[type_of[3]] or NO_BODY }
end

-- Requests to the control port have one length: zeros pad their bodies.
local function is_padded_request(m, type_of)
	return m.type >= 16 and type_of[2] == "worker"
end

-- The length of a message by its header.  Padding has the length of the other messages of the
-- frame, or ends at the first byte that is not 0.
local function message_length(m, type_of, tvb, left)
	local body = type_of[3]
	if is_padded_request(m, type_of) then
		return TO_CTRL
	elseif body == "payload" then
		return HEADER + m.count * (ELEMS[m.elem] or { "", 4 })[2]
	elseif body == "none" or BODIES[body] then
		local len = HEADER
		for _, each in ipairs(find_bodies(m, type_of)) do
			len = len + each.size
		end
		return len
	elseif body == "padding" then
		if m.stride and m.stride <= left then
			return m.stride
		end
		for at = HEADER, tvb:len() - 1 do
			if tvb(at, 1):uint() ~= 0 then
				return at
			end
		end
	end
	return left
end

local function exponent_is_valid(m)
	if not SCALED[m.type] then
		return true
	elseif not is_int(m) then
		return m.exponent == 0
	end
	return m.exponent > EXPONENT_INT or is_nan(m) or (m.exponent == EXPONENT_INT and m.elem == 1)
end

local function check_header(tree, m, type_of, item)
	local request = type_of[2] == "worker"
	local to, from = m.to, m.from
	local ctrl = m.type >= 16
	local right
	if request then
		right = to == (ctrl and PORT_CTRL or PORT_DATA)
	else
		right = from == (ctrl and PORT_CTRL or PORT_DATA) and to ~= PORT_DATA and to ~= PORT_CTRL
	end
	if not right then
		item.type:add_proto_expert_info(E.direction)
	end
	if m.reserved ~= 0 then
		item.reserved:add_proto_expert_info(E.not_zero)
	end
	if request and m.k ~= 0 then
		item.k:add_proto_expert_info(E.not_zero)
	end
	if m.job > 255 then
		item.job:add_proto_expert_info(E.job)
	end
	if m.worker > 63 and m.worker ~= WORKER_NONE then
		item.worker:add_proto_expert_info(E.worker)
	end
	if type_of[3] == "payload" then
		if not ELEMS[m.elem] then
			item.elem:add_proto_expert_info(E.elem)
		end
		if not PAYLOADS[m.count] then
			item.count:add_proto_expert_info(E.count)
		end
	end
	if not exponent_is_valid(m) then
		item.exponent:add_proto_expert_info(E.exponent)
	end
	if m.type == 2 and #m.mask ~= m.contributors then
		item.mask:add_proto_expert_info(E.mask)
	end
end

local function format_title(m, type_of)
	if m.type == 3 then
		return "NOP"
	end
	local text = string.format("%s job %d", type_of[1], m.job)
	if m.worker ~= WORKER_NONE then
		text = text .. " worker " .. m.worker
	end
	if m.type < 16 and m.type ~= 9 and m.type ~= 10 then
		text = text .. string.format(" round %d segment %d", m.round, m.segment)
	elseif m.type == 20 then
		text = text .. " round " .. m.round
	end
	if m.type == 2 then
		text = text .. string.format(" k %d: %s", m.k, format_ranges(m.mask, 0))
	end
	if is_nan(m) then
		text = text .. " NaN"
	end
	return text
end

local function add_header(tree, tvb, m, type_of)
	local overrides = OVERRIDES[m.type] or m.type == 2 and m.worker == WORKER_NONE and BROADCAST or {}
	local item, at = {}, 0
	for _, spec in ipairs(FIELDS) do
		local part = tvb(at, spec[2])
		if spec[3] == "flags" then
			add_flags(tree, part, type_of)
		else
			local field = overrides[spec[1]] or spec
			item[spec[1]] = add_field(tree, field == LOW and m.k == 4 and FENCE or field, part, m)
		end
		if spec[1] == "mask" then
			m.mask = set_bits(part)
		end
		at = at + spec[2]
	end
	return item
end

-- Returns the offset behind the body, nothing if the body is truncated.
local function add_body(tree, tvb, at, m, body)
	for _, spec in ipairs(body) do
		if at + spec[2] > tvb:len() then
			tree:add_proto_expert_info(E.truncated)
			return
		end
		local part = tvb(at, spec[2])
		if spec[1] == "ask.time" then
			m.time = part:le_uint64()
		elseif spec[1] == "refuse.reason" then
			m.reason = REFUSALS[part:le_uint()] or "?"
		end
		add_field(tree, spec, part, m)
		at = at + spec[2]
	end
	return at
end

-- Dissects the message at @at; returns it and its length, nil if nothing can follow it.
local function dissect_message(datagram, at, pinfo, tree, stride)
	local left, have = datagram:reported_len() - at, datagram:len() - at
	if have == 0 then
		tree:add(saina):add_proto_expert_info(E.cut)
		return nil
	end
	local tvb = datagram(at):tvb()
	local sub = tree:add(saina, tvb())
	if have < HEADER then
		sub:add_proto_expert_info(left < HEADER and E.truncated or E.cut)
		return nil
	end
	local m = parse_header(tvb)
	m.from, m.to, m.stride = pinfo.src_port, pinfo.dst_port, stride
	local type_of = TYPES[m.type]
	if m.version ~= VERSION then
		sub:add_le(F.version, tvb(0, 1)):add_proto_expert_info(E.version)
		sub:append_text(", version " .. m.version)
		return nil
	end
	if not type_of then
		sub:add(F.version, tvb(0, 1))
		sub:add(F.type, tvb(1, 1)):add_proto_expert_info(E.unknown)
		return nil
	end
	local len = message_length(m, type_of, tvb, left)
	sub:set_len(math.min(len, have))
	local item = add_header(sub, tvb, m, type_of)
	if m.type ~= 3 then
		check_header(sub, m, type_of, item)
	end
	if len > left then
		sub:add_proto_expert_info(E.truncated)
	elseif len > have then
		sub:add_proto_expert_info(E.cut)
	end
	local rest = math.min(len, have) - HEADER
	if rest > 0 then
		local body = tvb(HEADER, rest)
		if type_of[3] == "payload" then
			add_payload(sub, body, m)
		elseif BODIES[type_of[3]] or type_of[5] then
			local next_at = 0
			for _, each in ipairs(find_bodies(m, type_of)) do
				next_at = next_at and add_body(sub, body:tvb(), next_at, m, each)
			end
			for i = next_at or rest, is_padded_request(m, type_of) and rest - 1 or -1 do
				if body(i, 1):uint() ~= 0 then
					sub:add_proto_expert_info(E.not_zero)
					break
				end
			end
		elseif type_of[3] ~= "padding" and not is_padded_request(m, type_of) then
			sub:add(F.data, body)
		end
	end
	record_message(m, pinfo)
	sub:append_text(", " .. format_title(m, type_of))
	m.tree, m.name = sub, type_of[1]
	return m, len
end

-- "GRAD job 1 worker 0 round 7 segments 0-43", or the number of messages of each type
local function format_summary(all)
	if #all == 1 then
		local m = all[1]
		return format_title(m, TYPES[m.type]) .. (m.reason and ": " .. m.reason or "")
	end
	local count, order, segments, job = {}, {}, {}, nil
	for _, m in ipairs(all) do
		if not count[m.name] then
			order[#order + 1] = m.name
		end
		count[m.name] = (count[m.name] or 0) + 1
		segments[#segments + 1] = m.segment
		job = m.type ~= 3 and m.job or job
	end
	if #order == 1 and all[1].type < 3 then
		local m = all[1]
		return string.format("%s job %d%s round %d segments %s%s", m.name, m.job,
			m.worker ~= WORKER_NONE and " worker " .. m.worker or "", m.round, format_ranges(segments, 0),
			m.type == 2 and string.format(" k %d: %s", m.k, format_ranges(m.mask, 0)) or "")
	end
	for i, name in ipairs(order) do
		order[i] = count[name] .. " " .. name
	end
	return table.concat(order, ", ") .. (job and " job " .. job or "")
end

function saina.dissector(tvb, pinfo, tree)
	local all, at, stride = {}, 0, nil
	pinfo.cols.protocol = "SAINA"
	while at < tvb:len() or (at == 0 and tvb:reported_len() > 0) do
		local m, len = dissect_message(tvb, at, pinfo, tree, stride)
		if not m then
			break
		end
		-- All messages of a frame but the last have one length.
		stride = stride or len
		all[#all + 1] = m
		at = at + len
	end
	if #all == 0 then
		pinfo.cols.info = tvb:len() >= 2 and tvb(0, 1):uint() ~= VERSION and
			"version " .. tvb(0, 1):uint() .. ", not " .. VERSION or "malformed"
		return tvb:len()
	end
	if at < tvb:len() then
		tree:add_proto_expert_info(E.trailing)
	end
	tree:add(F.messages, #all):set_generated()
	add_analysis(all[1].tree, pinfo.number)
	pinfo.cols.info = format_summary(all)
	return tvb:len()
end

local udp = DissectorTable.get("udp.port")
for _, port in ipairs({ PORT_DATA, PORT_CTRL, PORT_RESULT }) do
	udp:add(port, saina)
end
