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
	char labels[2 * SAINA_POLICY_TEXT_LEN + 64];
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

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

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

/* A sample for each state but the first, 1 for the one that it is. */
static enum verdict state_value(struct sample *o, unsigned int part, const char *const *states,
				int state)
{
	if (!states[++part])
		return LAST;
	snprintf(o->labels, sizeof(o->labels), "state=\"%s\"", states[part]);
	o->value = state == (int)part;
	return EMIT;
}

/* A sample for each reason for which messages were dropped. */
static enum verdict drops_value(struct sample *o, unsigned int part, bool counted,
				const struct saina_counters *c)
{
	if (!counted || part >= SAINA_C_N)
		return LAST;
	if (!saina_counter_info[part].drop || !c->c[part])
		return SKIP;
	snprintf(o->labels, sizeof(o->labels), "reason=\"%s\"", saina_counter_info[part].name);
	o->value = c->c[part];
	return EMIT;
}

/* The agent */

static enum verdict build_info(const struct snapshot *s, unsigned int item, unsigned int part,
			       int arg, struct sample *o)
{
	snprintf(o->labels, sizeof(o->labels), "version=\"%s\",control_plane=\"%s\"", SAINA_VERSION,
		 s->backend);
	return single_value(o, part, 1);
}

/* The functions of families with one sample for each item: its value, if @there. */
#define VALUE(name, there, value)                                                           \
	static enum verdict name(const struct snapshot *s, unsigned int item,               \
				 unsigned int part, int arg, struct sample *o)              \
	{                                                                                   \
		return (there) ? single_value(o, part, value) : LAST;                       \
	}
#define PORT   (&s->port[item])
#define JOB    (&s->job[item])
#define WORKER (&s->worker[item])

VALUE(agent_up, true, s->up)
VALUE(agent_held_up, true, (double)s->held_up_ns / NSEC_PER_SEC)
VALUE(agent_held_up_times, true, s->held_up_times)
VALUE(agent_grants, true, s->shm[SHM_GRANTED])
VALUE(agent_grants_refused, true, s->shm[SHM_REFUSED])
VALUE(agent_grants_silent, true, s->shm[SHM_SILENT])
VALUE(agent_grants_crowded, true, s->shm[SHM_CROWDED])
VALUE(agent_foreign, true, s->foreign)
VALUE(agent_announcements, true, s->announcements)
VALUE(agent_taken_over, true, s->taken_over)
VALUE(agent_limit_jobs, true, s->limit_jobs)
VALUE(agent_jobs, true, s->jobs)
VALUE(agent_limit_memory, true, s->limit_memory)
VALUE(agent_memory, true, s->memory)
VALUE(agent_ports, true, s->ports)
VALUE(agent_control, true, s->global.c[SAINA_C_CONTROL])

static enum verdict global_drops(const struct snapshot *s, unsigned int item, unsigned int part,
				 int arg, struct sample *o)
{
	return drops_value(o, part, s->counted, &s->global);
}

/* Ports */

static enum verdict port_info(const struct snapshot *s, unsigned int item, unsigned int part,
			      int arg, struct sample *o)
{
	const struct port *p = &s->port[item].port;
	char driver[2 * sizeof(p->driver)];

	snprintf(o->labels, sizeof(o->labels), "driver=\"%s\",mode=\"%s\",hook=\"%s\"",
		 escaped(p->driver, driver, sizeof(driver)), SAINA_ENUM_NAME(saina_port_mode_names, p->mode),
		 SAINA_ENUM_NAME(saina_port_hook_names, p->hook_requested));
	return single_value(o, part, 1);
}

VALUE(port_attached, true, PORT->port.mode != SAINA_PORT_MODE_NONE)
VALUE(port_workers, true, PORT->workers)
VALUE(port_relayed, true, PORT->relayed)

static enum verdict port_loss(const struct snapshot *s, unsigned int item, unsigned int part,
			       int arg, struct sample *o)
{
	const struct saina_port_conf *f = &s->port[item].faults;

	if (part > 1)
		return LAST;
	snprintf(o->labels, sizeof(o->labels), "direction=\"%s\"", part ? "out" : "in");
	o->value = (part ? f->loss_out : f->loss_in) / 4294967296.0;
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
	return state_value(o, part, saina_job_state_names, JOB->state);
}

VALUE(job_workers, true, JOB->workers)
VALUE(job_alive, true, JOB->alive)
VALUE(job_elements, true, JOB->elements)
VALUE(job_segments, true, JOB->segments)
VALUE(job_memory, true, JOB->memory)
VALUE(job_detached, true, JOB->detached)
VALUE(job_results, true, JOB->completed)
VALUE(job_result_bytes, true, (double)JOB->completed * JOB->payload * JOB->elem_bytes)

VALUE(job_rounds, JOB->seen, JOB->rt.next_round)
VALUE(job_k, JOB->seen, JOB->rt.k)
VALUE(job_open_slots, JOB->seen, JOB->rt.open_slots)
VALUE(job_age, JOB->seen, JOB->age)
VALUE(job_flips, JOB->seen && JOB->rt.last_observed,
      (double)JOB->rt.last_flips / JOB->rt.last_observed)
VALUE(job_converged, JOB->seen && JOB->rt.last_observed, JOB->rt.converged)
VALUE(job_admitted, JOB->below, JOB->admitted)
VALUE(job_tree_workers, JOB->tree_workers, JOB->tree_workers)
VALUE(job_away, JOB->below, JOB->away)
VALUE(job_bytes_up, JOB->below, JOB->bytes_up)
VALUE(job_bytes_down, JOB->below, JOB->bytes_down)
VALUE(job_counter, JOB->seen, JOB->rt.count[arg])

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
	return state_value(o, part, saina_worker_state_names, WORKER->state);
}

VALUE(worker_silent, WORKER->heard, WORKER->silent)
VALUE(worker_round, WORKER->heard, WORKER->round)
VALUE(worker_behind, WORKER->leads, WORKER->behind)
VALUE(worker_relayed, true, WORKER->relayed)
VALUE(worker_shared, true, WORKER->shared)
VALUE(worker_in_time, WORKER->counted, WORKER->c.c[SAINA_C_STORED] + WORKER->c.c[SAINA_C_ADDED])
VALUE(worker_missed, true, WORKER->late)
VALUE(worker_mean_late, WORKER->arrival.n,
      saina_lateness_ms(WORKER->arrival.sum_us, WORKER->arrival.n, 0, 0) / 1000)

VALUE(worker_sent, WORKER->reported, WORKER->sent)
VALUE(worker_resent, WORKER->reported, WORKER->resent)
VALUE(worker_rtt, WORKER->reported && WORKER->rtt_us, WORKER->rtt_us / 1e6)
VALUE(worker_window, WORKER->reported, WORKER->window)
VALUE(worker_is_unheard, WORKER->reported, WORKER->unheard)

VALUE(worker_counter, WORKER->counted, WORKER->c.c[arg])

static enum verdict worker_drops(const struct snapshot *s, unsigned int item, unsigned int part,
				 int arg, struct sample *o)
{
	return drops_value(o, part, WORKER->counted, &WORKER->c);
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

#define GAUGE	  "gauge"
#define COUNTER	  "counter"
#define HISTOGRAM "histogram"

/* clang-format off */
static const struct family families[] = {
	{ "saina_build_info", GAUGE, "version of sainad, and the control plane that keeps the jobs", OF_AGENT, build_info, 0 },
	{ "saina_agent_uptime_seconds", GAUGE, "time since sainad was started", OF_AGENT, agent_up, 0 },
	{ "saina_agent_held_up_seconds_total", COUNTER, "time in which sainad was not scheduled, in stalls longer than 0.1 s", OF_AGENT, agent_held_up, 0 },
	{ "saina_agent_held_up_total", COUNTER, "number of stalls longer than 0.1 s in which sainad was not scheduled", OF_AGENT, agent_held_up_times, 0 },
	{ "saina_agent_share_granted_total", COUNTER, "requests at the socket share that were granted shared memory", OF_AGENT, agent_grants, 0 },
	{ "saina_agent_share_refused_total", COUNTER, "requests at the socket share that were refused", OF_AGENT, agent_grants_refused, 0 },
	{ "saina_agent_share_silent_total", COUNTER, "connections to the socket share that ended without a request", OF_AGENT, agent_grants_silent, 0 },
	{ "saina_agent_share_crowded_total", COUNTER, "connections to the socket share that were refused because too many were open without a request", OF_AGENT, agent_grants_crowded, 0 },
	{ "saina_agent_foreign_descriptors_total", COUNTER, "connections to sainad's sockets that came with descriptors (before Linux 6.16; later the kernel refuses those)", OF_AGENT, agent_foreign, 0 },
	{ "saina_agent_announcements_total", COUNTER, "ARP announcements of the aggregator's address", OF_AGENT, agent_announcements, 0 },
	{ "saina_data_path_taken_over", GAUGE, "1 if sainad has taken the data path over from an earlier start", OF_AGENT, agent_taken_over, 0 },
	{ "saina_data_path_control_messages_total", COUNTER, "control messages that the data path passed to sainad", OF_AGENT, agent_control, 0 },
	{ "saina_data_path_drops_total", COUNTER, "dropped messages that belong to no worker, by reason; reasons without any are left out", OF_AGENT, global_drops, 0 },
	{ "saina_jobs", GAUGE, "number of jobs", OF_AGENT, agent_jobs, 0 },
	{ "saina_jobs_limit", GAUGE, "maximum number of jobs", OF_AGENT, agent_limit_jobs, 0 },
	{ "saina_jobs_memory_bytes", GAUGE, "size of the BPF maps of all jobs", OF_AGENT, agent_memory, 0 },
	{ "saina_jobs_memory_limit_bytes", GAUGE, "maximum size of the BPF maps of all jobs", OF_AGENT, agent_limit_memory, 0 },
	{ "saina_ports", GAUGE, "ports of the bridge", OF_AGENT, agent_ports, 0 },

	{ "saina_port_info", GAUGE, "driver, how the program is attached, and the requested hook", OF_PORT, port_info, 0 },
	{ "saina_port_attached", GAUGE, "1 if the program is attached", OF_PORT, port_attached, 0 },
	{ "saina_port_workers", GAUGE, "workers behind the port", OF_PORT, port_workers, 0 },
	{ "saina_port_relayed_workers", GAUGE, "workers behind the port whose results take the slow path", OF_PORT, port_relayed, 0 },
	{ "saina_port_injected_loss_ratio", GAUGE, "fraction of messages lost on purpose", OF_PORT, port_loss, 0 },

	{ "saina_job_info", GAUGE, "number of the job, and the policy in force", OF_JOB, job_info, 0 },
	{ "saina_job_state", GAUGE, "1 for the state the job is in", OF_JOB, job_state, 0 },
	{ "saina_job_without_data_path", GAUGE, "1 if the job has no data path (saina job show says why)", OF_JOB, job_detached, 0 },
	{ "saina_job_workers", GAUGE, "number of workers of the job", OF_JOB, job_workers, 0 },
	{ "saina_job_alive_workers", GAUGE, "workers that take part", OF_JOB, job_alive, 0 },
	{ "saina_job_elements", GAUGE, "elements of the gradient", OF_JOB, job_elements, 0 },
	{ "saina_job_segments", GAUGE, "messages the gradient is cut into", OF_JOB, job_segments, 0 },
	{ "saina_job_memory_bytes", GAUGE, "size of the BPF maps of the job", OF_JOB, job_memory, 0 },
	{ "saina_job_rounds_total", COUNTER, "rounds opened; begins again when the job forms again", OF_JOB, job_rounds, 0 },
	{ "saina_job_results_total", COUNTER, "sums completed, one for each segment and round", OF_JOB, job_results, 0 },
	{ "saina_job_result_bytes_total", COUNTER, "payload of the completed sums, each counted once: the goodput of an all-reduce", OF_JOB, job_result_bytes, 0 },
	{ "saina_job_k", GAUGE, "gradients that complete a sum in the newest round", OF_JOB, job_k, 0 },
	{ "saina_job_open_slots", GAUGE, "sums of the newest round that wait for gradients", OF_JOB, job_open_slots, 0 },
	{ "saina_job_round_age_seconds", GAUGE, "time since the newest round opened; 0 if no sum of it waits", OF_JOB, job_age, 0 },
	{ "saina_job_sign_flips_ratio", GAUGE, "SFCD: fraction of signs that flipped in the last round decided", OF_JOB, job_flips, 0 },
	{ "saina_job_converged_rounds", GAUGE, "SFCD: net converged rounds", OF_JOB, job_converged, 0 },
	{ "saina_job_admitted", GAUGE, "1 if the parent of the job has admitted it; left out without a parent, as are the next four", OF_JOB, job_admitted, 0 },
	{ "saina_job_tree_workers", GAUGE, "workers of the whole tree, once the parent has said it", OF_JOB, job_tree_workers, 0 },
	{ "saina_job_away_seconds", GAUGE, "time for which the oldest sum has waited for its result from the parent; 0 if none waits", OF_JOB, job_away, 0 },
	{ "saina_job_uplink_sent_bytes_total", COUNTER, "UDP payload sent to the parent; begins again with each relay", OF_JOB, job_bytes_up, 0 },
	{ "saina_job_uplink_received_bytes_total", COUNTER, "UDP payload received from the parent; likewise", OF_JOB, job_bytes_down, 0 },
#define JOB_COUNTER(id, name, text) { "saina_job_" name "_total", COUNTER, text, OF_JOB, job_counter, SAINA_JC_##id },
	SAINA_JOB_COUNTER_LIST(JOB_COUNTER)

	{ "saina_worker_info", GAUGE, "name of the worker", OF_WORKER, worker_info, 0 },
	{ "saina_worker_state", GAUGE, "1 for the state the worker is in", OF_WORKER, worker_state, 0 },
	{ "saina_worker_shared_memory", GAUGE, "1 if the worker shares memory with the data path", OF_WORKER, worker_shared, 0 },
	{ "saina_worker_silent_seconds", GAUGE, "time since the worker was last heard", OF_WORKER, worker_silent, 0 },
	{ "saina_worker_round", GAUGE, "round of the worker's last heartbeat", OF_WORKER, worker_round, 0 },
	{ "saina_worker_rounds_behind", GAUGE, "rounds that a live worker is behind the next round, which waits for the worker if these are more than the policy's lead; left out if the policy has no lead", OF_WORKER, worker_behind, 0 },
	{ "saina_worker_relayed", GAUGE, "1 if the worker's results take the slow path", OF_WORKER, worker_relayed, 0 },
	{ "saina_worker_in_time_total", COUNTER, "gradients that are in a sum", OF_WORKER, worker_in_time, 0 },
	{ "saina_worker_late_total", COUNTER, "sums that were completed without the worker: its gradient came later, or was not sent any more for this reason; counted once a second", OF_WORKER, worker_missed, 0 },
	{ "saina_worker_lateness_seconds", HISTOGRAM, "delay of the worker's first segment after that of the first worker of the round; a sample for each round in which this segment came; begins again when the job forms again", OF_WORKER, worker_lateness, 0 },
	{ "saina_worker_lateness_mean_seconds", GAUGE, "mean of saina_worker_lateness_seconds; saina job show, worker show and top show it in ms", OF_WORKER, worker_mean_late, 0 },
	{ "saina_worker_late_answers_total", COUNTER, "gradients that came after their sum was completed, and were answered with the sum", OF_WORKER, worker_counter, SAINA_C_LATE },
	{ "saina_worker_nonfinite_total", COUNTER, "gradients with a NaN or an infinity, which make their sum NaN", OF_WORKER, worker_counter, SAINA_C_NONFINITE },
	{ "saina_worker_coarsened_total", COUNTER, "gradients that made the scale of their sum coarser, so that small values of others are rounded away", OF_WORKER, worker_counter, SAINA_C_COARSENED },
	{ "saina_worker_completed_total", COUNTER, "sums that this worker's gradient completed: the other workers waited for it", OF_WORKER, worker_counter, SAINA_C_COMPLETED },
	{ "saina_worker_degraded_total", COUNTER, "sums that the worker completed with fewer gradients than k", OF_WORKER, worker_counter, SAINA_C_DEGRADED },
	{ "saina_worker_results_resent_total", COUNTER, "results sent again to a contributor", OF_WORKER, worker_counter, SAINA_C_RESENT },
	{ "saina_worker_results_pulled_total", COUNTER, "results sent in answer to a PULL", OF_WORKER, worker_counter, SAINA_C_PULLED },
	{ "saina_worker_stale_total", COUNTER, "replies that a round is no longer available", OF_WORKER, worker_counter, SAINA_C_STALE },
	{ "saina_worker_asked_total", COUNTER, "ASK messages answered", OF_WORKER, worker_counter, SAINA_C_ASKED },
	{ "saina_worker_results_relayed_total", COUNTER, "replies that took the slow path", OF_WORKER, worker_counter, SAINA_C_RELAYED },
	{ "saina_worker_gradients_sent_total", COUNTER, "reported by the worker: gradients sent for the first time", OF_WORKER, worker_sent, 0 },
	{ "saina_worker_gradients_resent_total", COUNTER, "reported by the worker: gradients sent again", OF_WORKER, worker_resent, 0 },
	{ "saina_worker_rtt_seconds", GAUGE, "reported by the worker: smoothed round-trip time to the aggregator", OF_WORKER, worker_rtt, 0 },
	{ "saina_worker_window_messages", GAUGE, "reported by the worker: messages it may have in flight", OF_WORKER, worker_window, 0 },
	{ "saina_worker_unheard", GAUGE, "1 if the worker is alive, but its kernel refuses to send its gradients, or they do not arrive", OF_WORKER, worker_is_unheard, 0 },
	{ "saina_worker_drops_total", COUNTER, "dropped messages that claim to be of this worker, by reason; reasons without any are left out", OF_WORKER, worker_drops, 0 },
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
