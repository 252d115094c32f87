// SPDX-License-Identifier: GPL-2.0-only
/* /dev/profil and its calls: device.h. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "kmod/counted_memory.h"
#include "kmod/settings.h"

/* The first version of each struct. */
#define SET_SIZE   sizeof(struct profil_device_set)
#define QUERY_SIZE sizeof(struct profil_device_query)

static unsigned int max_hz = 10000;
module_param(max_hz, uint, 0644);
MODULE_PARM_DESC(max_hz, "ticks per second of CPU time that a process may ask for");

static unsigned int max_regions = 2048;
module_param(max_regions, uint, 0644);
MODULE_PARM_DESC(max_regions, "regions that a process may ask for");

/* No timer ticks more often. */
#define MOST_HZ 100000

/* So that what a process has takes a megabyte at most. */
#define MOST_REGIONS 16384

u32 settings_max_hz(void)
{
	return min_t(u32, READ_ONCE(max_hz), MOST_HZ);
}

u32 settings_max_regions(void)
{
	return min_t(u32, READ_ONCE(max_regions), MOST_REGIONS);
}

/* Copies a struct that begins with its size in bytes, of which we know `known`. */
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

/* A child of vfork(2) that has not become another program. */
static bool is_borrower(void)
{
	bool borrowed;

	if (!current->vfork_done)
		return false;
	rcu_read_lock();
	borrowed = rcu_dereference(current->real_parent)->mm == current->mm;
	rcu_read_unlock();
	return borrowed;
}

static long set(const void __user *argument)
{
	struct profil_device_set request;
	struct table *table;
	u32 size;
	int err = copy_sized(&request, SET_SIZE, argument, &size);

	if (err)
		return err;
	if (is_borrower())
		return -EPERM;
	table = table_read(&request);
	if (IS_ERR(table))
		return PTR_ERR(table);
	clock_add(table);
	return process_start(table);
}

static long off(void)
{
	struct process *process;

	if (is_borrower())
		return -EPERM;
	process = process_find(current->mm);
	if (!process)
		return 0;
	process_stop(process);
	process_put(process);
	return 0;
}

/* Fills it in, but for the regions; false: it is off. */
static bool tell_process(struct process *process, struct profil_device_query *told)
{
	struct counts counts;
	bool on;

	raw_spin_lock_irq(&process->lock);
	on = process->on;
	counts = process->counts;
	raw_spin_unlock_irq(&process->lock);
	if (!on)
		return false;
	told->flags = PROFIL_ON | (process->table->wide ? PROFIL_WIDE : 0);
	told->hz = process->table->hz;
	told->region_count = process->table->count;
	told->ticks = counts.counted + counts.out_of_range + counts.lost;
	told->counted = counts.counted;
	told->out_of_range = counts.out_of_range;
	told->lost = counts.lost;
	told->kernel = counts.kernel;
	return true;
}

static int tell_regions(const struct process *process, u64 address, u32 room)
{
	u32 count = min(room, process->table->count);

	if (address != (unsigned long)address)
		return -EFAULT;
	if (address && copy_to_user((void __user *)(unsigned long)address, process->table->regions,
				    array_size(count, sizeof(process->table->regions[0]))))
		return -EFAULT;
	return 0;
}

/* The process that is on, which *told is of then, but for the regions; NULL when it is off. */
static struct process *find_and_tell(struct profil_device_query *told)
{
	struct process *process;

	while ((process = process_find(current->mm))) {
		if (tell_process(process, told))
			return process;
		process_put(process); /* another has taken its place, or none */
	}
	return NULL;
}

static long query(void __user *argument)
{
	struct profil_device_query asked, told = {
		.version = PROFIL_DEVICE_VERSION,
		.max_hz = settings_max_hz(),
		.max_regions = settings_max_regions(),
	};
	struct process *process;
	int err = copy_sized(&asked, QUERY_SIZE, argument, &told.size);

	if (err)
		return err;
	told.regions = asked.regions;
	process = find_and_tell(&told);
	if (process) {
		err = tell_regions(process, asked.regions, asked.region_count);
		process_put(process);
	}
	if (!err && copy_to_user(argument, &told, sizeof(told)))
		err = -EFAULT;
	return err;
}

static long profil_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	switch (command) {
	case PROFIL_IOC_SET:
		return set((const void __user *)argument);
	case PROFIL_IOC_OFF:
		return off();
	case PROFIL_IOC_QUERY:
		return query((void __user *)argument);
	}
	return -ENOTTY;
}

/* A 32-bit program has the same structures, and all that is in an argument is its address. */
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
	int err = processes_init();

	if (err)
		return err;
	err = clock_init();
	if (err)
		goto out_processes;
	err = forks_init();
	if (err)
		goto out_clock;
	err = misc_register(&device);
	if (!err)
		return 0;
	forks_exit();
out_clock:
	clock_exit();
out_processes:
	processes_exit();
	return err;
}

static void __exit profil_exit(void)
{
	misc_deregister(&device);
	forks_exit();
	clock_exit();
	processes_exit();
	synchronize_rcu_tasks(); /* who let go of the last reference has left this code */
}

module_init(profil_init);
module_exit(profil_exit);
MODULE_DESCRIPTION("profil(2): /dev/profil");
MODULE_LICENSE("GPL");
