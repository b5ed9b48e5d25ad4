/* SPDX-License-Identifier: GPL-2.0 */
/* Changes of the configuration, to those who subscribed to group "config". */
#ifndef _SAINA_NOTIFY_H
#define _SAINA_NOTIFY_H

#include "pernet/pernet.h"

void saina_notify(struct saina_net *sn, int cmd, const struct saina_job *job, int worker);

#endif /* _SAINA_NOTIFY_H */
