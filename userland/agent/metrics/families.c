// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The metrics, a row each in `families`, in Prometheus's text format.  All samples of a family
 * must be adjacent, so the snapshot is read once for each family.  The text is made piece by
 * piece, as a reader takes it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/metrics/internal.h"
#include "ctl/lateness.h"

/* What a sample describes. */
enum scope { OF_AGENT, OF_PORT, OF_JOB, OF_WORKER };

/* @suffix: follows the family's name; @labels: besides those of the scope. */
struct sample {
	const char *suffix;
	char labels[320];
	double value;
};

/* What a family's function says of part @part of an item: LAST ends the item without a sample. */
enum verdict { LAST, SKIP, EMIT };

struct family {
	const char *name, *type, *help;
	enum scope scope;
	enum verdict (*sample)(const struct snapshot *s, unsigned int item, unsigned int part,
			       int arg, struct sample *o);
	int arg;
};

static const char *const job_states[] = { "", "forming", "running", "stopped" };
static const char *const worker_states[] = { "absent", "alive", "slow", "dead", "left" };
static const char *const modes[] = { "none", "native", "generic", "tc" };
static const char *const hooks[] = { "auto", "xdp", "generic", "tc" };

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const char *enum_name(const char *const *words, size_t n, int i)
{
	return i >= 0 && (size_t)i < n ? words[i] : "unknown";
}

#define ENUM_NAME(words, i) enum_name(words, ARRAY_SIZE(words), i)

static const struct {
	const char *name;
	bool drop;
} counters[] = {
#define COUNTER(id, name, drop, text) { name, drop },
	SAINA_COUNTER_LIST(COUNTER)
#undef COUNTER
};

/* Escapes a label's value.  Names are printable ASCII, but may contain quotes. */
static const char *escaped(const char *text, char *to, size_t size)
{
	size_t n = 0;

	for (; *text && n + 3 < size; text++) {
		if (*text == '"' || *text == '\\')
			to[n++] = '\\';
		to[n++] = *text;
	}
	to[n] = 0;
	return to;
}

static enum verdict single_value(struct sample *o, unsigned int part, double value)
{
	o->value = value;
	return part ? LAST : EMIT;
}

/* The agent */

static enum verdict build_info(const struct snapshot *s, unsigned int item, unsigned int part,
			       int arg, struct sample *o)
{
	snprintf(o->labels, sizeof(o->labels), "version=\"%s\",control_plane=\"%s\"", SAINA_VERSION,
		 s->backend);
	return single_value(o, part, 1);
}

enum {
	UP,
	HELD_UP,
	HELD_UP_TIMES,
	GRANTS,
	GRANTS_REFUSED,
	GRANTS_SILENT,
	GRANTS_CROWDED,
	FOREIGN,
	TAKEN_OVER,
	LIMIT_JOBS,
	JOBS,
	LIMIT_MEMORY,
	MEMORY,
	PORTS,
	CONTROL
};

static enum verdict agent_value(const struct snapshot *s, unsigned int item, unsigned int part,
				int arg, struct sample *o)
{
	const double values[] = {
		[UP] = s->up,
		[HELD_UP] = (double)s->held_up_ns / NSEC_PER_SEC,
		[HELD_UP_TIMES] = s->held_up_times,
		[GRANTS] = s->shm[SHM_GRANTED],
		[GRANTS_REFUSED] = s->shm[SHM_REFUSED],
		[GRANTS_SILENT] = s->shm[SHM_SILENT],
		[GRANTS_CROWDED] = s->shm[SHM_CROWDED],
		[FOREIGN] = s->foreign,
		[TAKEN_OVER] = s->taken_over,
		[LIMIT_JOBS] = s->limit_jobs,
		[JOBS] = s->jobs,
		[LIMIT_MEMORY] = s->limit_memory,
		[MEMORY] = s->memory,
		[PORTS] = s->ports,
		[CONTROL] = s->global.c[SAINA_C_CONTROL],
	};

	return single_value(o, part, values[arg]);
}

static enum verdict global_drops(const struct snapshot *s, unsigned int item, unsigned int part,
				 int arg, struct sample *o)
{
	if (!s->counted || part >= SAINA_C_N)
		return LAST;
	if (!counters[part].drop || !s->global.c[part])
		return SKIP;
	snprintf(o->labels, sizeof(o->labels), "reason=\"%s\"", counters[part].name);
	o->value = s->global.c[part];
	return EMIT;
}

/* Ports */

static enum verdict port_info(const struct snapshot *s, unsigned int item, unsigned int part,
			      int arg, struct sample *o)
{
	const struct port *p = &s->port[item].port;
	char driver[2 * sizeof(p->driver)];

	snprintf(o->labels, sizeof(o->labels), "driver=\"%s\",mode=\"%s\",hook=\"%s\"",
		 escaped(p->driver, driver, sizeof(driver)), ENUM_NAME(modes, p->mode),
		 ENUM_NAME(hooks, p->hook_requested));
	return single_value(o, part, 1);
}

enum { ATTACHED, PORT_WORKERS, PORT_RELAYED };

static enum verdict port_value(const struct snapshot *s, unsigned int item, unsigned int part,
			       int arg, struct sample *o)
{
	const struct snap_port *p = &s->port[item];
	const double values[] = {
		[ATTACHED] = p->port.mode != SAINA_PORT_MODE_NONE,
		[PORT_WORKERS] = p->workers,
		[PORT_RELAYED] = p->relayed,
	};

	return single_value(o, part, values[arg]);
}

enum { LOSS, DELAY };

static enum verdict port_fault(const struct snapshot *s, unsigned int item, unsigned int part,
			       int arg, struct sample *o)
{
	const struct saina_port_conf *f = &s->port[item].faults;

	if (part > 1)
		return LAST;
	snprintf(o->labels, sizeof(o->labels), "direction=\"%s\"", part ? "out" : "in");
	if (arg == LOSS)
		o->value = (part ? f->loss_out : f->loss_in) / 4294967296.0;
	else
		o->value = (part ? f->delay_out_us : f->delay_in_us) / 1e6;
	return EMIT;
}

/* Jobs */

static enum verdict job_info(const struct snapshot *s, unsigned int item, unsigned int part,
			     int arg, struct sample *o)
{
	const struct snap_job *j = &s->job[item];
	char policy[2 * sizeof(j->policy)];

	snprintf(o->labels, sizeof(o->labels), "id=\"%u\",policy=\"%s\"", j->id,
		 escaped(j->policy, policy, sizeof(policy)));
	return single_value(o, part, 1);
}

static enum verdict job_state(const struct snapshot *s, unsigned int item, unsigned int part,
			      int arg, struct sample *o)
{
	if (++part >= ARRAY_SIZE(job_states))
		return LAST;
	snprintf(o->labels, sizeof(o->labels), "state=\"%s\"", job_states[part]);
	o->value = s->job[item].state == (int)part;
	return EMIT;
}

enum { JOB_WORKERS, ALIVE, ELEMENTS, SEGMENTS, JOB_MEMORY, DETACHED, RESULTS, RESULT_BYTES };

static enum verdict job_value(const struct snapshot *s, unsigned int item, unsigned int part,
			      int arg, struct sample *o)
{
	const struct snap_job *j = &s->job[item];
	const double values[] = {
		[JOB_WORKERS] = j->workers,
		[ALIVE] = j->alive,
		[ELEMENTS] = j->elements,
		[SEGMENTS] = j->segments,
		[JOB_MEMORY] = j->memory,
		[DETACHED] = j->detached,
		[RESULTS] = j->completed,
		[RESULT_BYTES] = (double)j->completed * j->payload * j->elem_bytes,
	};

	return single_value(o, part, values[arg]);
}

enum { ROUNDS, K, OPEN_SLOTS, AGE, FLIPS, CONVERGED, SWAPS, MIX };

static enum verdict job_rt_value(const struct snapshot *s, unsigned int item, unsigned int part,
				 int arg, struct sample *o)
{
	const struct snap_job *j = &s->job[item];
	const struct saina_job_rt *rt = &j->rt;
	const double values[] = {
		[ROUNDS] = rt->next_round,
		[K] = rt->k,
		[OPEN_SLOTS] = rt->open_slots,
		[AGE] = j->age,
		[FLIPS] = rt->last_observed ? (double)rt->last_flips / rt->last_observed : 0,
		[CONVERGED] = rt->converged,
		[SWAPS] = rt->policy_swaps,
		[MIX] = rt->policy_mix,
	};

	if (!j->seen || ((arg == FLIPS || arg == CONVERGED) && !rt->last_observed))
		return LAST;
	return single_value(o, part, values[arg]);
}

/* Workers */

static enum verdict worker_info(const struct snapshot *s, unsigned int item, unsigned int part,
				int arg, struct sample *o)
{
	const struct snap_worker *w = &s->worker[item];
	char name[2 * sizeof(w->name)];

	snprintf(o->labels, sizeof(o->labels), "name=\"%s\"", escaped(w->name, name, sizeof(name)));
	return single_value(o, part, 1);
}

static enum verdict worker_state(const struct snapshot *s, unsigned int item, unsigned int part,
				 int arg, struct sample *o)
{
	if (++part >= ARRAY_SIZE(worker_states))
		return LAST;
	snprintf(o->labels, sizeof(o->labels), "state=\"%s\"", worker_states[part]);
	o->value = s->worker[item].state == (int)part;
	return EMIT;
}

enum { SILENT, WORKER_ROUND, BEHIND, RELAYED, SHARED, IN_TIME, LATE };

static enum verdict worker_value(const struct snapshot *s, unsigned int item, unsigned int part,
				 int arg, struct sample *o)
{
	const struct snap_worker *w = &s->worker[item];
	const double values[] = {
		[SILENT] = w->silent,
		[WORKER_ROUND] = w->round,
		[BEHIND] = w->behind,
		[RELAYED] = w->relayed,
		[SHARED] = w->shared,
		[IN_TIME] = w->c.c[SAINA_C_STORED] + w->c.c[SAINA_C_ADDED],
		[LATE] = w->late,
	};

	if ((arg == SILENT || arg == WORKER_ROUND) && !w->heard)
		return LAST;
	if ((arg == IN_TIME && !w->counted) || (arg == BEHIND && !w->leads))
		return LAST;
	return single_value(o, part, values[arg]);
}

enum { SENT, RESENT, RTT, WINDOW, UNHEARD };

static enum verdict worker_report(const struct snapshot *s, unsigned int item, unsigned int part,
				  int arg, struct sample *o)
{
	const struct snap_worker *w = &s->worker[item];
	const double values[] = {
		[SENT] = w->sent,     [RESENT] = w->resent,   [RTT] = w->rtt_us / 1e6,
		[WINDOW] = w->window, [UNHEARD] = w->unheard,
	};

	if (!w->reported || (arg == RTT && !w->rtt_us))
		return LAST;
	return single_value(o, part, values[arg]);
}

static enum verdict worker_counter(const struct snapshot *s, unsigned int item, unsigned int part,
				   int arg, struct sample *o)
{
	const struct snap_worker *w = &s->worker[item];

	return w->counted ? single_value(o, part, w->c.c[arg]) : LAST;
}

static enum verdict worker_drops(const struct snapshot *s, unsigned int item, unsigned int part,
				 int arg, struct sample *o)
{
	const struct snap_worker *w = &s->worker[item];

	if (!w->counted || part >= SAINA_C_N)
		return LAST;
	if (!counters[part].drop || !w->c.c[part])
		return SKIP;
	snprintf(o->labels, sizeof(o->labels), "reason=\"%s\"", counters[part].name);
	o->value = w->c.c[part];
	return EMIT;
}

/* Lateness is in whole microseconds, rounded down; "le" is the end of a bucket. */
static enum verdict worker_lateness(const struct snapshot *s, unsigned int item, unsigned int part,
				    int arg, struct sample *o)
{
	const struct saina_arrival *at = &s->worker[item].arrival;
	uint64_t sum = 0;

	if (!at->n || part >= SAINA_ARRIVAL_BUCKETS + 2)
		return LAST;
	if (part == SAINA_ARRIVAL_BUCKETS) {
		o->suffix = "_sum";
		o->value = at->sum_us / 1e6;
		return EMIT;
	}
	for (unsigned int i = 0; i < SAINA_ARRIVAL_BUCKETS && i <= part; i++)
		sum += at->hist[i];
	o->value = sum;
	if (part > SAINA_ARRIVAL_BUCKETS) {
		/* not @n: the program may have updated one before the other */
		o->suffix = "_count";
	} else {
		o->suffix = "_bucket";
		if (part == SAINA_ARRIVAL_BUCKETS - 1)
			snprintf(o->labels, sizeof(o->labels), "le=\"+Inf\"");
		else
			snprintf(o->labels, sizeof(o->labels), "le=\"%g\"",
				 saina_arrival_end_us(part) / 1e6);
	}
	return EMIT;
}

static enum verdict worker_late(const struct snapshot *s, unsigned int item, unsigned int part,
				int arg, struct sample *o)
{
	const struct saina_arrival *at = &s->worker[item].arrival;

	return at->n ? single_value(o, part, saina_lateness_ms(at->sum_us, at->n, 0, 0)) : LAST;
}

#define GAUGE	  "gauge"
#define COUNTER	  "counter"
#define HISTOGRAM "histogram"

/* clang-format off */
static const struct family families[] = {
	{ "saina_build_info", GAUGE, "version of sainad, and the owner of the jobs", OF_AGENT, build_info, 0 },
	{ "saina_agent_uptime_seconds", GAUGE, "since sainad was started", OF_AGENT, agent_value, UP },
	{ "saina_agent_held_up_seconds_total", COUNTER, "time in which sainad was not scheduled, in stalls longer than 0.1 s", OF_AGENT, agent_value, HELD_UP },
	{ "saina_agent_held_up_total", COUNTER, "number of such stalls", OF_AGENT, agent_value, HELD_UP_TIMES },
	{ "saina_agent_share_lent_total", COUNTER, "requests at the socket share that got memory", OF_AGENT, agent_value, GRANTS },
	{ "saina_agent_share_refused_total", COUNTER, "requests at the socket share that were refused", OF_AGENT, agent_value, GRANTS_REFUSED },
	{ "saina_agent_share_silent_total", COUNTER, "connections to the socket share that ended without a request", OF_AGENT, agent_value, GRANTS_SILENT },
	{ "saina_agent_share_crowded_total", COUNTER, "connections to the socket share that were refused because the user had too many without a request", OF_AGENT, agent_value, GRANTS_CROWDED },
	{ "saina_agent_foreign_descriptors_total", COUNTER, "connections to sainad's sockets that came with descriptors (before Linux 6.16; later the kernel refuses those)", OF_AGENT, agent_value, FOREIGN },
	{ "saina_data_path_taken_over", GAUGE, "1 if the data path is that of an earlier start", OF_AGENT, agent_value, TAKEN_OVER },
	{ "saina_data_path_control_messages_total", COUNTER, "control messages passed up", OF_AGENT, agent_value, CONTROL },
	{ "saina_data_path_drops_total", COUNTER, "messages dropped that belong to no worker, by reason; reasons without any are left out", OF_AGENT, global_drops, 0 },
	{ "saina_jobs", GAUGE, "number of jobs", OF_AGENT, agent_value, JOBS },
	{ "saina_jobs_limit", GAUGE, "most jobs allowed", OF_AGENT, agent_value, LIMIT_JOBS },
	{ "saina_jobs_memory_bytes", GAUGE, "maps of all jobs", OF_AGENT, agent_value, MEMORY },
	{ "saina_jobs_memory_limit_bytes", GAUGE, "most that maps of all jobs may take", OF_AGENT, agent_value, LIMIT_MEMORY },
	{ "saina_ports", GAUGE, "ports of the bridge", OF_AGENT, agent_value, PORTS },

	{ "saina_port_info", GAUGE, "driver, how the program is attached, and the requested hook", OF_PORT, port_info, 0 },
	{ "saina_port_attached", GAUGE, "1 if the program is attached", OF_PORT, port_value, ATTACHED },
	{ "saina_port_workers", GAUGE, "workers behind the port", OF_PORT, port_value, PORT_WORKERS },
	{ "saina_port_relayed_workers", GAUGE, "workers behind the port whose results take the slow path", OF_PORT, port_value, PORT_RELAYED },
	{ "saina_port_injected_loss_ratio", GAUGE, "fraction of messages lost on purpose", OF_PORT, port_fault, LOSS },
	{ "saina_port_injected_delay_seconds", GAUGE, "delay added to messages on purpose", OF_PORT, port_fault, DELAY },

	{ "saina_job_info", GAUGE, "number of the job, and the policy in force", OF_JOB, job_info, 0 },
	{ "saina_job_state", GAUGE, "1 for the state the job is in", OF_JOB, job_state, 0 },
	{ "saina_job_stuck", GAUGE, "1 if the job has no data path (saina job show says why)", OF_JOB, job_value, DETACHED },
	{ "saina_job_workers", GAUGE, "number of workers of the job", OF_JOB, job_value, JOB_WORKERS },
	{ "saina_job_alive_workers", GAUGE, "workers that take part", OF_JOB, job_value, ALIVE },
	{ "saina_job_elements", GAUGE, "elements of the gradient", OF_JOB, job_value, ELEMENTS },
	{ "saina_job_segments", GAUGE, "messages the gradient is cut into", OF_JOB, job_value, SEGMENTS },
	{ "saina_job_memory_bytes", GAUGE, "maps of the job", OF_JOB, job_value, JOB_MEMORY },
	{ "saina_job_rounds_total", COUNTER, "rounds opened; begins again when the job forms again", OF_JOB, job_rt_value, ROUNDS },
	{ "saina_job_results_total", COUNTER, "sums made, one a segment and round", OF_JOB, job_value, RESULTS },
	{ "saina_job_result_bytes_total", COUNTER, "payload of those sums, each counted once: the goodput of an all-reduce", OF_JOB, job_value, RESULT_BYTES },
	{ "saina_job_k", GAUGE, "gradients that complete a sum in the newest round", OF_JOB, job_rt_value, K },
	{ "saina_job_open_slots", GAUGE, "sums of the newest round that wait for gradients", OF_JOB, job_rt_value, OPEN_SLOTS },
	{ "saina_job_round_age_seconds", GAUGE, "since the newest round opened; 0 if no sum of it waits", OF_JOB, job_rt_value, AGE },
	{ "saina_job_sign_flips_ratio", GAUGE, "SFCD: signs that flipped in the last round decided", OF_JOB, job_rt_value, FLIPS },
	{ "saina_job_converged_rounds", GAUGE, "SFCD: net converged rounds", OF_JOB, job_rt_value, CONVERGED },
	{ "saina_job_policy_swaps_total", COUNTER, "policies adopted; begins again when the job forms again", OF_JOB, job_rt_value, SWAPS },
	{ "saina_job_policy_mix_total", COUNTER, "sums made under two policies: always 0", OF_JOB, job_rt_value, MIX },

	{ "saina_worker_info", GAUGE, "name of the worker", OF_WORKER, worker_info, 0 },
	{ "saina_worker_state", GAUGE, "1 for the state the worker is in", OF_WORKER, worker_state, 0 },
	{ "saina_worker_by_reference", GAUGE, "1 if it shares memory with the data path", OF_WORKER, worker_value, SHARED },
	{ "saina_worker_silent_seconds", GAUGE, "since the worker was heard", OF_WORKER, worker_value, SILENT },
	{ "saina_worker_round", GAUGE, "round of its last heartbeat", OF_WORKER, worker_value, WORKER_ROUND },
	{ "saina_worker_rounds_behind", GAUGE, "rounds from the last one that a live worker has reached to the next one, which waits for it if these are more than the policy's lead; left out where the policy has none", OF_WORKER, worker_value, BEHIND },
	{ "saina_worker_relayed", GAUGE, "1 if its results take the slow path", OF_WORKER, worker_value, RELAYED },
	{ "saina_worker_in_time_total", COUNTER, "gradients that are in a sum", OF_WORKER, worker_value, IN_TIME },
	{ "saina_worker_late_total", COUNTER, "gradients that came after their sum was made, or were not sent any more because it was; counted once a second", OF_WORKER, worker_value, LATE },
	{ "saina_worker_lateness_seconds", HISTOGRAM, "how much later than the first worker of its round this one was, by the first segment, a sample for each round in which that came; begins again when the job forms again", OF_WORKER, worker_lateness, 0 },
	{ "saina_worker_lateness_mean_ms", GAUGE, "mean of those, as saina job show, worker show and top have it", OF_WORKER, worker_late, 0 },
	{ "saina_worker_late_answers_total", COUNTER, "gradients that came after their sum was made, and were answered with it", OF_WORKER, worker_counter, SAINA_C_LATE },
	{ "saina_worker_nonfinite_total", COUNTER, "gradients with a NaN or an infinity, which make their sum NaN", OF_WORKER, worker_counter, SAINA_C_NONFINITE },
	{ "saina_worker_coarsened_total", COUNTER, "gradients that made the scale of their sum coarser, so that small values of others are rounded away", OF_WORKER, worker_counter, SAINA_C_COARSENED },
	{ "saina_worker_completed_total", COUNTER, "sums that this worker's gradient completed: the others waited for it", OF_WORKER, worker_counter, SAINA_C_COMPLETED },
	{ "saina_worker_degraded_total", COUNTER, "sums it completed with fewer gradients than k", OF_WORKER, worker_counter, SAINA_C_DEGRADED },
	{ "saina_worker_results_resent_total", COUNTER, "results sent again to a contributor", OF_WORKER, worker_counter, SAINA_C_RESENT },
	{ "saina_worker_results_pulled_total", COUNTER, "results sent in answer to a PULL", OF_WORKER, worker_counter, SAINA_C_PULLED },
	{ "saina_worker_stale_total", COUNTER, "replies that a round is no longer available", OF_WORKER, worker_counter, SAINA_C_STALE },
	{ "saina_worker_asked_total", COUNTER, "ASK messages answered", OF_WORKER, worker_counter, SAINA_C_ASKED },
	{ "saina_worker_results_relayed_total", COUNTER, "replies that took the slow path", OF_WORKER, worker_counter, SAINA_C_RELAYED },
	{ "saina_worker_gradients_sent_total", COUNTER, "as the worker says: gradients sent for the first time", OF_WORKER, worker_report, SENT },
	{ "saina_worker_gradients_resent_total", COUNTER, "as the worker says: gradients sent again", OF_WORKER, worker_report, RESENT },
	{ "saina_worker_rtt_seconds", GAUGE, "as the worker says: smoothed round-trip time to the aggregator", OF_WORKER, worker_report, RTT },
	{ "saina_worker_window_messages", GAUGE, "as the worker says: messages it may have in flight", OF_WORKER, worker_report, WINDOW },
	{ "saina_worker_unheard", GAUGE, "1 if the worker is alive, but its kernel refuses to send gradients, or none arrives that it sends", OF_WORKER, worker_report, UNHEARD },
	{ "saina_worker_drops_total", COUNTER, "messages dropped that claim to be of this worker, by reason; reasons without any are left out", OF_WORKER, worker_drops, 0 },
};
/* clang-format on */

static unsigned int count_items(const struct snapshot *s, enum scope scope)
{
	switch (scope) {
	case OF_PORT:
		return s->ports;
	case OF_JOB:
		return s->jobs;
	case OF_WORKER:
		return s->workers;
	default:
		return 1;
	}
}

/* The labels that all samples of an item share. */
static void item_labels(const struct snapshot *s, enum scope scope, unsigned int item, char *to,
			size_t size)
{
	char name[2 * SAINA_NAME_LEN];

	to[0] = 0;
	if (scope == OF_PORT)
		snprintf(to, size, "port=\"%s\"", escaped(s->port[item].port.name, name, sizeof(name)));
	else if (scope == OF_JOB)
		snprintf(to, size, "saina_job=\"%s\"",
			 escaped(s->job[item].name, name, sizeof(name)));
	else if (scope == OF_WORKER)
		snprintf(to, size, "saina_job=\"%s\",worker=\"%d\"",
			 escaped(s->job[s->worker[item].job].name, name, sizeof(name)),
			 s->worker[item].id);
}

static void format_line(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void format_line(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->line, sizeof(t->line), fmt, ap);
	va_end(ap);
	t->len = n < (int)sizeof(t->line) ? (size_t)n : sizeof(t->line) - 1;
	t->off = 0;
}

static void format_sample(struct text *t, const struct family *f, const struct sample *o)
{
	char labels[160];

	item_labels(t->s, f->scope, t->item, labels, sizeof(labels));
	if (!labels[0] && !o->labels[0])
		format_line(t, "%s%s %.15g\n", f->name, o->suffix, o->value);
	else
		format_line(t, "%s%s{%s%s%s} %.15g\n", f->name, o->suffix, labels,
			    labels[0] && o->labels[0] ? "," : "", o->labels, o->value);
}

/* Formats the next line.  Return: false at the end. */
static bool next_line(struct text *t)
{
	while (t->family < ARRAY_SIZE(families)) {
		const struct family *f = &families[t->family];
		struct sample o = { .suffix = "" };
		enum verdict verdict;

		if (t->item == count_items(t->s, f->scope)) {
			t->family++;
			t->item = t->part = 0;
			t->headed = false;
			continue;
		}
		verdict = f->sample(t->s, t->item, t->part, f->arg, &o);
		if (verdict == EMIT && !t->headed) {
			/* a family without samples has no header */
			t->headed = true;
			format_line(t, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name,
				    f->type);
			return true;
		}
		t->part++;
		if (verdict == LAST) {
			t->item++;
			t->part = 0;
		} else if (verdict == EMIT) {
			format_sample(t, f, &o);
			return true;
		}
	}
	return false;
}

size_t text_read(struct text *t, char *to, size_t max)
{
	size_t done = 0, n;

	while (done < max) {
		if (t->off == t->len && !next_line(t))
			break;
		n = t->len - t->off < max - done ? t->len - t->off : max - done;
		memcpy(to + done, t->line + t->off, n);
		t->off += n;
		done += n;
	}
	return done;
}
