// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/tree_text.h"

/* A number without sign in 1..@max at *@text, which moves behind it; 0: there is none. */
static unsigned long take_number(const char **text, unsigned long max)
{
	unsigned long n;
	char *end;

	if (**text < '0' || **text > '9')
		return 0;
	n = strtoul(*text, &end, 10);
	*text = end;
	return n <= max ? n : 0;
}

bool saina_endpoint_parse(const char *text, struct saina_uplink_attrs *a)
{
	size_t len = strcspn(text, ":");
	char host[INET_ADDRSTRLEN];
	const char *port = text + len;
	unsigned long number = 0;
	struct in_addr addr;

	if (len >= sizeof(host))
		return false;
	memcpy(host, text, len);
	host[len] = 0;
	if (*port) {
		port++;
		number = take_number(&port, 65535);
		if (!number || *port)
			return false;
	}
	if (inet_pton(AF_INET, host, &addr) != 1)
		return false;
	SAINA_PUT(a, SAINA_A_UPLINK_ADDRESS, address, addr.s_addr);
	if (number)
		SAINA_PUT(a, SAINA_A_UPLINK_PORT, port, htons((uint16_t)number));
	return true;
}

bool saina_weights_parse(const char *text, __u16 *weights)
{
	int n = 0;

	memset(weights, 0, SAINA_WORKERS_MAX * sizeof(*weights));
	for (;; text++) {
		if (n == SAINA_WORKERS_MAX)
			return false;
		weights[n] = take_number(&text, 65535);
		if (!weights[n++])
			return false;
		if (*text != ',')
			return !*text;
	}
}

void saina_weights_format(const __u16 *weights, char *text, size_t size)
{
	size_t n = 0;

	text[0] = 0;
	for (int w = 0; w < SAINA_WORKERS_MAX && weights[w] && n < size; w++)
		n += snprintf(text + n, size - n, "%s%u", w ? "," : "", weights[w]);
}
