/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libsaina: all-reduce through a straggler-aware in-network aggregator.
 *
 * A process opens one handle per job and worker.  Any of its threads may call: one
 * may wait for what another has started, and several may wait at once.  A thread that
 * waits sends and receives itself; while none does a thread of the library's goes on
 * receiving, so results arrive while the trainer computes.
 *
 * A round is what the aggregator counts: each worker contributes each segment
 * at most once per round.  saina_allreduce() is one round.  To overlap
 * communication with computation, start several all-reduces (buckets) in one
 * round and close it: saina_allreduce_start() .. saina_wait() ..
 * saina_round_done(); all workers must start the same sizes in the same order.
 *
 * Every function that can fail returns 0 or a negative errno; saina_strerror()
 * gives the sentence of the last failure on the handle.  A handle is its process's: in a
 * forked child calls fail with -ECHILD, but for saina_close().
 */
#ifndef SAINA_H
#define SAINA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct saina;		/* a worker's handle on a job */
struct saina_req;	/* an all-reduce in flight */

enum saina_type {
	SAINA_INT32	= 1,	/* wrapping two's complement sums, exact */
	SAINA_FLOAT32	= 2,	/* in jobs of int32 block-scaled on the way, see saina(7) */
	SAINA_BFLOAT16	= 3,	/* elements of a job; tensors of it are float32 */
	SAINA_INT16	= 4,	/* likewise, block-scaled as in jobs of int32 */
};

enum saina_result_op {
	SAINA_MEAN	= 0,	/* divide by the workers in the sum of each segment (float32) */
	SAINA_SUM	= 1,
	SAINA_SUM_ONCE	= 2,	/* of int32, apart from residuals: none is added, changed or kept */
};

/**
 * struct saina_opts - how to join; zero what you do not care about
 * @size: sizeof(struct saina_opts), for binary compatibility
 * @aggregator: "HOST[:PORT]" of the aggregator, HOST being a name or IPv4 address, PORT being the control port
 * @job: identifier of the job, 0..255, unless there is @job_name
 * @worker: wanted identifier, 0..63, or -1 for any
 * @token: the job's token; NULL: that of @token_file, else of $SAINA_TOKEN, else of the file
 *	$SAINA_TOKEN_FILE, else none.  A command line, in contrast to these, can be read by
 *	everybody on the host
 * @name: shown to people; NULL = host name and process id
 * @interface: name of the interface to use, or NULL for the route's
 * @elements: elements of the largest round, 0 = as many as the job has
 * @window: messages in flight, rounded up to whole batches (of up to 64 messages), 0 = adaptive
 * @rto_min_us: shortest silence before the aggregator is asked, 0 = default (1 ms)
 * @join_timeout_ms: how long to wait for each answer of the agent until admitted,
 *	0 = default (5 s), -1 = for ever.
 *	An identifier that is taken is tried for as long: a dead predecessor
 *	is alive to the agent until its heartbeats have been missing for a while
 * @start_timeout_ms: how long to wait for the job to run (all workers there),
 *	0 = for ever
 * @log: called by the library's thread, or by one that waits, with one line of text worth
 *	showing, or NULL for stderr; may call the library, but not saina_close()
 * @log_arg: first argument of @log
 * @timeout_ms: calls fail with -ETIMEDOUT when nothing at all has been heard
 *	from the aggregator for this long, 0 = default (60 s), -1 = never.
 *	Waiting for stragglers does not trigger it; heartbeats are still answered.
 *	They fail with the kernel's error (-EPERM, -ENETUNREACH ..) when it has refused
 *	to send for this long; with -EMSGSIZE, where the MTU has become too small, sooner
 * @token_file: a file whose first line is the token, or NULL; refused if everybody may read it
 * @job_name: name of the job, or NULL
 * @workers: how many workers the job must have, 0 = as many as it has.  In a tree (jobs of several
 *	hosts): the whole tree, and @worker is the rank in that, which has to be one of the job's
 * @share: path of the agent's socket for workers on its own host, whose gradients then go by
 *	shared memory where the job's operator allows it; NULL: $SAINA_SHARE, else none
 * @cancel: once another thread has set it to another value than 0, saina_open() leaves the job and
 *	returns -ECANCELED within a fraction of a second; NULL: it cannot be ended
 * @arrays: number of all-reduces in a round that the @elements are divided among, at most: each begins
 *	at a segment, and a job whose size the first worker decides (elements auto) gets the room for
 *	that.  0: @elements are all that a round needs
 * @per_worker: with @arrays, elements for each worker of the job that one more all-reduce of the round
 *	has
 */
struct saina_opts {
	size_t		size;
	const char	*aggregator;
	int		job;
	int		worker;
	const char	*token;
	const char	*name;
	const char	*interface;
	uint64_t	elements;
	unsigned int	window;
	unsigned int	rto_min_us;
	int		join_timeout_ms;
	int		start_timeout_ms;
	void		(*log)(void *arg, const char *line);
	void		*log_arg;
	int		timeout_ms;
	const char	*token_file;
	const char	*job_name;
	unsigned int	workers;
	const char	*share;
	const int	*cancel;
	unsigned int	arrays;
	unsigned int	per_worker;
};

/**
 * struct saina_job_info - what the job looks like from this worker
 * @relayed: results come by the slow path (saina_open() has said why)
 * @next_round: the round that the aggregator opens next, as last heard; if it is more
 *	than @round + 1, @round is decided already
 * @part, @parts: with a coded policy, as last heard, this worker is to compute the gradient
 *	of part @part of @parts of each round's data; workers with the same part do the same
 *	work, of which one result counts.  The sum is over the parts, so that SAINA_MEAN
 *	divides by their number.  Read it before each round: it changes soon after the policy
 * @behind: mask of the live workers that are so many rounds behind that round @round does not begin
 *	(the policy's lead), as last heard; 0: it has begun, or waits for none of them
 * @counted, @counted_round: mask of the workers that were counted in round @counted_round, the
 *	newest of which this worker has heard a result: each of them that is in @active, too, has the
 *	model that a worker needs whose call has returned -ESTALE.  0: none yet, or the job has steps
 * @missing: mask of the live workers that round @round has waited for since about a second or
 *	longer, as last heard; 0: for none
 * @timeout_ms: the policy's time-out, rounded up, as last heard: a round that has waited so long may
 *	be decided without live workers; 0: the policy has none
 * @reason: what keeps workers of @missing away, a sentence; empty: not known
 * @ranks: workers of the whole tree that the job is in, which is @workers if it has no parent
 * @rank: this worker's number among these, 0..@ranks-1
 * @depth: jobs above this one in its tree; 0: none, or it has no parent
 */
struct saina_job_info {
	size_t		size;
	int		job, worker, workers;
	uint64_t	elements;
	uint32_t	segments;
	uint32_t	payload;	/* elements of a segment */
	uint32_t	pool, ring;
	uint32_t	round;		/* the next this worker contributes to */
	uint64_t	active;		/* mask of live workers, as last heard */
	int		relayed;
	uint32_t	next_round;
	enum saina_type	type;		/* of the elements on the wire */
	int		part, parts;	/* coded policy: see above; else 0 */
	uint64_t	behind;
	uint64_t	counted;
	uint32_t	counted_round;
	uint64_t	missing;
	unsigned int	timeout_ms;
	char		reason[160];
	uint32_t	ranks, rank;
	uint32_t	depth;
};

/**
 * struct saina_call - what became of one all-reduce
 * @size: set by the caller to sizeof(struct saina_call)
 * @round: of the call
 * @segments: of the call
 * @count_min, @count_max: workers in the sum of the segment that has fewest, and most; in a tree
 *	those of other jobs are among them, and the masks name this job's
 * @mask_any, @mask_all: masks of the workers counted in at least one segment, in every segment
 * @late_segments: segments decided without this worker (its part is in the
 *	residual, or dropped if the policy says so)
 * @degraded_segments: decided with fewer than k: workers died, or by time-out
 * @skipped_segments: of @late_segments, those never sent because the result
 *	was there first
 * @rounds_behind: the newest round known to be decided, minus @round: so many more calls
 *	return at once
 * @k: latched by the aggregator (largest over the segments)
 * @next_k: k announced for the next round
 * @saturated: float32 elements that were dropped: of late gradients that are not finite, or beyond
 *	the largest float32 in a residual; with ssp, asp or grouped also those that did not fit the
 *	parameter server's exponent, whose rest goes with the next update
 * @resent: packets retransmitted for this call
 * @time_us: from start to completion
 * @nonfinite_segments: that are NaN because the gradient of a worker had a NaN or an infinity in
 *	them.  What this worker contributed to them is dropped, its residual stays
 */
struct saina_call {
	size_t		size;
	uint32_t	round;
	uint32_t	segments;
	unsigned int	count_min, count_max;
	uint64_t	mask_any, mask_all;
	uint32_t	late_segments;
	uint32_t	degraded_segments;
	uint32_t	skipped_segments;
	uint32_t	rounds_behind;
	unsigned int	k, next_k;
	uint64_t	saturated;
	uint64_t	resent;
	uint64_t	time_us;
	uint32_t	nonfinite_segments;
};

/**
 * struct saina_step - what became of one step
 * @size: set by the caller to sizeof(struct saina_step)
 * @step: that was finished, counted from 0; a round where the policy has rounds
 * @low: the update has all that all workers (grouped: of this one's group) have pushed in steps
 *	below this one
 * @window: how many steps a worker may be ahead of the slowest, as last heard: W of ssp,
 *	UINT32_MAX for asp and for a worker alone in its group, 0 in a group of several and where
 *	there are rounds
 * @staleness: how many steps the slowest worker (of the group) is behind the next step of this
 *	one: at most @window, unless that was lowered just now
 * @version_min, @version_max: updates of a segment that the server held, over the segments; 0
 *	where there are rounds
 * @updates_min, @updates_max: updates in what saina_read() has written, over the segments
 * @wait_us: from saina_clock() to the end, in steps
 */
struct saina_step {
	size_t		size;
	uint32_t	step, low;
	uint32_t	window, staleness;
	uint64_t	version_min, version_max;
	uint64_t	updates_min, updates_max;
	uint64_t	wait_us;
};

/**
 * struct saina_stats - since saina_open()
 */
struct saina_stats {
	size_t		size;
	uint64_t	rounds;
	uint64_t	sent, sent_bytes;	/* gradients of segments, sent for the first time */
	uint64_t	resent;			/* ... sent again */
	uint64_t	pulled;			/* results of segments, asked for */
	uint64_t	results, results_bytes;	/* first arrival of a result */
	uint64_t	duplicate_results;
	uint64_t	late_answers;
	uint64_t	bad_messages;		/* malformed, of other jobs, forged */
	uint64_t	late_segments, segments;
	uint64_t	saturated;
	uint64_t	rejoins;
	uint32_t	rtt_us;			/* smoothed */
	uint32_t	rto_us;			/* silence before an ASK */
	uint32_t	window;			/* messages */
	uint64_t	asked;			/* ASK messages */
	uint64_t	nonfinite_segments;
};

#define SAINA_SEGMENT_DEGRADED	0x01	/* fewer than k: workers died, or time-out */
#define SAINA_SEGMENT_DROP_LATE	0x10	/* late gradients were dropped (late=drop) */

/**
 * struct saina_segment - who is in one segment of a result
 * @mask: bit w: worker w was counted
 * @contributors: bits in @mask
 * @weight: workers in the sum: @contributors, and in a tree those of the other jobs
 * @k: latched by the aggregator for this segment
 * @exponent: the sums were gradient * 2^exponent, -104..149 (0 for int32, and in jobs of floats);
 *	-128: they were not finite, so that the result is NaN
 * @policy: low 16 bits of the policy's sequence number
 * @flags: SAINA_SEGMENT_*
 */
struct saina_segment {
	size_t		size;
	uint32_t	round;
	uint64_t	mask;
	unsigned int	contributors, k;
	int		exponent;
	unsigned int	policy, flags;
	uint32_t	weight;
};

/**
 * saina_opts_env() - options from the environment
 * @opts: out; @opts->size set by the caller.  What the environment does not say is 0, and
 *	@opts->worker -1.  Strings are the environment's
 *
 * SAINA_AGGREGATOR (HOST[:PORT]), SAINA_JOB (a name or a number), SAINA_RANK (0..63, of the
 * aggregator's own job, or "any").  Without SAINA_RANK, worker and workers are what torchrun (RANK, WORLD_SIZE) or
 * mpirun (OMPI_COMM_WORLD_RANK and _SIZE, PMI_RANK and _SIZE, MV2_COMM_WORLD_RANK and _SIZE,
 * PMIX_RANK) set; the first of these counts.  The token is looked up by saina_open().
 *
 * Returns 0 or -EINVAL, with the sentence in saina_strerror(NULL, err).
 */
int saina_opts_env(struct saina_opts *opts);

/**
 * saina_open() - join a job as a worker, and wait until the job runs
 * @s: out, the handle
 * @opts: see struct saina_opts
 *
 * Returns 0 or a negative errno, with the sentence in saina_strerror(NULL, err); see
 * saina_open(3) for the list.
 */
int saina_open(struct saina **s, const struct saina_opts *opts);

/**
 * saina_close() - leave the job and free the handle
 *
 * Gives up all-reduces in flight and frees their requests.  Returns 0, or -EINVAL without a handle.
 */
int saina_close(struct saina *s);

/** saina_info() - the job as this worker sees it; @info->size is set by the caller */
int saina_info(struct saina *s, struct saina_job_info *info);

/** saina_get_stats() - counters since saina_open(); @stats->size is set by the caller */
int saina_get_stats(struct saina *s, struct saina_stats *stats);

/**
 * saina_strerror() - the sentence for the last failure
 * @s: the handle, or NULL for the last saina_open() or saina_opts_env() of this thread
 * @err: used if there is no sentence
 *
 * Valid until the next call on @s.
 */
const char *saina_strerror(const struct saina *s, int err);

/** saina_version() - the version of the library, as text */
const char *saina_version(void);

/**
 * saina_allreduce() - sum or average @buf over the workers, in place, as one round
 * @buf: @n elements of @type
 * @call: out, what became of it; may be NULL
 *
 * Returns 0, -EINVAL, -ESTALE (results that this worker needs are gone: get the model from another
 * worker), -ECONNRESET (the job was stopped or deleted), -ETIMEDOUT, -EPROTO (another worker has
 * started another size or type), -EDOM (with ssp, asp or grouped: an element is infinite or not a
 * number), -ENOMEM, or the errno with which the kernel refuses to send: -EMSGSIZE, -EPERM,
 * -ENETUNREACH, ..
 */
int saina_allreduce(struct saina *s, void *buf, size_t n, enum saina_type type,
		    enum saina_result_op op, struct saina_call *call);

/**
 * saina_allreduce_start() - start an all-reduce as part of the present round
 * @buf: @n elements of @type; the library's until saina_wait() returns
 * @req: out, pass it to saina_wait() once
 *
 * Returns as saina_allreduce(), of which it is the first half.
 */
int saina_allreduce_start(struct saina *s, void *buf, size_t n, enum saina_type type,
			  enum saina_result_op op, struct saina_req **req);

/**
 * saina_allreduce_start_from() - start an all-reduce of gradients that are added up over rounds
 * @buf: as of saina_allreduce_start(): the results of earlier rounds plus what is new
 * @base: the part of @buf that earlier results have already, which is not kept if this worker is not
 *	counted; the library's until saina_wait() returns.  Only float32; NULL: nothing
 *
 * Returns as saina_allreduce_start().
 */
int saina_allreduce_start_from(struct saina *s, void *buf, const float *base, size_t n,
			       enum saina_type type, enum saina_result_op op,
			       struct saina_req **req);

/**
 * saina_wait() - wait until the result of @req is in its buffer, and free @req
 * @call: out, what became of it; may be NULL
 *
 * Returns as saina_allreduce().
 */
int saina_wait(struct saina *s, struct saina_req *req, struct saina_call *call);

/**
 * saina_round_done() - close the round, after all its all-reduces were waited for
 *
 * Returns 0, -EBUSY (one was not waited for), -EINVAL (none was started), or why the round failed.
 */
int saina_round_done(struct saina *s);

/**
 * saina_push() - add a change of the model to the present step
 * @buf: @n elements of @type; the library's until saina_read() returns 0
 *
 * All workers push the same sizes in the same order.  Steps work with any policy, and the policy
 * may change while the job runs.  Returns 0, -EINVAL, -EDOM (with ssp, asp or grouped: an element is
 * infinite or not a number), -ESTALE, -ECONNRESET, -ETIMEDOUT or -ENOMEM.
 */
int saina_push(struct saina *s, void *buf, size_t n, enum saina_type type);

/** saina_clock() - the present step is complete; returns at once, -EINVAL if nothing was pushed */
int saina_clock(struct saina *s);

/**
 * saina_read() - wait for the update of the model, and start the next step
 * @step: out, what became of the step; may be NULL
 * @timeout_ms: 0: do not wait; -1: no limit
 *
 * On success the pushed buffers hold the sum of what all workers have pushed since this one last
 * read.  Calls saina_clock() if the caller has not.  With ssp:W it waits while this worker is more
 * than W steps ahead of the slowest, with asp never, with grouped for the other workers of its
 * group, otherwise for the result of the round.
 *
 * Returns 0, -ETIMEDOUT (call it again), -ESTALE (more than 2047 updates of float32, or all of the
 * server's, were missed: get the model from another worker), or another negative errno.
 */
int saina_read(struct saina *s, struct saina_step *step, int timeout_ms);

/**
 * saina_poll() - has @req finished, so that saina_wait() returns at once?
 * @timeout_ms: 0: do not wait; -1: no limit
 *
 * Returns 1 if so, 0 if not within @timeout_ms, or a negative errno.  saina_wait() is due either
 * way.
 */
int saina_poll(struct saina *s, struct saina_req *req, int timeout_ms);

/**
 * saina_segment() - who was counted in the last result of @segment
 * @out: @out->size is set by the caller; @out->round says which round it was
 *
 * Returns 0, -EINVAL, or -ENODATA before the first result.
 */
int saina_segment(struct saina *s, uint32_t segment, struct saina_segment *out);

/**
 * saina_decided() - has the round that this worker is to contribute to been decided?
 *
 * Returns 1 if so, for all segments of the last round's size; 0 if not; or a negative errno.  Lets
 * a straggler stop computing.
 */
int saina_decided(struct saina *s);

/**
 * saina_set_round() - continue at @round, with a model from another worker
 * @round: that the other worker is at; the model holds all earlier rounds
 *
 * If the round before @round is not over and stalls for a second, other workers may be waiting for
 * this one, and no model can hold that round: this worker takes part in it, and call->round says
 * so.  With ssp, asp or grouped the model is taken to hold all that was pushed before.
 *
 * Returns 0, -EBUSY (a round is open), -EINVAL (this worker is beyond @round), or why the job
 * failed.
 */
int saina_set_round(struct saina *s, uint32_t round);

/**
 * saina_residual() - read the residual, for tests and checkpoints
 * @first: element, counted through the segments: a later bucket of a round begins a new segment
 * @n: elements
 * @out: in units of the tensor (float32), or exact (int32)
 *
 * Returns 0, or -EINVAL: beyond the end, or a segment keeps elements of the other type.
 */
int saina_residual(struct saina *s, uint64_t first, uint64_t n, enum saina_type type,
		   void *out);

/**
 * saina_residual_set() - replace the residual, between rounds
 * @first, @n: as of saina_residual()
 * @in: in units of the tensor (float32), or exact (int32)
 *
 * Returns 0 or, with nothing changed, -EINVAL (beyond the end, an element is infinite or not a
 * number, or a segment keeps elements of the other type), -EBUSY (a round is open), or why the job
 * failed.
 */
int saina_residual_set(struct saina *s, uint64_t first, uint64_t n, enum saina_type type,
		       const void *in);

/**
 * struct saina_move - elements that change their place in the gradient
 * @from, @to: the first of them, before and after, counted through the segments as in
 *	saina_residual()
 * @n: how many
 */
struct saina_move {
	uint64_t	from, to, n;
};

/**
 * saina_layout() - move elements of the gradient, with their residuals, between rounds
 * @moves: @n of them
 *
 * What was at @from in earlier rounds is at @to in later ones.  All workers make the same moves
 * before the same round.  Returns 0 or, with nothing changed, -EINVAL (residual would be lost, two
 * types would meet in a segment, or elements that do not exist), -EBUSY (a round is open), -ENOMEM,
 * or why the job failed.
 */
int saina_layout(struct saina *s, const struct saina_move *moves, size_t n);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif /* SAINA_H */
