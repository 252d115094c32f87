// SPDX-License-Identifier: GPL-2.0-only
/* /dev/profil: device.h documents its calls. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "kmod/clock.h"
#include "kmod/device.h"
#include "kmod/forks.h"
#include "kmod/profiled_mm.h"
#include "kmod/region_table.h"
#include "kmod/settings.h"

/* What a caller must know of each struct, in bytes: the first version. */
#define SET_SIZE   sizeof(struct profil_device_set)
#define QUERY_SIZE sizeof(struct profil_device_query)

/*
 * Copies a struct that begins with its size from user space. The module knows `known` bytes of it;
 * the rest must be 0. Sets *size to the caller's size. Returns 0 or a negative errno.
 */
static int copy_sized(void *to, u32 known, const void __user *from, u32 *size)
{
	if (get_user(*size, (const u32 __user *)from))
		return -EFAULT;
	if (*size < known)
		return -EINVAL;
	if (*size > PAGE_SIZE)
		return -E2BIG;
	return copy_struct_from_user(to, known, from, *size);
}

/* Whether the current process is a child of vfork(2) that uses its parent's memory still. */
static bool uses_parents_memory(void)
{
	bool shared;

	if (!current->vfork_done)
		return false;
	rcu_read_lock();
	shared = rcu_dereference(current->real_parent)->mm == current->mm;
	rcu_read_unlock();
	return shared;
}

static long ioctl_set(const void __user *argument)
{
	struct profil_device_set request;
	struct region_table *table;
	u32 size;
	int err = copy_sized(&request, SET_SIZE, argument, &size);

	if (err)
		return err;
	if (uses_parents_memory())
		return -EPERM;
	table = region_table_read(&request);
	if (IS_ERR(table))
		return PTR_ERR(table);
	clock_add(&table->rate);
	err = profiled_mm_start(table);
	if (!err)
		clock_start();
	return err;
}

static long ioctl_off(void)
{
	struct profiled_mm *profiled;

	if (uses_parents_memory())
		return -EPERM;
	profiled = profiled_mm_find(current->mm);
	if (!profiled)
		return 0;
	profiled_mm_stop(profiled);
	profiled_mm_put(profiled);
	return 0;
}

/*
 * Fills in what the reply says of the current process, except for the regions. Returns what is on,
 * with a reference, or NULL if nothing is.
 */
static struct profiled_mm *query_process(struct profil_device_query *reply)
{
	struct profiled_mm *profiled;
	struct counts counts;
	bool on;

	for (;;) {
		profiled = profiled_mm_find(current->mm);
		if (!profiled)
			return NULL;
		raw_spin_lock_irq(&profiled->lock);
		on = profiled->on;
		counts = profiled->counts;
		raw_spin_unlock_irq(&profiled->lock);
		if (on)
			break;
		profiled_mm_put(profiled); /* it was stopped or replaced meanwhile */
	}
	reply->flags = PROFIL_ON | (profiled->table->wide ? PROFIL_WIDE : 0);
	reply->hz = profiled->table->hz;
	reply->region_count = profiled->table->count;
	reply->ticks = counts.counted + counts.out_of_range + counts.lost;
	reply->counted = counts.counted;
	reply->out_of_range = counts.out_of_range;
	reply->lost = counts.lost;
	reply->kernel = counts.kernel;
	return profiled;
}

static long ioctl_query(void __user *argument)
{
	struct profil_device_query request, reply = {
		.version = PROFIL_DEVICE_VERSION,
		.max_hz = settings_max_hz(),
		.max_regions = settings_max_regions(),
	};
	struct profiled_mm *profiled;
	unsigned long address;
	u32 count;
	int err = copy_sized(&request, QUERY_SIZE, argument, &reply.size);

	if (err)
		return err;
	reply.regions = request.regions;
	profiled = query_process(&reply);
	if (profiled) { /* copies as many regions as have room */
		address = request.regions;
		count = min(request.region_count, profiled->table->count);
		if (address != request.regions ||
		    (address &&
		     copy_to_user((void __user *)address, profiled->table->regions,
				  array_size(count, sizeof(struct profil_device_region)))))
			err = -EFAULT;
		profiled_mm_put(profiled);
	}
	if (!err && copy_to_user(argument, &reply, sizeof(reply)))
		err = -EFAULT;
	return err;
}

static long profil_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	switch (command) {
	case PROFIL_IOC_SET:
		return ioctl_set((const void __user *)argument);
	case PROFIL_IOC_OFF:
		return ioctl_off();
	case PROFIL_IOC_QUERY:
		return ioctl_query((void __user *)argument);
	}
	return -ENOTTY;
}

/* 32-bit programs have the same structures: compat_ptr_ioctl() converts their address. */
static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = profil_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "profil",
	.mode = 0666,
	.fops = &operations,
};

static int __init profil_init(void)
{
	int err = profiled_mm_init();

	if (err)
		return err;
	err = clock_init();
	if (err)
		goto out_profiled_mm;
	err = forks_init();
	if (err)
		goto out_clock;
	err = misc_register(&device);
	if (!err)
		return 0;
	forks_exit();
out_clock:
	clock_exit();
out_profiled_mm:
	profiled_mm_exit();
	return err;
}

static void __exit profil_exit(void)
{
	misc_deregister(&device);
	forks_exit();
	clock_exit();
	profiled_mm_exit();
	synchronize_rcu_tasks(); /* until tasks have left module_put() */
}

module_init(profil_init);
module_exit(profil_exit);
MODULE_DESCRIPTION("profil(2): /dev/profil");
MODULE_VERSION(PROFIL_VERSION);
MODULE_LICENSE("GPL");
