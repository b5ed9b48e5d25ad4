// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sainad's configuration: all keys are read, and every refusal names file, line, word and
 * what is allowed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>

#include "agent/config.h"
#include "agent/log.h"
#include "../lib/statement.h"

static char path[] = "/tmp/saina-config-XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);

	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int remove_file(void **state)
{
	return unlink(path);
}

static int load(struct config *cfg, const char *content, char *text, size_t size)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(content, f) >= 0);
	assert_int_equal(fclose(f), 0);
	config_defaults(cfg);
	text[0] = 0;
	return config_load(cfg, path, true, text, size);
}

static void everything(void **state)
{
	struct config cfg;
	char text[320];
	const struct saina_job_attrs *r;

	assert_int_equal(
		load(&cfg,
		     "bridge = \"ovs0\"; bridge_type = \"ovs\"; address = \"10.1.2.3\";\n"
		     "ovsdb = \"unix:/a/db.sock\"; control = \"/a/control\"; runtime_dir = \"/a/run\";\n"
		     "bpffs = \"/a/bpf\"; object = \"/a/x.o\"; hook = \"generic\"; admin_group = \"adm\";\n"
		     "log_level = \"debug\";\n"
		     "limits = { jobs = 3; memory_job = 5000000000L; memory = 6000000000L; };\n"
		     "jobs = ( { name = \"a\"; elements = 7; workers = 64; }, { name = \"b\";\n"
		     "  id = 255; elements = 9L; workers = 1; payload = 64; pool = 2; ring = 4;\n"
		     "  policy = \"bsp\"; token = \"01234567890123456789012345678901\";\n"
		     "  exponent = -3; heartbeat_ms = 10; dead_ms = 65535; } );\n",
		     text, sizeof(text)),
		0);
	assert_string_equal(cfg.bridge, "ovs0");
	assert_int_equal(cfg.bridge_type, BRIDGE_OVS);
	assert_int_equal(cfg.address.s_addr, htonl(0x0a010203));
	assert_string_equal(cfg.ovsdb, "/a/db.sock");
	assert_string_equal(cfg.control, "/a/control");
	assert_string_equal(cfg.runtime_dir, "/a/run");
	assert_string_equal(cfg.bpffs, "/a/bpf");
	assert_string_equal(cfg.object, "/a/x.o");
	assert_int_equal(cfg.hook, SAINA_PORT_HOOK_GENERIC);
	assert_string_equal(cfg.admin_group, "adm");
	assert_int_equal(cfg.log_level, LOG_L_DEBUG);
	assert_int_equal(cfg.limits.jobs, 3);
	assert_int_equal(cfg.limits.memory_job, 5000000000ull);
	assert_int_equal(cfg.limits.memory, 6000000000ull);
	assert_int_equal(cfg.n_jobs, 2);
	assert_int_equal(cfg.jobs[0].req.workers, 64);
	assert_false(SAINA_HAS(&cfg.jobs[0].req, SAINA_A_JOB_ID));
	r = &cfg.jobs[1].req;
	assert_string_equal(r->name, "b");
	assert_int_equal(r->id, 255);
	assert_int_equal(r->elements, 9);
	assert_int_equal(r->payload, 64);
	assert_int_equal(r->pool, 2);
	assert_int_equal(r->ring, 4);
	assert_int_equal(r->policy.mode, SAINA_POLICY_BSP);
	assert_memory_equal(r->token, "01234567890123456789012345678901", 32);
	assert_int_equal(r->exponent, -3);
	assert_int_equal(r->heartbeat_ms, 10);
	assert_int_equal(r->dead_ms, 65535);
	assert_true(SAINA_HAS(r, SAINA_A_JOB_EXPONENT));
	config_free(&cfg);
}

static void nothing(void **state)
{
	struct config cfg, defaults;
	char text[320];

	config_defaults(&defaults);
	assert_int_equal(load(&cfg, "", text, sizeof(text)), 0);
	assert_memory_equal(&cfg, &defaults, sizeof(cfg));
	assert_int_equal(config_load(&cfg, "/nonexistent/sainad.conf", false, text, sizeof(text)),
			 0);
	assert_true(config_load(&cfg, "/nonexistent/sainad.conf", true, text, sizeof(text)) < 0);
	assert_non_null(strstr(text, "/nonexistent/sainad.conf"));
}

static void refusals(void **state)
{
	static const struct {
		const char *content;
		int line;
		const char *word, *allowed;
	} bad[] = {
		{ "\nbrige = \"br0\";", 2, "'brige'", "bridge_type" },
		{ "bridge = 5;", 1, "bridge", "string" },
		{ "bridge = \"\";", 1, "bridge", "empty" },
		{ "bridge = \"a-name-too-long-for-a-link\";", 1, "bridge", "15" },
		{ "\n\nbridge_type = \"linuxx\";", 3, "linuxx", "\"auto\", \"ovs\", \"linux\"" },
		{ "address = \"10.0.0\";", 1, "10.0.0", "192.0.2.1" },
		{ "address = \"239.1.1.1\";", 1, "239.1.1.1", "IPv4" },
		{ "control = \"x/y\";", 1, "x/y", "absolute" },
		{ "hook = \"offload\";", 1, "offload", "\"auto\", \"xdp\", \"generic\", \"tc\"" },
		{ "log_level = \"loud\";", 1, "loud", "\"warn\"" },
		{ "limits = 5;", 1, "limits", "group" },
		{ "limits = { job = 5; };", 1, "'job'", "memory_job" },
		{ "limits = {\n jobs = -1; };", 2, "-1", "0.." },
		{ "limits = { memory = 1.5; };", 1, "memory", "integer" },
		{ "jobs = { };", 1, "jobs", "list" },
		{ "jobs = ( 5 );", 1, "job", "group" },
		{ "jobs = (\n{ name = \"a\";\n worker = 3; } );", 3, "'worker'", "workers" },
		{ "jobs = ( { workers = 65; } );", 1, "65", "0..64" },
		{ "jobs = ( { id = 256; } );", 1, "256", "0..255" },
		{ "jobs = ( { exponent = 2147483648L; } );", 1, "2147483648", "-2147483648..2147483647" },
		{ "jobs = ( { elements = \"9\"; } );", 1, "elements", "integer" },
		{ "jobs = ( { elements_auto = 2; } );", 1, "elements_auto", "0..1" },
		{ "jobs = ( { policy = 9; } );", 1, "policy", "string" },
		{ "jobs = ( { token = \"012345678901234567890123456789012\"; } );", 1, "token",
		  "32" },
		{ "jobs = ( { name = \"01234567890123456789012345678901\"; } );", 1, "name", "31" },
		{ "bridge = \"br0\"\nbridge = \"br1\";", 2, "", "" }, /* twice */
		{ "bridge == 3;", 1, "", "" },
	};
	char text[320], where[64];
	struct config cfg;
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (load(&cfg, bad[i].content, text, sizeof(text)) >= 0)
			fail_msg("accepted: %s", bad[i].content);
		snprintf(where, sizeof(where), "%s:%d: ", path, bad[i].line);
		if (strncmp(text, where, strlen(where)) || !strstr(text, bad[i].word) ||
		    !strstr(text, bad[i].allowed))
			fail_msg("%s: '%s' lacks '%s', '%s' or '%s'", bad[i].content, text, where,
				 bad[i].word, bad[i].allowed);
		config_free(&cfg);
	}
}

static void command_line(void **state)
{
	struct config cfg;
	char text[320];

	config_defaults(&cfg);
	assert_int_equal(config_set(&cfg, "bridge", "br7", text, sizeof(text)), 0);
	assert_string_equal(cfg.bridge, "br7");
	assert_true(config_set(&cfg, "hook", "none", text, sizeof(text)) < 0);
	assert_non_null(strstr(text, "\"none\""));
	assert_true(config_set(&cfg, "limits", "1", text, sizeof(text)) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		statement("config: every key of the file is read", everything),
		statement("config: an empty file gives the defaults, a missing one that was named is refused", nothing),
		statement("config: a wrong entry is refused with file, line, word and what is allowed", refusals),
		statement("config: options of the command line are checked like entries of the file", command_line),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_file, remove_file) ? 1 : 0;
}
