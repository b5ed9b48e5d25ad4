/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A cmocka test whose TAP point is a statement instead of the function's name. */
#ifndef SAINA_STATEMENT_H
#define SAINA_STATEMENT_H

#define statement(what, fn)	{ .name = what, .test_func = fn }

#endif /* SAINA_STATEMENT_H */
