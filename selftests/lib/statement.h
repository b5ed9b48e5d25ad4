/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmocka, with what it wants before it; a test whose TAP point is a statement instead of the function's name. */
#ifndef SAINA_STATEMENT_H
#define SAINA_STATEMENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define statement(what, fn)	{ .name = what, .test_func = fn }
/* The same with functions to run before and after it, or NULL. */
#define statement_with(what, fn, before, after) \
	{ .name = what, .test_func = fn, .setup_func = before, .teardown_func = after }

#endif /* SAINA_STATEMENT_H */
