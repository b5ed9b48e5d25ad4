// SPDX-License-Identifier: GPL-2.0-or-later
/* Log, errors and names: used by all files. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include "dp/priv.h"

void dp_log(const struct saina_dp *dp, int level, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	if (!dp->opts.log)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	dp->opts.log(dp->opts.log_arg, level, line);
}

int dp_fail(struct saina_dp *dp, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(dp->error, sizeof(dp->error), fmt, ap);
	va_end(ap);
	if (err == -EMFILE)
		snprintf(
			dp->error, sizeof(dp->error),
			"no descriptor is left for maps: raise LimitNOFILE= of sainad's unit (or `ulimit -n`) and restart sainad");
	return err;
}

/* The sentence of the last failure. */
const char *saina_dp_error(const struct saina_dp *dp)
{
	return dp ? dp->error : "out of memory";
}

const char *dp_pin_path(const struct saina_dp *dp, char *path, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", dp->pin_dir, name);
	return path;
}

const char *dp_ifname(int ifindex, char *name)
{
	if (!if_indextoname(ifindex, name))
		snprintf(name, IF_NAMESIZE, "#%d", ifindex);
	return name;
}
