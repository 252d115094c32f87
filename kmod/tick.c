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
#include <linux/uaccess.h>

#include <asm/futex.h>

#include "kmod/process.h"

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
	struct thread *thread = container_of(work, struct thread, late);
	struct process *process = thread->process;
	unsigned long flags, cell;
	u32 ticks, kernel;

	raw_spin_lock_irqsave(&process->lock, flags);
	cell = thread->late_cell;
	ticks = thread->late_ticks;
	kernel = thread->late_kernel;
	thread->late_ticks = thread->late_kernel = 0;
	raw_spin_unlock_irqrestore(&process->lock, flags);

	/* It may have become another program in the meantime, or given up its memory. */
	if (current->mm == process->mm)
		bring_and_add(process, cell, ticks, kernel);
	else
		lose(process, ticks);
	process_put(process);
}

/* With the lock. */
static void defer(struct thread *thread, unsigned long cell, u32 ticks, bool kernel)
{
	struct process *process = thread->process;

	if (!thread->late_ticks) {
		init_task_work(&thread->late, count_late);
		if (task_work_add(current, &thread->late, TWA_RESUME)) { /* it exits */
			process->counts.lost += ticks;
			return;
		}
		kref_get(&process->refs);
		thread->late_cell = cell;
	}
	thread->late_ticks += ticks;
	thread->late_kernel += kernel ? ticks : 0;
}

/* --- The interrupt --- */

/*
 * How many ticks are due. It is more than one when interrupts were late, as on a busy host: the
 * counts stay true to CPU time. The timer and the clock of the event may differ by a little.
 */
static u32 ticks_due(struct thread *thread, struct perf_event *event)
{
	u64 period = event->attr.sample_period, time = local64_read(&event->count) + period / 2;
	u32 ticks;

	if (time < thread->due)
		return 0;
	ticks = time - thread->due < period ? 1 : 1 + div64_u64(time - thread->due, period);
	thread->due += ticks * period;
	return ticks;
}

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

void tick(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	struct thread *thread = event->overflow_handler_context;
	struct process *process = thread->process;
	bool kernel = !user_mode(regs);
	unsigned long cell;
	u32 ticks;

	if (current->mm != process->mm) /* between programs */
		return;
	ticks = ticks_due(thread, event);
	if (!ticks)
		return;
	cell = table_cell(process->table,
			  instruction_pointer(kernel ? task_pt_regs(current) : regs),
			  &thread->last);

	raw_spin_lock(&process->lock);
	if (process->on) {
		if (cell == NO_CELL)
			process->counts.out_of_range += ticks;
		else if (!has_own_memory() || add_to_cell(cell, process->table->wide, ticks))
			defer(thread, cell, ticks, kernel);
		else
			add_counted(process, ticks, kernel ? ticks : 0);
	}
	raw_spin_unlock(&process->lock);
}
