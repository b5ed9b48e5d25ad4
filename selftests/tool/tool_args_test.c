// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Command lines of saina, valid and invalid: the requests to the control plane (a mock), the
 * messages, the exit status.
 */
#include <stdio.h>
#include <string.h>

#include "linux/saina.h"
#include "lib/tap.h"
#include "tool/mock_agent.h"

static const struct {
	const char *line;
	const char *requests;
} good[] = {
	{ "job add d elements 1000 workers 8", "JOB_NEW NAME=d ELEMENTS=1000 WORKERS=8" },
	{ "job add d workers 64 elements 18446744073709551615",
	  "JOB_NEW NAME=d ELEMENTS=18446744073709551615 WORKERS=64" },
	{ "j a d elements 0x10 workers 1 id 255 payload 352 pool 4096 ring 64 type int32 "
	  "policy fastest:k=6,late=drop token s3cret exponent -104 heartbeat 10 dead 60000",
	  "JOB_NEW ID=255 NAME=d ELEMENTS=16 WORKERS=1 PAYLOAD=352 POOL=4096 RING=64 "
	  "ELEM_TYPE=1 EXPONENT=4294967192 POLICY={ MODE=2 LATE=2 K=6 } TOKEN=s3cret HEARTBEAT_MS=10 "
	  "DEAD_MS=60000" },
	{ "job add d elements 25M workers 8", "JOB_NEW NAME=d ELEMENTS=25000000 WORKERS=8" },
	{ "job add d elements 8G workers 8", "JOB_NEW NAME=d ELEMENTS=8000000000 WORKERS=8" },
	{ "job add d elements 3k workers 8", "JOB_NEW NAME=d ELEMENTS=3000 WORKERS=8" },
	{ "job delete d", "JOB_DEL NAME=d" },
	{ "job remove d", "JOB_DEL NAME=d" },
	{ "worker delete d 3", "WORKER_DEL JOB_NAME=d ID=3" },
	{ "worker remove d 3", "WORKER_DEL JOB_NAME=d ID=3" },
	{ "job add d e 1 wo 1 pay 64 poo 1", NULL },	/* ambiguous: elements or exponent */
	{ "job add d el 1 wo 1 pay 64 poo 2 t bfloat16", NULL },	/* ambiguous: type or token */
	{ "job add d el 1 wo 1 pay 64 poo 2 ty bfloat16 ex 110",
	  "JOB_NEW NAME=d ELEMENTS=1 WORKERS=1 PAYLOAD=64 POOL=2 ELEM_TYPE=3 EXPONENT=110" },
	{ "job add d elements 1 workers 1 type int16", "JOB_NEW NAME=d ELEMENTS=1 WORKERS=1 ELEM_TYPE=4" },
	{ "job add d elements 1 workers 1 token ''",
	  "JOB_NEW NAME=d ELEMENTS=1 WORKERS=1 TOKEN=" },
	{ "job add d elements 1 workers 2 weights 8,3", "JOB_NEW NAME=d ELEMENTS=1 WORKERS=2 WEIGHTS=8,3" },
	{ "job add d elements 1 workers 2 uplink 10.0.0.7 parent-job mnist parent-worker 0",
	  "JOB_NEW NAME=d ELEMENTS=1 WORKERS=2 UPLINK={ ADDRESS=117440522 JOB=mnist WORKER=0 }" },
	{ "job set d uplink 10.0.0.7:700 parent-job 17 parent-worker 63 parent-token-file /t",
	  "JOB_SET NAME=d UPLINK={ ADDRESS=117440522 PORT=48130 JOB=17 WORKER=63 TOKEN_FILE=/t }" },
	{ "job set d policy bsp", "JOB_SET NAME=d POLICY={ MODE=1 LATE=1 }" },
	{ "job set 7 k 5", "JOB_SET ID=7 K_SET=5" },
	{ "policy set d timeout:10ms,kmin=4",
	  "JOB_SET NAME=d POLICY={ MODE=4 LATE=1 K_MIN=4 TIMEOUT_US=10000 }" },
	{ "policy set d bsp from 500",
	  "JOB_SET NAME=d POLICY={ MODE=1 LATE=1 } POLICY_FROM=500" },
	{ "policy set d bsp from round 7 on k,worker-dead",
	  "JOB_SET NAME=d POLICY={ MODE=1 LATE=1 } POLICY_FROM=7 POLICY_ON=516" },
	{ "policy cancel d", "JOB_SET NAME=d POLICY_CANCEL=1" },
	{ "job set 7 policy bsp", "JOB_SET ID=7 POLICY={ MODE=1 LATE=1 }" },
	{ "job set 7a state running", "JOB_SET NAME=7a STATE=2" },
	{ "job set d state stopped token x heartbeat 100 dead 400",
	  "JOB_SET NAME=d STATE=3 TOKEN=x HEARTBEAT_MS=100 DEAD_MS=400" },
	{ "job set d state forming", "JOB_SET NAME=d STATE=1" },
	{ "job del d", "JOB_DEL NAME=d" },
	{ "job del 0", "JOB_DEL ID=0" },
	{ "job", "JOB_GET dump" },
	{ "job show", "JOB_GET dump" },
	{ "job list", "JOB_GET dump" },
	{ "j s", "JOB_GET dump" },
	{ "j s d", "JOB_GET NAME=d" },
	{ "-j job show 255", "JOB_GET ID=255" },
	{ "-jp job show", "JOB_GET dump" },
	{ "--json --pretty job show", "JOB_GET dump" },
	{ "worker show", "WORKER_GET dump" },
	{ "w s d", "WORKER_GET dump JOB_NAME=d" },
	{ "w s 3 63", "WORKER_GET JOB_ID=3 ID=63" },
	{ "worker set d 0 state dead", "WORKER_SET JOB_NAME=d ID=0 STATE=3" },
	{ "worker set d 5 state alive", "WORKER_SET JOB_NAME=d ID=5 STATE=1" },
	{ "worker del 2 7", "WORKER_DEL JOB_ID=2 ID=7" },
	{ "port", "PORT_GET dump" },
	{ "p s", "PORT_GET dump" },
	{ "port set p0 loss-in 0.2", "PORT_SET IFNAME=p0 LOSS_IN=858993459" },
	{ "port set p0 loss-in 20% loss-out 0", "PORT_SET IFNAME=p0 LOSS_IN=858993459 LOSS_OUT=0" },
	{ "port set p0 loss-out 1", "PORT_SET IFNAME=p0 LOSS_OUT=4294967295" },
	{ "port set p0 seed 42", "PORT_SET IFNAME=p0 SEED=42" },
	{ "slot show", "JOB_GET dump" },
	{ "sl s d", "WORKER_GET dump JOB_NAME=d; SLOT_GET dump JOB_NAME=d" },
	{ "slot show 4 older-than 100",
	  "WORKER_GET dump JOB_ID=4; SLOT_GET dump JOB_ID=4" },
	{ "slot show older-than 0.5", "JOB_GET dump" },
	{ "s", "JOB_GET dump" },	/* the first object that begins with an s */
	{ "stats", "STATS_GET dump" },
	{ "stats show all", "STATS_GET dump" },
	{ "stats show global", "STATS_GET dump" },
	{ "stats show d 3 all", "STATS_GET dump JOB_NAME=d" },
	{ "stats drops 9", "STATS_GET dump JOB_ID=9" },
	{ "limits", "LIMITS_GET" },
	{ "limits set jobs 4 memory 2G memory-job 64m",
	  "LIMITS_SET JOBS=4 MEMORY_JOB=67108864 MEMORY=2147483648" },
	{ "limits set memory-job 1048576", "LIMITS_SET MEMORY_JOB=1048576" },
	/* no requests */
	{ "-h", "" },
	{ "--help", "" },
	{ "help", "" },
	{ "-V", "" },
	{ "job help", "" },
	{ "doctor help", "" },
};

#define ALLOWED_ADD "allowed: elements, workers, id, payload, pool, ring, type, policy, token, token-file, exponent, heartbeat, dead, by-reference, by-reference-only, weights, uplink, parent-job, parent-worker, parent-token-file"

static const struct {
	const char *line;
	const char *says;	/* all of stderr, without its newline */
} bad[] = {
	{ "frob", "saina: unknown object \"frob\"; allowed: job, worker, port, policy, slot, stats, limits, monitor, top, bench, doctor" },
	{ "jobs", "saina: unknown object \"jobs\"; allowed: job, worker, port, policy, slot, stats, limits, monitor, top, bench, doctor" },
	{ "''", "saina: unknown object \"\"; allowed: job, worker, port, policy, slot, stats, limits, monitor, top, bench, doctor" },
	{ "-x job", "saina: unknown option \"-x\"; allowed: -j, -p, -s PATH, -n NETNS, --show-tokens, -V, -h" },
	{ "--frob job", "saina: unknown option \"--frob\"; allowed: -j, -p, -s PATH, -n NETNS, --show-tokens, -V, -h" },
	{ "-s", "saina: option \"-s\" needs a value" },
	{ "--socket", "saina: option \"--socket\" needs a value" },
	{ "-n", "saina: option \"-n\" needs a value" },
	{ "job frob", "saina: job: unknown command \"frob\"; allowed: show, add, set, del, help" },
	{ "job show -j", "saina: job show: \"-j\" is an option: options go before the object" },
	{ "job show -n", "saina: job show: \"-n\" is an option: options go before the object" },
	{ "job show a b", "saina: job show: unexpected argument \"b\"" },
	{ "job show 256", "saina: job show: \"256\" is not a job number: must be 0 to 255" },
	{ "job show 99999999999999999999", "saina: job show: \"99999999999999999999\" is not a job number: must be 0 to 255" },
	{ "job show ''", "saina: job show: \"\" is not a job name: must have 1 to 31 characters" },
	{ "job show abcdefghijabcdefghijabcdefghijab",
	  "saina: job show: \"abcdefghijabcdefghijabcdefghijab\" is not a job name: must have 1 to 31 characters" },
	{ "top 256", "saina: top: \"256\" is not a job number: must be 0 to 255" },
	{ "top 1 b", "saina: top: unexpected argument \"b\"" },
	{ "job add", "saina: job add: the name of the new job is missing" },
	{ "job add d", "saina: job add: \"elements\" is missing" },
	{ "job add d elements 5 workers=4", "saina: job add: \"workers=4\": give it as two words: workers 4" },
	{ "job add d --elements 5 workers 4", "saina: job add: \"--elements\": give it as two words: elements VALUE" },
	{ "job add d elements 5", "saina: job add: \"workers\" is missing" },
	{ "job add d elements", "saina: job add: \"elements\" needs a value" },
	{ "job add d elements x workers 1",
	  "saina: job add: \"x\" for \"elements\" is not allowed: must be a number, such as 346378, 25M or 1G, or auto" },
	{ "job add d elements 0 workers 1",
	  "saina: job add: \"0\" for \"elements\" is not allowed: must be a number, such as 346378, 25M or 1G, or auto" },
	{ "job add d elements -1 workers 1",
	  "saina: job add: \"-1\" for \"elements\" is not allowed: must be a number, such as 346378, 25M or 1G, or auto" },
	{ "job add d elements 18446744073709551616 workers 1",
	  "saina: job add: \"18446744073709551616\" for \"elements\" is not allowed: must be a number, such as 346378, 25M or 1G, or auto" },
	{ "job add d elements 1e6 workers 1",
	  "saina: job add: \"1e6\" for \"elements\" is not allowed: must be a number, such as 346378, 25M or 1G, or auto" },
	{ "job add d elements 1 workers 65",
	  "saina: job add: \"65\" for \"workers\" is not allowed: must be a number from 1 to 64" },
	{ "job add d elements 1 workers 0",
	  "saina: job add: \"0\" for \"workers\" is not allowed: must be a number from 1 to 64" },
	{ "job add d elements 1 workers ''",
	  "saina: job add: \"\" for \"workers\" is not allowed: must be a number from 1 to 64" },
	{ "job add d elements 1 workers 1 id 256",
	  "saina: job add: \"256\" for \"id\" is not allowed: must be a number from 0 to 255" },
	{ "job add d elements 1 workers 1 payload 65536",
	  "saina: job add: \"65536\" for \"payload\" is not allowed: must be a number from 0 to 65535" },
	{ "job add d elements 1 workers 1 exponent 150",
	  "saina: job add: \"150\" for \"exponent\" is not allowed: must be a number from -104 to 149" },
	{ "job add d elements 1 workers 1 exponent --5",
	  "saina: job add: \"--5\" for \"exponent\" is not allowed: must be a number from -104 to 149" },
	{ "job add d elements 1 workers 1 type int64",
	  "saina: job add: \"int64\" for \"type\" is not allowed: must be one of int32, float32, bfloat16, int16" },
	{ "job add d elements 1 workers 1 token 123456789012345678901234567890123",
	  "saina: job add: \"123456789012345678901234567890123\" for \"token\" is not allowed: must be 0 to 32 characters" },
	{ "job add d elements 1 workers 1 policy ''",
	  "saina: job add: policy: '' is unknown; known are bsp, fastest:k=K, sfcd:k0=K,..., timeout:T, external:k0=K, coded:s=S, ssp:W, asp, grouped:g=G" },
	{ "job add d elements aut workers 1",
	  "saina: job add: \"aut\" for \"elements\" is not allowed: must be a number, such as 346378, 25M or 1G, or auto" },
	{ "job add d elements 1 workers 1 elements 2", "saina: job add: \"elements\" is given twice" },
	{ "job add d elemnts 1", "saina: job add: unknown key \"elemnts\"; " ALLOWED_ADD },
	{ "job add d elements 1 workers 1 ''", "saina: job add: unknown key \"\"; " ALLOWED_ADD },
	{ "job add d p 64", "saina: job add: \"p\" is ambiguous: payload, pool, policy, parent-job, parent-worker, parent-token-file" },
	{ "job set", "saina: job set: the job is missing: give its name or number" },
	{ "policy", "saina: policy: the command is missing; allowed: set, cancel, control, help (`saina job show' shows the policy in force and the scheduled one)" },
	{ "policy control d noise -1", "saina: policy control: noise must be above 0 and at most 1e9: the gradient noise scale in batches of one worker" },
	{ "policy control d every 5", "saina: policy control: unknown key \"every\"; allowed: noise BATCHES, groups MOST, interval MS" },
	{ "policy set d", "saina: policy set: the policy is missing: give one, such as bsp, fastest:k=6, fastest:k=6,lead=none, timeout:10ms,kmin=4" },
	{ "policy set d bsp on rain", "saina: policy set: unknown event \"rain\"; allowed: k, degraded, worker-joined, worker-dead" },
	{ "policy set d bsp since 5", "saina: policy set: unknown key \"since\"; allowed: from ROUND, on EVENT" },
	{ "policy set d bsp from", "saina: policy set: \"from\" needs a value" },
	{ "policy set d timeout:0", "saina: policy set: policy: '0': must be 1ms..60s, as in 10ms, 1500us or 2s" },
	{ "job add d elements 1 workers 2 weights 8,",
	  "saina: job add: \"8,\" for \"weights\" is not allowed: must be a number from 1 to 65535 for each worker, such as 8,8,1" },
	{ "job add d elements 1 workers 2 weights 8,0",
	  "saina: job add: \"8,0\" for \"weights\" is not allowed: must be a number from 1 to 65535 for each worker, such as 8,8,1" },
	{ "job add d elements 1 workers 2 uplink host1 parent-job a parent-worker 0",
	  "saina: job add: \"host1\" for \"uplink\" is not allowed: must be an IPv4 address, such as 192.0.2.7, or 192.0.2.7:48865 with a port" },
	{ "job add d elements 1 workers 2 uplink 10.0.0.7:0 parent-job a parent-worker 0",
	  "saina: job add: \"10.0.0.7:0\" for \"uplink\" is not allowed: must be an IPv4 address, such as 192.0.2.7, or 192.0.2.7:48865 with a port" },
	{ "job add d elements 1 workers 2 uplink 10.0.0.7 parent-job a",
	  "saina: job add: a job with a parent needs all of uplink, parent-job and parent-worker" },
	{ "job set d parent-worker 3",
	  "saina: job set: a job with a parent needs all of uplink, parent-job and parent-worker" },
	{ "job set d", "saina: job set: nothing to set; allowed: policy, k, state, token, token-file, heartbeat, dead, uplink, parent-job, parent-worker, parent-token-file" },
	{ "job set d elements 4",
	  "saina: job set: unknown key \"elements\"; allowed: policy, k, state, token, token-file, heartbeat, dead, uplink, parent-job, parent-worker, parent-token-file" },
	{ "job set d state go",
	  "saina: job set: \"go\" for \"state\" is not allowed: must be one of forming, running, stopped" },
	{ "job del", "saina: job del: the job is missing: give its name or number" },
	{ "job del a b", "saina: job del: unexpected argument \"b\"" },
	{ "worker show d 64", "saina: worker show: \"64\" is not a worker number: must be 0 to 63" },
	{ "worker set d", "saina: worker set: the worker is missing: give its number, 0 to 63" },
	{ "worker set d 1", "saina: worker set: \"state\" is missing" },
	{ "worker set d 1 state absent",
	  "saina: worker set: \"absent\" for \"state\" is not allowed: must be one of alive, slow, dead, left" },
	{ "worker del d x", "saina: worker del: \"x\" is not a worker number: must be 0 to 63" },
	{ "port set", "saina: port set: the port is missing: give the name of its interface" },
	{ "port set abcdefghijklmnop loss-in 0",
	  "saina: port set: \"abcdefghijklmnop\" is not an interface name: must have 1 to 15 characters" },
	{ "port set p0", "saina: port set: nothing to set; allowed: hook, loss-in, loss-out, seed" },
	{ "port set p0 loss-in 1.5",
	  "saina: port set: \"1.5\" for \"loss-in\" is not allowed: must be a share from 0 to 1, such as 0.2 or 20%" },
	{ "port set p0 loss-in nan",
	  "saina: port set: \"nan\" for \"loss-in\" is not allowed: must be a share from 0 to 1, such as 0.2 or 20%" },
	{ "port set p0 loss-in 20%%",
	  "saina: port set: \"20%%\" for \"loss-in\" is not allowed: must be a share from 0 to 1, such as 0.2 or 20%" },
	{ "port set p0 loss 0.1", "saina: port set: \"loss\" is ambiguous: loss-in, loss-out" },
	{ "slot show d older 5 more", "saina: slot show: unknown key \"more\"; allowed: older-than" },
	{ "slot show d older-than x",
	  "saina: slot show: \"x\" for \"older-than\" is not allowed: must be 0 to 4000000 milliseconds, such as 0.5 or 20" },
	{ "stats show d 1 2", "saina: stats show: unexpected argument \"2\"" },
	{ "stats show d x", "saina: stats show: \"x\" is not a worker number: must be 0 to 63" },
	{ "limits show x", "saina: limits show: unexpected argument \"x\"" },
	{ "limits set", "saina: limits set: nothing to set; allowed: jobs, memory-job, memory" },
	{ "limits set memory 5X",
	  "saina: limits set: \"5X\" for \"memory\" is not allowed: must be a number of bytes, such as 1048576, 64M or 2G" },
	{ "limits set memory 99999999999T",
	  "saina: limits set: \"99999999999T\" for \"memory\" is not allowed: must be a number of bytes, such as 1048576, 64M or 2G" },
	{ "monitor frob", "saina: monitor: unknown command \"frob\"; allowed: all, config, events, arrivals, help" },
	{ "monitor all x", "saina: monitor all: unexpected argument \"x\"" },
	{ "monitor arrivals d x", "saina: monitor arrivals: unexpected argument \"x\"" },
	{ "doctor worker at 1", "saina: doctor worker: unknown key \"at\"; allowed: to HOST" },
	{ "doctor worker to", "saina: doctor worker: \"to\" needs the aggregator's address or host name" },
	{ "doctor worker to 300.1.1.1",
	  "saina: doctor worker: \"300.1.1.1\" is neither an IPv4 address, such as 192.0.2.1, nor a host name that has one" },
};

struct refusal {
	int err;
	const char *text;
	unsigned int attr;	/* guilty attribute of JOB, present in the request or missing */
};

static void refuse(int fd, const struct nlmsghdr *req, void *arg)
{
	const struct refusal *r = arg;
	const struct nlattr *a;

	mnl_attr_for_each(a, req, sizeof(struct genlmsghdr)) {
		if (r->attr && mnl_attr_get_type(a) == r->attr) {
			mock_refuse(fd, req, r->err, r->text,
				    (unsigned int)((const char *)a - (const char *)req), 0, 0);
			return;
		}
	}
	mock_refuse(fd, req, r->err, r->text, 0, r->attr, 0);
}

static const struct {
	const char *line;
	struct refusal r;
	const char *says;
} refused[] = {
	{ "job add d elements 1 workers 1 policy fastest:k=2",
	  { 22, "a job of 1 worker has no k of 2", SAINA_A_JOB_POLICY },
	  "saina: a job of 1 worker has no k of 2 (attribute \"policy\")\n" },
	{ "job add d elements 1 workers 1 policy ssp:3",
	  { 22, "policy: attribute 12 is unknown", SAINA_A_JOB_POLICY },
	  "saina: policy: attribute 12 is unknown: sainad is of an earlier version than this program (attribute \"policy\")\n" },
	{ "job add d elements 1 workers 1",
	  { 22, "Unknown attribute type", SAINA_A_JOB_ELEMENTS },
	  "saina: Unknown attribute type: sainad is of an earlier version than this program (attribute \"elements\")\n" },
	{ "job add d elements 1 workers 1",
	  { 22, "a payload must be given", SAINA_A_JOB_PAYLOAD },
	  "saina: a payload must be given (attribute \"payload\")\n" },
	{ "job del d", { 2, "there is no job d", 0 }, "saina: there is no job d\n" },
	{ "job del d", { 2, NULL, 0 }, "saina: No such file or directory\n" },
	{ "job del d", { 1, NULL, 0 }, "saina: Operation not permitted (are you root?)\n" },
	{ "job del d", { 22, "an attribute that is not known", 99 },
	  "saina: an attribute that is not known\n" },
	{ "job del d", { 22, "\033[2Jsteers a terminal", 0 }, "saina: ?[2Jsteers a terminal\n" },
};

int main(int argc, char **argv)
{
	static char out[65536], err[65536], want[1024];
	struct mock_agent mock;
	bool ok;
	int rc;

	mock_start(&mock, "saina", argc > 1 ? argv[1] : NULL);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		mock_reset(&mock, mock_ack, NULL);
		rc = mock_run(&mock, good[i].line, out, sizeof(out), err, sizeof(err));
		if (!good[i].requests)
			ok = rc == 2 && !mock.requests[0] && strstr(err, "is ambiguous");
		else
			ok = !rc && !err[0] && !strcmp(mock.requests, good[i].requests);
		if (!tap_ok(ok, good[i].requests ? "sends what was asked for: saina %s" :
					     "an ambiguous word is refused: saina %s", good[i].line))
			tap_note("exit %d, sent \"%s\", said \"%s\"", rc, mock.requests, err);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		mock_reset(&mock, mock_ack, NULL);
		rc = mock_run(&mock, bad[i].line, out, sizeof(out), err, sizeof(err));
		snprintf(want, sizeof(want), "%s\n", bad[i].says);
		ok = rc == 2 && !out[0] && !mock.requests[0] && !strcmp(err, want);
		if (!tap_ok(ok, "a usage error is refused with status 2: saina %s", bad[i].line))
			tap_note("exit %d, sent \"%s\", said \"%s\"", rc, mock.requests, err);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		mock_reset(&mock, refuse, (void *)&refused[i].r);
		rc = mock_run(&mock, refused[i].line, out, sizeof(out), err, sizeof(err));
		ok = rc == 1 && !out[0] && !strcmp(err, refused[i].says);
		if (!tap_ok(ok, "the refusal of the control plane is printed (case %zu): saina %s", i, refused[i].line))
			tap_note("exit %d, said \"%s\"", rc, err);
	}
	/* without a control plane */
	snprintf(want, sizeof(want), "-s %s/nothing job show", mock.dir);
	rc = mock_run(&mock, want, out, sizeof(out), err, sizeof(err));
	snprintf(want, sizeof(want),
		 "saina: no control plane at %s/nothing: there is no such socket; start sainad with that control socket, or name the right one (-s, SAINA_CONTROL)\n",
		 mock.dir);
	if (!tap_ok(rc == 1 && !strcmp(err, want), "job show: fails without a control plane, with what to do"))
		tap_note("exit %d, said \"%s\"", rc, err);
	rc = mock_run(&mock, "-n no/where job show", out, sizeof(out), err, sizeof(err));
	if (!tap_ok(rc == 1 && !strcmp(err, "saina: network namespace no/where: No such file or directory; `ip netns' lists the namespaces\n"),
		    "-n: an unknown network namespace is refused, with what to do"))
		tap_note("exit %d, said \"%s\"", rc, err);
	mock_stop(&mock);
	return tap_done();
}
