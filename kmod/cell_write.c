// SPDX-License-Identifier: GPL-2.0-only
/*
 * A tick: one more in a cell of the process's own memory. It is written just as the process itself
 * would write it, in the interrupt that came while the process ran. What is not in memory then is
 * brought there, and counted, before the thread returns to user mode: 4.4BSD did it so.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <asm/futex.h>
#include <asm/irq_regs.h>

#include "kmod/counted_memory.h"

/* How often a page may vanish again before its cell is written, or others write to its word. */
#define MOST_TRIES 16

/* As get_user(), inline. */
static __always_inline int read_word(const u32 __user *word, u32 *value)
{
	if (!user_read_access_begin(word, sizeof(*word)))
		return -EFAULT;
	unsafe_get_user(*value, word, failed);
	user_read_access_end();
	return 0;
failed:
	user_read_access_end();
	return -EFAULT;
}

/*
 * Cells are in words of 32 bits, which are written at once: memory may be shared with a process
 * that has a lock of its own, or that takes counts away. These wait for nothing: -EFAULT, -EAGAIN.
 */
static int add_in_word(u32 __user *word, unsigned int shift, u32 mask, u32 n)
{
	u32 found, old, sum;
	int err = read_word(word, &found);

	if (err)
		return err;
	for (int i = 0; i < MOST_TRIES; i++) {
		old = found;
		sum = (old & ~mask) | ((old + (n << shift)) & mask);
		err = futex_atomic_cmpxchg_inatomic(&found, word, old, sum);
		if (err || found == old)
			return err;
	}
	return -EAGAIN;
}

static int add_across_words(unsigned long cell, bool wide, u32 n)
{
	u32 __user *wide_cell = (u32 __user *)cell;
	u16 __user *narrow_cell = (u16 __user *)cell;
	u32 wide_count = 0;
	u16 count = 0;

	if (wide)
		return get_user(wide_count, wide_cell) ?: put_user(wide_count + n, wide_cell);
	return get_user(count, narrow_cell) ?: put_user((u16)(count + n), narrow_cell);
}

/* With the lock, so that no other tick of the process comes between. */
static __always_inline int add_to_cell(unsigned long cell, bool wide, u32 n)
{
	unsigned int width = wide ? sizeof(u32) : sizeof(u16), place = cell % sizeof(u32);
	unsigned int behind = sizeof(u32) - width - place;
	unsigned int shift = 8 * (IS_ENABLED(CONFIG_CPU_BIG_ENDIAN) ? behind : place);
	u32 mask = wide ? U32_MAX : U16_MAX << shift;
	int err;

	pagefault_disable();
	if (place + width <= sizeof(u32))
		err = add_in_word((u32 __user *)(cell - place), shift, mask, n);
	else
		err = add_across_words(cell, wide, n);
	pagefault_enable();
	return err;
}

/* With the lock. */
static void add_counted(struct process *process, u32 ticks, u32 kernel)
{
	process->counts.counted += ticks;
	process->counts.kernel += kernel;
}

/* --- Late ticks --- */

/*
 * Ticks of a task whose cell was not in memory, which it adds before it returns to user mode. Until
 * then its user pc is the same, but for signals, so they are taken to be of one cell.
 */
struct late {
	struct callback_head work;
	struct hlist_node node; /* in its process's list */
	struct process *process;
	struct task_struct *task;
	unsigned long cell;
	u32 ticks, kernel;
};

/* Returns whether they are counted, or not to be counted any more. */
static bool add_late(struct process *process, unsigned long cell, u32 ticks, u32 kernel)
{
	unsigned long flags;
	bool done;

	raw_spin_lock_irqsave(&process->lock, flags);
	done = !process->on;
	if (process->on && !add_to_cell(cell, process->table->wide, ticks)) {
		add_counted(process, ticks, kernel);
		done = true;
	}
	raw_spin_unlock_irqrestore(&process->lock, flags);
	return done;
}

static void lose(struct process *process, u32 ticks)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&process->lock, flags);
	process->counts.lost += ticks;
	raw_spin_unlock_irqrestore(&process->lock, flags);
}

static void bring_and_add(struct process *process, unsigned long cell, u32 ticks, u32 kernel)
{
	size_t width = process->table->wide ? sizeof(u32) : sizeof(u16);

	for (int i = 0; i < MOST_TRIES; i++) {
		if (add_late(process, cell, ticks, kernel))
			return;
		if (!fault_in_safe_writeable((char __user *)cell, width))
			continue;
		if (!fatal_signal_pending(current)) { /* it cannot be written: profil(2) */
			process_switch_off(process);
			return;
		}
	}
	lose(process, ticks);
}

/* In the thread, on its way to user mode or to its end. */
static void count_late(struct callback_head *work)
{
	struct late *late = container_of(work, struct late, work);
	struct process *process = late->process;
	unsigned long flags;

	raw_spin_lock_irqsave(&process->lock, flags);
	hlist_del(&late->node);
	raw_spin_unlock_irqrestore(&process->lock, flags);

	/* It may have become another program in the meantime, or given up its memory. */
	if (current->mm == process->mm)
		bring_and_add(process, late->cell, late->ticks, late->kernel);
	else
		lose(process, late->ticks);
	kfree(late);
	process_put(process);
}

/* With the lock: those of the current task. */
static struct late *find_late(struct process *process)
{
	struct late *late;

	hlist_for_each_entry(late, &process->late, node)
		if (late->task == current)
			return late;
	return NULL;
}

/* With the lock, which it releases for a moment: the current task's, or a new one; or NULL. */
static struct late *get_late(struct process *process, unsigned long cell)
{
	struct late *late = find_late(process);

	if (late || current->flags & PF_EXITING)
		return late;
	raw_spin_unlock(&process->lock); /* a raw lock, under which nothing is allocated */
	late = kzalloc(sizeof(*late), GFP_ATOMIC | __GFP_NOWARN);
	raw_spin_lock(&process->lock);
	if (!late)
		return NULL;
	if (!process->on) { /* and nobody may have a reference any more */
		kfree(late);
		return NULL;
	}
	kref_get(&process->refs);
	late->process = process;
	late->task = current;
	late->cell = cell;
	hlist_add_head(&late->node, &process->late);
	add_task_work(current, &late->work, count_late);
	return late;
}

/* With the lock. */
static void defer(struct process *process, unsigned long cell, u32 ticks, u32 kernel)
{
	struct late *late = get_late(process, cell);

	if (late) {
		late->ticks += ticks;
		late->kernel += kernel;
	} else {
		process->counts.lost += ticks;
	}
}

/* --- The interrupt --- */

/*
 * Whether user addresses mean the current task's memory. Firmware calls (efi_mm) run with other
 * page tables in the task's own time. copy_from_user_nmi() asks the same by nmi_uaccess_okay(),
 * which modules cannot call; architectures but x86 have nothing to ask.
 */
static bool has_own_memory(void)
{
#ifdef CONFIG_X86
	return current->mm->pgd == __va(read_cr3_pa());
#else
	return true;
#endif
}

/* In an RCU read-side section. */
static void count(struct process *process, u32 ticks, bool in_kernel)
{
	unsigned long cell = table_cell(process->table, instruction_pointer(task_pt_regs(current)));
	u32 kernel = in_kernel ? ticks : 0;

	raw_spin_lock(&process->lock);
	if (process->on) {
		if (cell == NO_CELL)
			process->counts.out_of_range += ticks;
		else if (!has_own_memory() || add_to_cell(cell, process->table->wide, ticks))
			defer(process, cell, ticks, kernel);
		else
			add_counted(process, ticks, kernel);
	}
	raw_spin_unlock(&process->lock);
}

/* They may use a process's memory, but have no program counter of the user's. */
#define KERNEL_THREADS (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)

void tick(u64 before, u64 now, u64 phase)
{
	struct pt_regs *regs = get_irq_regs();
	struct process *process;
	u32 period, ticks;

	if (!current->mm || current->flags & KERNEL_THREADS)
		return;
	rcu_read_lock();
	process = process_lookup(current->mm);
	if (process) {
		before = max(before, process->table->since + phase);
		period = process->table->period;
		ticks = clock_points(now, period) - clock_points(before, period);
		if (ticks)
			count(process, ticks, regs && !user_mode(regs));
	}
	rcu_read_unlock();
}
