// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The configuration file (libconfig).  Every key has a row in one of the tables below.
 * An unknown key is refused with its line and the list of known keys.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <libconfig.h>

#include "agent/config.h"
#include "ctl/policy_text.h"
#include "ctl/tree_text.h"
#include "agent/log.h"

/* Where the message goes; @file, @line: what it is about, NULL: the command line. */
struct config_error {
	const char *file;
	int line;
	char *text;
	size_t size;
};

static int set_error(struct config_error *c, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int set_error(struct config_error *c, int line, const char *fmt, ...)
{
	va_list ap;
	int n = 0;

	if (c->file)
		n = line ? snprintf(c->text, c->size, "%s:%d: ", c->file, line)
			 : snprintf(c->text, c->size, "%s: ", c->file);
	if (n < 0 || (size_t)n >= c->size)
		return -EINVAL;
	va_start(ap, fmt);
	vsnprintf(c->text + n, c->size - n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

void config_defaults(struct config *cfg)
{
	*cfg = (struct config){
		.bridge = "br0",
		.bridge_type = BRIDGE_AUTO,
		.ovsdb = "/run/openvswitch/db.sock",
		.control = "/run/saina/control",
		.runtime_dir = "/run/saina",
		.bpffs = "/sys/fs/bpf/saina",
		.limits = { .jobs = SAINA_JOBS_MAX,
			    .memory_job = 1ull << 30,
			    .memory = 4ull << 30 },
		.log_level = LOG_L_INFO,
		.ready_fd = -1,
	};
}

void config_free(struct config *cfg)
{
	free(cfg->jobs);
	cfg->jobs = NULL;
	cfg->n_jobs = 0;
}

/* Scalar keys, all strings */

/**
 * struct config_key
 * @set: checks the value and stores it in the member of struct config
 * @offset: of that member
 * @size: of its text, or of the part of it that the value may fill
 * @words: that are allowed; the index of one is stored
 */
struct config_key {
	const char *name;
	int (*set)(struct config_error *c, const struct config_key *k, const char *v, void *to);
	size_t offset, size;
	const char *const *words;
};

static int set_text(struct config_error *c, const struct config_key *k, const char *v, void *to)
{
	if (!v[0])
		return set_error(c, c->line, "%s: must not be empty", k->name);
	if (strlen(v) >= k->size)
		return set_error(c, c->line, "%s: '%.32s...' is longer than the %zu characters allowed",
				k->name, v, k->size - 1);
	snprintf(to, k->size, "%s", v);
	return 0;
}

static int set_path(struct config_error *c, const struct config_key *k, const char *v, void *to)
{
	if (v[0] != '/')
		return set_error(c, c->line, "%s: '%.64s' is not an absolute path", k->name, v);
	return set_text(c, k, v, to);
}

static int set_word(struct config_error *c, const struct config_key *k, const char *v, void *to)
{
	char allowed[128] = "";
	int i;

	for (i = 0; k->words[i]; i++) {
		if (!strcmp(k->words[i], v)) {
			*(int *)to = i;
			return 0;
		}
		snprintf(allowed + strlen(allowed), sizeof(allowed) - strlen(allowed), "%s\"%s\"",
			 i ? ", " : "", k->words[i]);
	}
	return set_error(c, c->line, "%s: \"%.32s\" is unknown; allowed are %s", k->name, v, allowed);
}

static int set_address(struct config_error *c, const struct config_key *k, const char *v, void *to)
{
	struct in_addr addr;

	if (inet_pton(AF_INET, v, &addr) != 1 || !addr.s_addr || IN_MULTICAST(ntohl(addr.s_addr)))
		return set_error(c, c->line,
				 "address: '%.32s' is not an IPv4 address of a host, such as 192.0.2.1", v);
	memcpy(to, &addr, sizeof(addr));
	return 0;
}

static int set_ovsdb(struct config_error *c, const struct config_key *k, const char *v, void *to)
{
	return set_path(c, k, v + (strncmp(v, "unix:", 5) ? 0 : 5), to);
}

static int set_object(struct config_error *c, const struct config_key *k, const char *v, void *to)
{
	char path[PATH_MAX];

	/* absolute, because going to the background changes the directory */
	return set_text(c, k, v[0] && realpath(v, path) ? path : v, to);
}

int config_host_port(const char *text, char *host, size_t size, unsigned int *port)
{
	const char *colon = strrchr(text, ':');
	unsigned char addr[sizeof(struct in6_addr)];
	int six = text[0] == '[';
	size_t len;
	char *end;

	if (!colon || (six && (colon < text + 2 || colon[-1] != ']')))
		return -EINVAL;
	len = colon - text - 2 * six;
	if (len >= size)
		return -EINVAL;
	memcpy(host, text + six, len);
	host[len] = 0;
	*port = strtoul(colon + 1, &end, 10);
	if (colon[1] < '0' || colon[1] > '9' || *end || !*port || *port > 65535 ||
	    inet_pton(six ? AF_INET6 : AF_INET, host, addr) != 1)
		return -EINVAL;
	return 0;
}

static int set_metrics(struct config_error *c, const struct config_key *k, const char *v, void *to)
{
	char host[64];
	unsigned int port;

	if (!strcmp(v, "off")) {
		*(char *)to = 0;
		return 0;
	}
	if (strncmp(v, "unix:/", 6) && config_host_port(v, host, sizeof(host), &port))
		return set_error(
			c, c->line,
			"metrics: '%.64s' is not ADDRESS:PORT (such as 127.0.0.1:9496 or [::1]:9496), unix:/PATH or off",
			v);
	return set_text(c, k, v, to);
}

static int set_log_level(struct config_error *c, const struct config_key *k, const char *v, void *to)
{
	int level = log_level_parse(v);

	if (level < 0)
		return set_error(
			c, c->line,
			"log_level: \"%.32s\" is unknown; allowed are \"error\", \"warn\", \"info\", \"debug\"",
			v);
	*(int *)to = level;
	return 0;
}

/* @spare: bytes of the text that the value must leave free */
#define KEY(member, setter, spare) \
	{ #member, setter, offsetof(struct config, member), \
	  sizeof(((struct config *)0)->member) - (spare), NULL }
#define WORD(key, member, ...) \
	{ key, set_word, offsetof(struct config, member), 0, (const char *const[]){ __VA_ARGS__, NULL } }

static const struct config_key config_keys[] = {
	KEY(bridge, set_text, 0),
	WORD("bridge_type", bridge_type, "auto", "ovs", "linux"),
	KEY(address, set_address, 0),
	KEY(ovsdb, set_ovsdb, 0),
	KEY(control, set_path, 0),
	KEY(runtime_dir, set_path, 32),
	KEY(bpffs, set_path, 32),
	KEY(object, set_object, 0),
	{ "hook", set_word, offsetof(struct config, hook), 0, saina_port_hook_names },
	KEY(admin_group, set_text, 0),
	KEY(log_level, set_log_level, 0),
	KEY(metrics, set_metrics, 0),
	WORD("control_plane", backend, "auto", "kernel", "agent"),
};

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static int key_set(struct config_error *c, const struct config_key *k, const char *value,
		   struct config *cfg)
{
	return k->set(c, k, value, (char *)cfg + k->offset);
}

int config_set(struct config *cfg, const char *key, const char *value, char *text, size_t size)
{
	struct config_error c = { .text = text, .size = size };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(config_keys); i++)
		if (!strcmp(config_keys[i].name, key))
			return key_set(&c, &config_keys[i], value, cfg);
	return set_error(&c, 0, "%s: unknown", key);
}

/* Groups of numbers and strings: limits and jobs */

enum field_type {
	FIELD_U8, FIELD_U16, FIELD_U32, FIELD_U64, FIELD_S32,
	FIELD_STRING, FIELD_POLICY, FIELD_ENDPOINT, FIELD_WEIGHTS /* strings */
};

struct field {
	const char *name;
	enum field_type type;
	size_t offset;
	size_t size; /* string: longest; number: largest, 0: the largest of the type */
	int attr;    /* bit of ->has */
	int inner;   /* of the job's uplink, too: bit of its ->has; 0: none */
};

/* clang-format off */
#define LIMIT(n, t, a) \
	{ #n, t, offsetof(struct saina_limits, n), 0, SAINA_A_LIMITS_##a, 0 }
#define JOB_MAX(n, key, t, max, a) \
	{ key, t, offsetof(struct saina_job_attrs, n), max, SAINA_A_JOB_##a, 0 }
#define JOB(n, key, t, a) \
	JOB_MAX(n, key, t, 0, a)
#define JOB_TEXT(n, size, a) \
	{ #n, FIELD_STRING, offsetof(struct saina_job_attrs, n), size, SAINA_A_JOB_##a, 0 }
#define UPLINK(key, n, t, size, a) \
	{ key, t, offsetof(struct saina_job_attrs, uplink.n), size, SAINA_A_JOB_UPLINK, SAINA_A_UPLINK_##a }
/* clang-format on */

static const struct field limit_fields[] = {
	LIMIT(jobs, FIELD_U32, JOBS),
	LIMIT(memory_job, FIELD_U64, MEMORY_JOB),
	LIMIT(memory, FIELD_U64, MEMORY),
};

static const struct field job_fields[] = {
	JOB_TEXT(name, SAINA_NAME_LEN - 1, NAME),
	JOB_MAX(id, "id", FIELD_U16, SAINA_JOBS_MAX - 1, ID),
	JOB(elements, "elements", FIELD_U64, ELEMENTS),
	JOB_MAX(elements_auto, "elements_auto", FIELD_U8, 1, ELEMENTS_AUTO),
	JOB_MAX(workers, "workers", FIELD_U8, SAINA_WORKERS_MAX, WORKERS),
	JOB(payload, "payload", FIELD_U16, PAYLOAD),
	JOB(pool, "pool", FIELD_U32, POOL),
	JOB(ring, "ring", FIELD_U32, RING),
	JOB(policy, "policy", FIELD_POLICY, POLICY),
	JOB_TEXT(token, SAINA_TOKEN_LEN, TOKEN),
	JOB(exponent, "exponent", FIELD_S32, EXPONENT),
	JOB(heartbeat_ms, "heartbeat_ms", FIELD_U16, HEARTBEAT_MS),
	JOB(dead_ms, "dead_ms", FIELD_U16, DEAD_MS),
	JOB(weights, "weights", FIELD_WEIGHTS, WEIGHTS),
	JOB(uplink, "uplink", FIELD_ENDPOINT, UPLINK),
	UPLINK("parent_job", job, FIELD_STRING, SAINA_NAME_LEN - 1, JOB),
	UPLINK("parent_worker", worker, FIELD_U8, SAINA_WORKERS_MAX - 1, WORKER),
	UPLINK("parent_token_file", token_file, FIELD_STRING, SAINA_TOKEN_FILE_LEN - 1, TOKEN_FILE),
};

static const struct {
	long long min, max;
} field_range[] = {
	[FIELD_U8] = { 0, 255 },	   [FIELD_U16] = { 0, 65535 },
	[FIELD_U32] = { 0, 4294967295ll }, [FIELD_U64] = { 0, LLONG_MAX },
	[FIELD_S32] = { INT_MIN, INT_MAX },
};

static int text_set(struct config_error *c, const config_setting_t *s, const struct field *f,
		    void *to)
{
	const char *text = config_setting_get_string(s);
	int line = config_setting_source_line(s);
	struct saina_policy policy;
	struct saina_core_err err;

	if (!text)
		return set_error(c, line, "%s: must be a string, in quotes", f->name);
	switch (f->type) {
	case FIELD_POLICY:
		if (saina_policy_parse(text, 0, &policy, &err))
			return set_error(c, line, "%s", err.text);
		saina_policy_to_attrs(&policy, to);
		return 0;
	case FIELD_ENDPOINT:
		if (saina_endpoint_parse(text, to))
			return 0;
		return set_error(c, line, "%s: '%.32s' is not " SAINA_ENDPOINT_FORMS, f->name,
				 text);
	case FIELD_WEIGHTS:
		if (saina_weights_parse(text, to))
			return 0;
		return set_error(c, line, "%s: '%.32s' is not " SAINA_WEIGHTS_FORMS, f->name,
				 text);
	default:
		if (strlen(text) > f->size)
			return set_error(c, line, "%s: is longer than the %zu characters allowed",
					 f->name, f->size);
		memcpy(to, text, strlen(text));
		return 0;
	}
}

static int field_set(struct config_error *c, const config_setting_t *s, const struct field *f,
		     void *to)
{
	int line = config_setting_source_line(s);
	long long n, max;

	to = (char *)to + f->offset;
	if (f->type >= FIELD_STRING)
		return text_set(c, s, f, to);
	if (config_setting_type(s) != CONFIG_TYPE_INT &&
	    config_setting_type(s) != CONFIG_TYPE_INT64)
		return set_error(c, line, "%s: must be an integer", f->name);
	n = config_setting_get_int64(s);
	max = f->size ? (long long)f->size : field_range[f->type].max;
	if (n < field_range[f->type].min || n > max)
		return set_error(c, line, "%s: %lld: must be %lld..%lld%s", f->name, n,
				 field_range[f->type].min, max,
				 n < 0 && max > INT_MAX
					 ? " (a number above 2147483647 needs an L at its end)"
					 : "");
	switch (f->type) {
	case FIELD_U8:
		*(__u8 *)to = n;
		break;
	case FIELD_S32:
		*(__s32 *)to = n;
		break;
	case FIELD_U16:
		*(__u16 *)to = n;
		break;
	case FIELD_U32:
		*(__u32 *)to = n;
		break;
	default:
		*(__u64 *)to = n;
	}
	return 0;
}

/* @has: gets the bits of the fields that the file sets. */
static int group_read(struct config_error *c, const config_setting_t *group, const char *what,
		      const struct field *fields, size_t n, void *to, __u64 *has)
{
	char allowed[320] = "";
	int i, ret;
	size_t f;

	if (!config_setting_is_group(group))
		return set_error(c, config_setting_source_line(group),
				 "%s: must be a group, in braces", what);
	for (i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *s = config_setting_get_elem(group, i);

		for (f = 0; f < n && strcmp(fields[f].name, config_setting_name(s)); f++)
			;
		if (f == n) {
			for (f = 0; f < n; f++)
				snprintf(allowed + strlen(allowed),
					 sizeof(allowed) - strlen(allowed), "%s%s", f ? ", " : "",
					 fields[f].name);
			return set_error(c, config_setting_source_line(s),
					 "%s: '%.32s' is unknown; allowed are %s", what,
					 config_setting_name(s), allowed);
		}
		ret = field_set(c, s, &fields[f], to);
		if (ret)
			return ret;
		*has |= 1ull << fields[f].attr;
		if (fields[f].inner)
			SAINA_SET(&((struct saina_job_attrs *)to)->uplink, fields[f].inner);
	}
	return 0;
}

static int jobs_read(struct config_error *c, const config_setting_t *list, struct config *cfg)
{
	int i, ret, n = config_setting_length(list);

	if (!config_setting_is_list(list))
		return set_error(c, config_setting_source_line(list),
				 "jobs: must be a list of groups: ( { name = ...; }, ... )");
	cfg->jobs = calloc(n ? n : 1, sizeof(*cfg->jobs));
	if (!cfg->jobs) {
		set_error(c, config_setting_source_line(list), "jobs: out of memory");
		return -ENOMEM;
	}
	for (i = 0; i < n; i++) {
		const config_setting_t *s = config_setting_get_elem(list, i);
		struct config_job *j = &cfg->jobs[cfg->n_jobs++];

		j->line = config_setting_source_line(s);
		ret = group_read(c, s, "job", job_fields, ARRAY_SIZE(job_fields), &j->req,
				 &j->req.has);
		if (ret)
			return ret;
	}
	return 0;
}

static int key_read(struct config_error *c, const config_setting_t *s, struct config *cfg)
{
	const char *name = config_setting_name(s), *value;
	int line = config_setting_source_line(s);
	char allowed[256] = "";
	size_t i;

	if (!strcmp(name, "limits")) {
		cfg->limits_line = line;
		return group_read(c, s, "limits", limit_fields, ARRAY_SIZE(limit_fields),
				  &cfg->limits, &cfg->limits_has);
	}
	if (!strcmp(name, "jobs"))
		return jobs_read(c, s, cfg);
	for (i = 0; i < ARRAY_SIZE(config_keys); i++) {
		if (strcmp(config_keys[i].name, name)) {
			snprintf(allowed + strlen(allowed), sizeof(allowed) - strlen(allowed),
				 "%s, ", config_keys[i].name);
			continue;
		}
		value = config_setting_get_string(s);
		if (!value)
			return set_error(c, line, "%s: must be a string, in quotes", name);
		c->line = line;
		return key_set(c, &config_keys[i], value, cfg);
	}
	return set_error(c, line, "'%.32s' is unknown; allowed are %slimits, jobs", name, allowed);
}

int config_load(struct config *cfg, const char *path, bool must, char *text, size_t size)
{
	struct config_error c = { .file = path, .text = text, .size = size };
	const config_setting_t *root;
	config_t file;
	int i, ret = 0;

	if (access(path, R_OK)) {
		if (errno == ENOENT && !must)
			return 0;
		return set_error(&c, 0, "%s", strerror(errno));
	}
	config_init(&file);
	if (config_read_file(&file, path) != CONFIG_TRUE) {
		ret = set_error(&c, config_error_line(&file), "%s", config_error_text(&file));
		goto out;
	}
	root = config_root_setting(&file);
	for (i = 0; !ret && i < config_setting_length(root); i++)
		ret = key_read(&c, config_setting_get_elem(root, i), cfg);
out:
	config_destroy(&file);
	return ret;
}
