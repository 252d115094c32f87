// SPDX-License-Identifier: GPL-2.0-only
/*
 * A tick adds 1 to a cell in the memory of the process that it interrupted, by the kernel's
 * functions for user memory. If the page of the cell is not present, the tick is deferred: the
 * thread brings in the page and counts the tick before it returns to user mode, as in 4.4BSD.
 */
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <asm/futex.h>
#include <asm/irq_regs.h>

#include "kmod/compat.h"
#include "kmod/count_tick.h"
#include "kmod/profiled_mm.h"

/*
 * Gives up when a page has vanished, or others have changed the word of a cell, this often.
 * Bound: caller: attempts to count in a cell that others write at the same time; then: the tick is
 * lost; again: at the next tick; share: the process's own; seen: lost of the device's totals.
 */
#define MAX_TRIES 16

/* get_user(), inline. Returns 0 or -EFAULT. */
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
 * Adds n to the bits of a word that the mask has, which wrap. Atomic, as the process and others
 * that share its memory may write there. Returns 0, -EFAULT when the page is not present or not
 * writable, or -EAGAIN when others write there all the time.
 */
static int add_in_word(u32 __user *word, unsigned int shift, u32 mask, u32 n)
{
	u32 found, old, sum;
	int err = read_word(word, &found);

	if (err)
		return err;
	for (int i = 0; i < MAX_TRIES; i++) {
		old = found;
		sum = (old & ~mask) | ((old + (n << shift)) & mask);
		err = futex_atomic_cmpxchg_inatomic(&found, word, old, sum);
		if (err || found == old)
			return err;
	}
	return -EAGAIN;
}

/* With profiled->lock held, which keeps out other ticks. Never sleeps. Returns as add_in_word(). */
static __always_inline int add_to_cell(unsigned long cell, bool wide, u32 n)
{
	unsigned int width = wide ? sizeof(u32) : sizeof(u16), before = cell % sizeof(u32);
	unsigned int after = sizeof(u32) - width - before; /* bytes of the word */
	unsigned int shift = 8 * (IS_ENABLED(CONFIG_CPU_BIG_ENDIAN) ? after : before);
	u32 mask = wide ? U32_MAX : U16_MAX << shift;
	u32 wide_count = 0;
	u16 count = 0;
	int err;

	pagefault_disable();
	if (before + width <= sizeof(u32)) {
		err = add_in_word((u32 __user *)(cell - before), shift, mask, n);
	} else if (wide) { /* in two words: not atomic */
		err = get_user(wide_count, (u32 __user *)cell);
		if (!err)
			err = put_user(wide_count + n, (u32 __user *)cell);
	} else {
		err = get_user(count, (u16 __user *)cell);
		if (!err)
			err = put_user((u16)(count + n), (u16 __user *)cell);
	}
	pagefault_enable();
	return err;
}

/* With profiled->lock held. */
static void add_counted(struct profiled_mm *profiled, u32 ticks, u32 kernel)
{
	profiled->counts.counted += ticks;
	profiled->counts.kernel += kernel;
}

/* --- Deferred ticks --- */

/*
 * The ticks of one task whose cell's page was not present. The task counts them on its way to user
 * mode. Until then its user pc does not change, except by signals, so all are counted in one cell.
 * A thread may sleep in the kernel before that, so there may be one for each thread of a process:
 * DEFERRED_MAX of them bound the memory and the time of an interrupt, and further ticks are lost.
 */
struct deferred_ticks {
	struct callback_head work;
	struct hlist_node node; /* in a list of `profiled` */
	struct profiled_mm *profiled;
	struct task_struct *task;
	unsigned long cell;
	u32 ticks, kernel;
};

static void add_lost(struct profiled_mm *profiled, u32 ticks)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&profiled->lock, flags);
	profiled->counts.lost += ticks;
	raw_spin_unlock_irqrestore(&profiled->lock, flags);
}

/* Returns whether the ticks are counted, or profiling is off. */
static bool try_count(const struct deferred_ticks *deferred)
{
	struct profiled_mm *profiled = deferred->profiled;
	unsigned long flags;
	bool done;

	raw_spin_lock_irqsave(&profiled->lock, flags);
	done = !profiled->on;
	if (profiled->on && !add_to_cell(deferred->cell, profiled->table->wide, deferred->ticks)) {
		add_counted(profiled, deferred->ticks, deferred->kernel);
		done = true;
	}
	raw_spin_unlock_irqrestore(&profiled->lock, flags);
	return done;
}

/* Brings in the page and counts. Turns profiling off when the cell cannot be written: profil(2). */
static void fault_in_and_count(const struct deferred_ticks *deferred)
{
	size_t width = deferred->profiled->table->wide ? sizeof(u32) : sizeof(u16);

	for (int i = 0; i < MAX_TRIES; i++) {
		if (try_count(deferred))
			return;
		if (fault_in_safe_writeable((char __user *)deferred->cell, width) &&
		    !fatal_signal_pending(current)) {
			profiled_mm_switch_off(deferred->profiled);
			return;
		}
	}
	add_lost(deferred->profiled, deferred->ticks);
}

/* Runs in the thread, on its way to user mode or to its end. */
static void count_deferred(struct callback_head *work)
{
	struct deferred_ticks *deferred = container_of(work, struct deferred_ticks, work);
	struct profiled_mm *profiled = deferred->profiled;
	unsigned long flags;

	raw_spin_lock_irqsave(&profiled->lock, flags);
	hlist_del(&deferred->node);
	profiled->deferred_count--;
	raw_spin_unlock_irqrestore(&profiled->lock, flags);

	/* After exec, or on exit, the memory of the cell is no longer the task's. */
	if (current->mm == profiled->mm)
		fault_in_and_count(deferred);
	else
		add_lost(profiled, deferred->ticks);
	kfree(deferred);
	profiled_mm_put(profiled);
}

/*
 * Returns the current task's deferred ticks, which it adds to the list if there are none yet, or
 * NULL if they cannot be deferred. With profiled->lock held; releases it for a moment.
 */
static struct deferred_ticks *get_deferred(struct profiled_mm *profiled, unsigned long cell)
{
	struct hlist_head *list = &profiled->deferred[hash_ptr(current, DEFERRED_BITS)];
	struct deferred_ticks *deferred;

	hlist_for_each_entry(deferred, list, node)
		if (deferred->task == current)
			return deferred;
	if (current->flags & PF_EXITING || profiled->deferred_count >= DEFERRED_MAX)
		return NULL;
	raw_spin_unlock(&profiled->lock); /* nothing can be allocated under a raw lock */
	deferred = kzalloc(sizeof(*deferred), GFP_ATOMIC | __GFP_NOWARN);
	raw_spin_lock(&profiled->lock);
	if (!deferred)
		return NULL;
	if (!profiled->on) { /* there may be no reference left to take another one of */
		kfree(deferred);
		return NULL;
	}
	kref_get(&profiled->refs);
	deferred->profiled = profiled;
	deferred->task = current;
	deferred->cell = cell;
	hlist_add_head(&deferred->node, list);
	profiled->deferred_count++;
	add_task_work(current, &deferred->work, count_deferred);
	return deferred;
}

/* --- The interrupt --- */

/*
 * Returns whether the CPU has the page tables of the current task's memory. Firmware calls (efi_mm)
 * run with others in the task's own time. copy_from_user_nmi() has nmi_uaccess_okay() for this,
 * which modules cannot call; it is about x86 alone, too.
 */
static bool has_own_page_tables(void)
{
#ifdef CONFIG_X86
	return current->mm->pgd == __va(read_cr3_pa());
#else
	return true;
#endif
}

/* In an RCU read-side section. */
static void count_in_cell(struct profiled_mm *profiled, u32 ticks, bool in_kernel)
{
	u64 pc = instruction_pointer(task_pt_regs(current));
	unsigned long cell = region_table_cell(profiled->table, pc);
	u32 kernel = in_kernel ? ticks : 0;
	struct deferred_ticks *deferred;

	raw_spin_lock(&profiled->lock);
	if (!profiled->on)
		goto out;
	if (cell == NO_CELL) {
		profiled->counts.out_of_range += ticks;
	} else if (has_own_page_tables() && !add_to_cell(cell, profiled->table->wide, ticks)) {
		add_counted(profiled, ticks, kernel);
	} else {
		deferred = get_deferred(profiled, cell);
		if (deferred) {
			deferred->ticks += ticks;
			deferred->kernel += kernel;
		} else {
			profiled->counts.lost += ticks;
		}
	}
out:
	raw_spin_unlock(&profiled->lock);
}

/* These may use a process's memory, but have no program counter in user mode. */
#define KERNEL_THREADS (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)

bool count_tick(u64 before, u64 now, u64 phase)
{
	struct pt_regs *regs = get_irq_regs();
	struct profiled_mm *profiled;
	u32 period, ticks;

	if (!current->mm || current->flags & KERNEL_THREADS)
		return false;
	rcu_read_lock();
	profiled = profiled_mm_lookup(current->mm);
	if (profiled) {
		before = max(before, profiled->table->rate.start_ns + phase);
		period = profiled->table->rate.period_ns;
		ticks = rate_points(now, period) - rate_points(before, period);
		if (ticks)
			count_in_cell(profiled, ticks, regs && !user_mode(regs));
	}
	rcu_read_unlock();
	return profiled;
}
