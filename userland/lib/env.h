/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Options from the environment. */
#ifndef SAINA_ENV_H
#define SAINA_ENV_H

/* The value of a variable; NULL if it is empty, or not to be trusted. */
const char *saina_env(const char *name);

#endif /* SAINA_ENV_H */
