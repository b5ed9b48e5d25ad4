/* SPDX-License-Identifier: GPL-2.0 */
/* Interfaces that go take the workers bound to them along. */
#ifndef _SAINA_DEV_H
#define _SAINA_DEV_H

int saina_dev_init(void);
void saina_dev_uninit(void);

#endif /* _SAINA_DEV_H */
