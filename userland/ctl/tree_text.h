/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The place of a job in a tree as text: of the command line and of the configuration file. */
#ifndef SAINA_CTL_TREE_TEXT_H
#define SAINA_CTL_TREE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include "core/attrs.h"

#define SAINA_ENDPOINT_FORMS "an IPv4 address, such as 192.0.2.7, or 192.0.2.7:48865 with a port"
#define SAINA_WEIGHTS_FORMS  "a number from 1 to 65535 for each worker, such as 8,8,1"

/**
 * saina_endpoint_parse() - the address of a parent's agent
 * @text: ADDRESS[:PORT]
 * @a: out: address, port and their bits; without a port only the address
 *
 * Return: false if @text is not of this form
 */
bool saina_endpoint_parse(const char *text, struct saina_uplink_attrs *a);

/**
 * saina_weights_parse() - how many workers each worker of a job stands for
 * @text: numbers with commas between them
 * @weights: out: SAINA_WORKERS_MAX numbers, 0 behind the last
 *
 * Return: false if @text is not of this form
 */
bool saina_weights_parse(const char *text, __u16 *weights);

/* The inverse: "8,8,1". */
void saina_weights_format(const __u16 *weights, char *text, size_t size);

#endif /* SAINA_CTL_TREE_TEXT_H */
