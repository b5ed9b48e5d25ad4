// SPDX-License-Identifier: GPL-2.0
/*
 * Faults on demand: insmod faults.ko fault=NAME commits that one, so that
 * make check-debug can show that it would have noticed it in saina.ko.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

static char *fault = "none";
module_param(fault, charp, 0);
MODULE_PARM_DESC(fault, "which one");

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static DEFINE_SPINLOCK(lock);
static int __rcu *shared;
/* volatile, so that the compiler neither sees through it nor drops an access */
static char *volatile memory;

static void none(void)
{
}

static void use_after_free(void)
{
	memory = kmalloc(40, GFP_KERNEL);
	kfree(memory);
	if (memory)
		WRITE_ONCE(memory[8], 1);
}

static void out_of_bounds(void)
{
	memory = kmalloc(40, GFP_KERNEL);
	if (memory)
		WRITE_ONCE(memory[40], 1);
	kfree(memory);
}

static void sleep_in_atomic(void)
{
	spin_lock(&lock);
	might_sleep();
	spin_unlock(&lock);
}

static void inverse_locks(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);

	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static void no_rcu_lock(void)
{
	if (rcu_dereference(shared))
		pr_info("faults: there is nothing\n");
}

static void no_timer(struct timer_list *timer)
{
}

static void free_active_timer(void)
{
	struct timer_list *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, no_timer, 0);
	mod_timer(timer, jiffies + 3600 * HZ);
	kfree(timer);
}

static void leak(void)
{
	int i;

	/* several: the address of one may be left on some stack */
	for (i = 0; i < 20; i++)
		memory = kmalloc(40 + i, GFP_KERNEL);
	memory = NULL;
}

static const struct {
	const char *name;
	void (*commit)(void);
} faults[] = {
	{ "none", none },
	{ "use-after-free", use_after_free },
	{ "out-of-bounds", out_of_bounds },
	{ "sleep-in-atomic", sleep_in_atomic },
	{ "inverse-locks", inverse_locks },
	{ "no-rcu-lock", no_rcu_lock },
	{ "free-active-timer", free_active_timer },
	{ "leak", leak },
};

static int __init faults_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(faults); i++)
		if (!strcmp(faults[i].name, fault)) {
			faults[i].commit();
			return 0;
		}
	return -EINVAL;
}

static void __exit faults_exit(void)
{
}

module_init(faults_init);
module_exit(faults_exit);
MODULE_DESCRIPTION("Commits faults, to test what should notice them");
MODULE_LICENSE("GPL");
