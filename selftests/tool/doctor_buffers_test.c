// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor's receive buffers (tools/saina/doctor_buffers.c): the size that it recommends is the
 * least that gives libsaina its full window.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "../tools/saina/doctor_check.h"
#include "transport/flow.h"
#include "net/io.h"
#include "saina/proto.h"
#include "lib/statement.h"

static int rmem_max;	/* < 0: cannot be read */
static int rcvbuf;
static enum doc_verdict verdict;
static char found[512], fix[512];

/* --- stubs of the doctor and the kernel ------------------------------------------------- */

void doc_report(enum doc_verdict v, const char *check, const char *remedy, const char *fmt, ...)
{
	va_list ap;

	assert_string_equal(check, "rmem");
	verdict = v;
	va_start(ap, fmt);
	vsnprintf(found, sizeof(found), fmt, ap);
	va_end(ap);
	snprintf(fix, sizeof(fix), "%s", remedy ? remedy : "");
}

const char *doc_fix(const char *fmt, ...)
{
	static char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return text;
}

bool doc_read_line(const char *path, char *text, size_t size)
{
	assert_string_equal(path, "/proc/sys/net/core/rmem_max");
	snprintf(text, size, "%d", rmem_max);
	return rmem_max >= 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

/* The kernel doubles the size, up to rmem_max. */
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	const int *size = value;

	assert_int_equal(name, SO_RCVBUF);
	rcvbuf = 2 * (*size < rmem_max ? *size : rmem_max);
	return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	assert_int_equal(name, SO_RCVBUF);
	memcpy(value, &rcvbuf, sizeof(rcvbuf));
	return 0;
}

/* --- libsaina's window ------------------------------------------------------------------- */

/* Batches that a worker of the job may have in flight with a socket of @bytes. */
static uint32_t window(const struct saina_job_attrs *a, int bytes)
{
	size_t wire = a->elem_type == SAINA_ELEM_BFLOAT16 ? 2 : 4;
	struct saina_job job = { .workers = 2, .segments = a->segments, .payload = a->payload,
				 .pool = a->pool, .ring = 8, .wire = wire,
				 .msglen = sizeof(struct saina_hdr) + wire * a->payload };
	struct saina_flow flow;
	struct saina_io io = { 0 };
	uint32_t max;

	job.per_batch = saina_job_per_batch(job.msglen, job.pool);
	rcvbuf = bytes;
	assert_int_equal(saina_flow_init(&flow, &job, saina_io_room(&io), 0, 0), 0);
	max = flow.cwnd.max;
	saina_flow_exit(&flow);
	return max;
}

static const unsigned int payloads[] = { 64, 128, 256, 352, 1024, 2048 };
static const unsigned int types[] = { SAINA_ELEM_INT32, SAINA_ELEM_FLOAT32, SAINA_ELEM_BFLOAT16 };

static void test_window(void **state)
{
	for (unsigned int i = 0; i < 4 * 6 * 3 * 13; i++) {
		unsigned int pool = 1u << i / 72;
		struct saina_job_attrs job = { .payload = payloads[i % 6], .pool = pool,
			.elem_type = types[i / 6 % 3], .segments = pool - pool / 4 * (i / 18 % 4) + !(i / 18 % 4) };
		int need = (int)doc_buffers_need(&job, false);
		uint32_t most = window(&job, 1 << 30);

		assert_int_equal(window(&job, need), most);
		if (most > 1)
			assert_true(window(&job, need - 1) < most);
	}
}

/* Behind a port with XDP each result takes a page and an sk_buff. */
static void test_xdp(void **state)
{
	struct saina_job_attrs job = { .payload = 352, .pool = 256, .segments = 5000 };

	assert_int_equal(doc_buffers_need(&job, true), 5 * 44 * 4608);
	assert_int_equal(doc_buffers_need(&job, false), 6 * 69632);
	job.pool = 4096;
	assert_int_equal(doc_buffers_need(&job, true), 8 * 44 * 4608);
	job.payload = 2048;
	assert_int_equal(doc_buffers_need(&job, true), doc_buffers_need(&job, false));
	job.pool = 0;
	assert_int_equal(doc_buffers_need(&job, true), 0);
}

/* --- verdicts ---------------------------------------------------------------------------- */

static void host(int have, unsigned int mode, size_t jobs)
{
	struct saina_job_attrs job[2] = {
		{ .name = "small", .payload = 64, .pool = 1, .segments = 5000 },
		{ .name = "large", .payload = 352, .pool = 4096, .segments = 5000 },
	};
	struct saina_port_attrs port[2] = { { .mode = SAINA_PORT_MODE_TC }, { .mode = mode } };
	struct doc_state s = { .jobs = { .v = job, .n = jobs }, .ports = { .v = port, .n = mode ? 2 : 0 } };

	rmem_max = have;
	doc_buffers(&s);
}

static void expect(enum doc_verdict v, const char *of, int fixed)
{
	char want[64] = "";

	assert_int_equal(verdict, v);
	assert_non_null(strstr(found, of));
	if (fixed)
		snprintf(want, sizeof(want), "sysctl -w net.core.rmem_max=%d", fixed);
	assert_string_equal(fix, want);
}

static void test_host(void **state)
{
	const int stock = 212992, tc = 6 * 69632 / 2, xdp = 5 * 44 * 4608 / 2;

	host(stock, SAINA_PORT_MODE_TC, 0);
	expect(DOC_OK, "a job with defaults", 0);
	host(tc - 1, SAINA_PORT_MODE_TC, 0);
	expect(DOC_WARN, "a job with defaults", tc);
	host(stock, SAINA_PORT_MODE_NATIVE, 0);
	expect(DOC_WARN, "XDP", xdp);
	host(stock, SAINA_PORT_MODE_GENERIC, 0);
	expect(DOC_WARN, "XDP", xdp);
	host(xdp, SAINA_PORT_MODE_NATIVE, 0);
	expect(DOC_OK, "a job with defaults", 0);
	host(stock, 0, 0);	/* no port is known: hook auto will be tc */
	expect(DOC_OK, "a job with defaults", 0);
	host(stock, SAINA_PORT_MODE_TC, 1);
	expect(DOC_OK, "small", 0);
	host(stock, SAINA_PORT_MODE_TC, 2);
	expect(DOC_WARN, "large", 9 * 69632 / 2);
	host(9 * 69632 / 2, SAINA_PORT_MODE_TC, 2);
	expect(DOC_OK, "large", 0);
	host(-1, SAINA_PORT_MODE_TC, 2);
	expect(DOC_SKIP, "cannot be read", 0);
}

static void test_worker(void **state)
{
	const int xdp = 5 * 44 * 4608 / 2;

	rmem_max = xdp;
	doc_buffers_worker();
	assert_int_equal(verdict, DOC_OK);
	assert_string_equal(fix, "");
	rmem_max = 212992;
	doc_buffers_worker();
	assert_int_equal(verdict, DOC_OK);
	assert_non_null(strstr(found, "enough behind a port with the tc hook"));
	assert_string_equal(fix, "on the host: sysctl -w net.core.rmem_max=506880");
	rmem_max = 6 * 69632 / 2;
	doc_buffers_worker();
	assert_int_equal(verdict, DOC_OK);
	rmem_max = 6 * 69632 / 2 - 1;
	doc_buffers_worker();
	assert_int_equal(verdict, DOC_WARN);
	assert_string_equal(fix, "on the host: sysctl -w net.core.rmem_max=506880");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("doctor, receive buffers: what it asks for is the least that gives libsaina its full window", test_window),
		statement("doctor, receive buffers: behind XDP each result of the window takes a page", test_xdp),
		statement("doctor, receive buffers: the host's rmem_max is compared with the job that needs most", test_host),
		statement("doctor, receive buffers: a worker's socket is compared with a full window", test_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
