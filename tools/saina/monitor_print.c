// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina monitor: prints notifications and events, one per line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "monitor_print.h"

static __u64 read_clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

void monitor_time_print(__u64 monotonic_ns)
{
	/* read the offset again: the wall clock may have been set */
	__u64 ns = read_clock_ns(CLOCK_REALTIME) - read_clock_ns(CLOCK_MONOTONIC) + monotonic_ns;
	time_t s = (time_t)(ns / 1000000000);
	char text[64];
	struct tm tm;
	size_t n;

	localtime_r(&s, &tm);
	n = strftime(text, sizeof(text), "%FT%T", &tm);
	n += snprintf(text + n, sizeof(text) - n, ".%06u", (unsigned int)(ns / 1000 % 1000000));
	strftime(text + n, sizeof(text) - n, "%z", &tm);
	out_str("time", "%s ", text);
	out_uint("monotonic_ns", NULL, monotonic_ns);
}

static void print_flips(const struct saina_event_attrs *ev)
{
	/* no signs observed: the policy was not SFCD */
	out_uint("flips", ev->b ? " flips %" PRIu64 : NULL, ev->a);
	out_uint("observed", ev->b ? " of %" PRIu64 " signs" : NULL, ev->b);
}

static void print_states(const struct saina_event_attrs *ev)
{
	out_str("from", " %s", SAINA_ENUM_NAME(saina_job_state_names, ev->a));
	out_str("to", " -> %s", SAINA_ENUM_NAME(saina_job_state_names, ev->b));
}

static void print_port_event(const struct saina_event_attrs *ev)
{
	out_uint("ifindex", " ifindex %" PRIu64, ev->a);
	out_str("port_state", " %s", ev->b ? "attached" : "gone");
}

static void print_controller(const struct saina_event_attrs *ev)
{
	out_text(" is gone");
	out_uint("k_set", ev->a ? ": k stays %" PRIu64 : ": k stays k0", ev->a);
}

static void print_types(const struct saina_event_attrs *ev)
{
	out_ids("int32", " int32 of workers %s", ev->a);
	out_ids("float32", " float32 of workers %s", ev->b & ~ev->a);
}

/* How a number of an event is printed; if @key is NULL, it is not. */
struct number {
	const char *key, *format;
};

static const struct {
	__u32 type;
	const char *name;
	struct number a, b;
	void (*print)(const struct saina_event_attrs *ev);	/* more than numbers */
} events[] = {
	{ SAINA_EV_ROUND, "round", .print = print_flips },
	{ SAINA_EV_K, "k", .a = { "from", " %" PRIu64 }, .b = { "to", " -> %" PRIu64 } },
	{ SAINA_EV_POLICY, "policy", .a = { "from", " %" PRIu64 }, .b = { "to", " -> %" PRIu64 } },
	{ SAINA_EV_DEGRADED, "degraded", .a = { "segment", " segment %" PRIu64 },
	  .b = { "contributors", " contributors %" PRIu64 } },
	{ SAINA_EV_STALE, "stale", .a = { "segment", " segment %" PRIu64 } },
	{ SAINA_EV_JOB_STATE, "job-state", .print = print_states },
	{ SAINA_EV_WORKER_JOINED, "worker-joined", .print = NULL },
	{ SAINA_EV_WORKER_LEFT, "worker-left", .print = NULL },
	{ SAINA_EV_WORKER_DEAD, "worker-dead", .print = NULL },
	{ SAINA_EV_WORKER_LATE, "worker-late", .a = { "late", " gradients %" PRIu64 } },
	{ SAINA_EV_PORT, "port", .print = print_port_event },
	{ SAINA_EV_CONTROLLER, "controller", .print = print_controller },
	{ SAINA_EV_WORKER_NONFINITE, "worker-nonfinite", .a = { "nonfinite", " gradients %" PRIu64 } },
	{ SAINA_EV_WORKER_COARSENED, "worker-coarsened", .a = { "coarsened", " slots %" PRIu64 },
	  .b = { "slots", " of %" PRIu64 } },
	{ SAINA_EV_WORKER_BEHIND, "worker-behind", .a = { "behind", " rounds %" PRIu64 },
	  .b = { "lead", " lead %" PRIu64 } },
	{ SAINA_EV_TYPES, "types", .print = print_types },
};

static void print_number(const struct number *n, __u64 value)
{
	if (n->key)
		out_uint(n->key, n->format, value);
}

static void print_event(const void *obj)
{
	const struct saina_event_attrs *ev = obj;
	const char *name = "unknown";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(events) && events[i].type != ev->type; i++)
		;
	if (i < ARRAY_SIZE(events))
		name = events[i].name;
	monitor_time_print(ev->time);
	out_str("event", "%s", name);
	if (i == ARRAY_SIZE(events))
		out_uint("type", " %" PRIu64, ev->type);
	if (SAINA_HAS(ev, SAINA_A_EVENT_JOB_NAME))
		out_str("job", " job %s", ev->job_name);
	if (SAINA_HAS(ev, SAINA_A_EVENT_JOB_ID))
		out_uint("job_id", ev->job_name[0] ? NULL : " job %" PRIu64, ev->job_id);
	if (SAINA_HAS(ev, SAINA_A_EVENT_WORKER))
		out_uint("worker", " worker %" PRIu64, ev->worker);
	if (i < ARRAY_SIZE(events)) {
		print_number(&events[i].a, ev->a);
		print_number(&events[i].b, ev->b);
		if (events[i].print)
			events[i].print(ev);
	}
	if (SAINA_HAS(ev, SAINA_A_EVENT_ROUND))
		out_uint("round", " round %" PRIu64, ev->round);
	if (SAINA_HAS(ev, SAINA_A_EVENT_K))
		out_uint("k", ev->k ? " k %" PRIu64 : NULL, ev->k);
	if (ev->text[0])
		out_str("text", " (%s)", ev->text);
	out_text("\n");
}

/* Changed objects are printed on one line, like events. */
static void print_job_line(const void *obj)
{
	const struct saina_job_attrs *job = obj;

	out_uint("id", " %" PRIu64 ":", job->id);
	out_str("name", " %s", job->name);
	out_str("state", " %s", SAINA_ENUM_NAME(saina_job_state_names, job->state));
	out_str("policy", " policy %s", policy_name(&job->policy));
	out_uint("policy_seq", " seq %" PRIu64, job->policy_seq);
	policy_next_print(job, ", scheduled %s", ",");
	out_uint("workers", " workers %" PRIu64, job->workers);
	out_ids("active", " active %s", job->active);
	out_uint("generation", NULL, job->generation);
	out_text("\n");
}

static void print_worker_line(const void *obj)
{
	const struct saina_worker_attrs *w = obj;

	out_str("job", " %s", w->job_name);
	out_uint("job_id", NULL, w->job_id);
	out_uint("worker", " worker %" PRIu64, w->id);
	out_str("name", w->name[0] ? " %s" : NULL, w->name);
	out_str("state", " %s", SAINA_ENUM_NAME(saina_worker_state_names, w->state));
	out_str("port", w->ifname[0] ? " port %s" : NULL, w->ifname);
	out_flag("relayed", " results relayed (slow)", w->relay);
	out_text("\n");
}

static void print_port_line(const void *obj)
{
	out_text(" ");
	port_print(obj);
}

static void print_limits_line(const void *obj)
{
	const struct saina_limits_attrs *l = obj;

	out_uint("jobs_used", " jobs %" PRIu64, l->jobs_used);
	out_uint("jobs", " of %" PRIu64, l->jobs);
	out_bytes("memory_used", " memory %s", l->memory_used);
	out_bytes("memory", " of %s", l->memory);
	out_bytes("memory_job", " memory-job %s at most", l->memory_job);
	out_str("backend", ", applied by the %s", backend_name(l->backend));
	out_text("\n");
}

int monitor_print(const struct nlmsghdr *nlh, void *arg)
{
	static const struct {
		const char *name;	/* NULL: print() prints name and time */
		void (*print)(const void *obj);
	} notes[SAINA_CMD_MAX + 1] = {
		[SAINA_CMD_EVENT] = { NULL, print_event },
		[SAINA_CMD_JOB_NTF] = { "job-changed", print_job_line },
		[SAINA_CMD_JOB_DEL_NTF] = { "job-deleted", print_job_line },
		[SAINA_CMD_WORKER_NTF] = { "worker-changed", print_worker_line },
		[SAINA_CMD_WORKER_DEL_NTF] = { "worker-deleted", print_worker_line },
		[SAINA_CMD_PORT_NTF] = { "port-changed", print_port_line },
		[SAINA_CMD_LIMITS_NTF] = { "limits-changed", print_limits_line },
	};
	const struct genlmsghdr *g = mnl_nlmsg_get_payload(nlh);
	union saina_any_attrs obj;

	if (g->cmd > SAINA_CMD_MAX || !notes[g->cmd].print)
		return 0;	/* of a newer control plane */
	if (saina_ctl_decode(nlh, saina_ctl_op(g->cmd)->class, &obj)) {
		fprintf(stderr, "saina: monitor: a malformed notification was skipped\n");
		return 0;
	}
	out_open(NULL);
	if (notes[g->cmd].name) {
		monitor_time_print(read_clock_ns(CLOCK_MONOTONIC));
		out_str("event", "%s", notes[g->cmd].name);
	}
	notes[g->cmd].print(&obj);
	out_close();
	return 0;
}
