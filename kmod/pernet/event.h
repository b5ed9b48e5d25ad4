/* SPDX-License-Identifier: GPL-2.0 */
/* Events: to the multicast group, from the core and from the data path. */
#ifndef _SAINA_EVENT_H
#define _SAINA_EVENT_H

#include <linux/gfp.h>

#include "pernet/pernet.h"

/* To the subscribers, at once and always; @name of the job, or NULL. */
void saina_event_send(struct saina_net *sn, const struct saina_event *ev, const char *name,
		      gfp_t gfp);
/* Of the data path, any context: not more than the gate lets through.
 * Return: 0, -ENOENT (no such job, or no such generation of it), -EAGAIN (too many)
 */
int saina_event_data_path(struct saina_net *sn, const struct saina_event *ev);

#endif /* _SAINA_EVENT_H */
