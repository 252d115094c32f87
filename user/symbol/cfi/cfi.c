// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/cfi/cfi.h"

#include <assert.h>
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "script/context.h"
#include "script/language.h"
#include "symbol/cfi/cfi_frames.h"
#include "symbol/cfi/code_frames.h"
#include "symbol/go_table.h"
#include "symbol/symbol_table.h"
#include "util/array.h"
#include "util/table.h"

/*
 * The largest libraries have a tenth of the first limit, and a hundredth of the second.
 * Bound: files: rows and rules of an image; then: it has none: stacks end in its code; seen: as
 * images without call frame information, with the reason.
 */
#define ROWS_MAX  8000000
#define RULES_MAX 65536

/*
 * DW_CFA_remember_state: compilers nest one.
 * Bound: files: states that are remembered at once; then: the function has no rows from there on;
 * seen: stack end gap.
 */
#define REMEMBERED_MAX 64

/*
 * Bound: files: rules that were used last, as a power of two; then: one replaces another, and is
 * searched again; again: at once; seen: not seen, but as CPU time.
 */
#define RULE_CACHE_BITS 12

/* DWARF's numbers of a machine's registers that unwinding needs; bx, too, is the rules' name. */
struct machine {
	GElf_Half machine;
	unsigned char class;
	uint8_t sp, bp, bx, return_address;
	int return_at; /* where a call saves the return address, relative to the CFA; 0: nowhere */
	int signal_sp; /* the saved sp, relative to sp in a signal frame; 0: rows need not say it */
};

static const struct machine machines[] = {
	{ EM_X86_64, ELFCLASS64, 7, 6, 3, 16, -8, 160 },
	{ EM_AARCH64, ELFCLASS64, 31, 29, 30, 30, 0, 0 },
};

/* Whether calls leave the return address in a register, the one that rules call bx. */
static bool links(const struct machine *m)
{
	return m->bx == m->return_address;
}

/*
 * The functions of Go's runtime on x86-64 that call others on another stack. Since Go 1.17 a symbol
 * of assembly ends with ".abi0", unless it has the ABI of compiled code. Then the name alone is
 * that of compiled code, which calls the assembly.
 */
static const struct {
	const char *name;
	enum unwind_switch kind;
} switches[] = {
	{ "runtime.systemstack", UNWIND_SWITCH_CALLED },
	{ "runtime.asmcgocall", UNWIND_SWITCH_CALLED },
	{ "runtime.morestack", UNWIND_SWITCH_INTERRUPTED },
	{ "runtime.mcall", UNWIND_SWITCH_ENDS },
	{ "runtime.goexit", UNWIND_SWITCH_ENDS }, /* what a goroutine returns to */
	{ "runtime.cgocallback", UNWIND_SWITCH_BACK },
	{ "runtime.mstart", UNWIND_SWITCH_ENDS }, /* a thread's first function */
	{ "runtime.rt0_go", UNWIND_SWITCH_ENDS }, /* the program's */
	{ "runtime.nanotime1", UNWIND_SWITCH_BP },
	{ "runtime.walltime", UNWIND_SWITCH_BP },
	{ "time.now", UNWIND_SWITCH_BP },
};

#define SWITCH_COUNT (sizeof(switches) / sizeof(*switches))

enum caller {
	CALLER_UNKNOWN,
	CALLER_SAVED, /* the return address is where a call stores it */
	CALLER_IN_REGISTER,
	CALLER_NONE, /* the outermost frame */
};

/* How to find the caller from one instruction. */
struct state {
	enum {
		CFA_NONE,
		CFA_REGISTER,
		CFA_RULE
	} cfa;
	enum caller caller;
	uint64_t caller_register;
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct unwind_rule cfa_rule; /* of an expression */
	struct saved {
		enum unwind_saved kind;
		int16_t at;
	} bp, bx;
};

/* The execution of an FDE's or CIE's instructions. */
struct run {
	const struct cfi_cie *cie;
	const struct machine *machine;
	struct dwarf_cursor c;
	const struct state *initial; /* the CIE's; NULL: these are the CIE's instructions */
	struct state now;
	struct state remembered[REMEMBERED_MAX];
	size_t remembered_count;
	uint64_t location;
};

struct builder {
	const struct cfi_frames *frames;
	const struct code_frames *code;
	const struct machine *machine;
	struct state *initial; /* by CIE */
	struct unwind_rows *rows;
	struct index index;		      /* of rules */
	uint64_t end;			      /* end of the last row added */
	uint64_t entry;			      /* the program's entry point */
	size_t next_fde, next_code;	      /* the first ones that are not added */
	uint64_t switch_starts[SWITCH_COUNT]; /* of Go's functions; 0: not found */
	int switching;			      /* the function, one of these; -1: none */
	struct {
		struct unwind_rule rule;
		uint32_t number; /* + 1; 0: unused */
	} cache[1 << RULE_CACHE_BITS];
	struct run run;
	struct error *e;
};

static bool fits_short(int64_t value)
{
	return value >= SHRT_MIN && value <= SHRT_MAX;
}

/* Reads "register + offset". False: it is something else. */
static bool read_base(struct dwarf_cursor *c, uint64_t *number, int64_t *offset)
{
	uint8_t op = dwarf_number(c, 1);

	if (op == DW_OP_bregx)
		*number = dwarf_uleb(c);
	else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		*number = op - DW_OP_breg0;
	else
		return false;
	*offset = dwarf_sleb(c);
	return !c->bad;
}

/*
 * Whether an expression is what linkers write for PLT stubs, in which a word is pushed after N of
 * 16 bytes: sp + 8 + ((pc & 15) >= N) << 3. Sets *threshold to N.
 */
static bool is_plt(const struct machine *m, struct dwarf_cursor c, uint64_t number, int64_t offset,
		   int *threshold)
{
	uint8_t head[] = { DW_OP_breg0 + m->return_address, 0, DW_OP_lit15, DW_OP_and };
	uint8_t tail[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };
	size_t size = c.end - c.at;

	if (number != m->sp || offset != 8 || size != sizeof(head) + 1 + sizeof(tail) ||
	    memcmp(c.at, head, sizeof(head)) != 0 ||
	    memcmp(c.at + sizeof(head) + 1, tail, sizeof(tail)) != 0)
		return false;
	*threshold = c.at[sizeof(head)] - DW_OP_lit0;
	return *threshold >= 0 && *threshold <= 15;
}

/* Reads a block: its size and its bytes. */
static struct dwarf_cursor read_block(struct dwarf_cursor *c)
{
	struct dwarf_cursor block = *c;
	uint64_t size = dwarf_uleb(c);

	block.at = c->at;
	dwarf_skip(c, size);
	block.end = c->at;
	return block;
}

static void define_cfa_by_expression(struct run *r)
{
	const struct machine *m = r->machine;
	struct dwarf_cursor c = read_block(&r->c);
	struct state *s = &r->now;
	uint64_t number, add = 0;
	int64_t offset;
	int threshold;

	s->cfa = CFA_RULE;
	s->cfa_rule = (struct unwind_rule){ .cfa = UNWIND_UNSUPPORTED };
	if (!read_base(&c, &number, &offset))
		return;
	if (c.at == c.end) {
		s->cfa = CFA_REGISTER;
		s->cfa_register = number;
		s->cfa_offset = offset;
		return;
	}
	if (is_plt(m, c, number, offset, &threshold)) {
		s->cfa_rule = (struct unwind_rule){ .cfa = UNWIND_PLT, .offset = threshold };
		return;
	}
	/* *(register + offset) + add */
	if (dwarf_number(&c, 1) != DW_OP_deref)
		return;
	if (c.at < c.end && dwarf_number(&c, 1) == DW_OP_plus_uconst)
		add = dwarf_uleb(&c);
	if (!c.bad && c.at == c.end && (number == m->sp || number == m->bp) && fits_short(offset) &&
	    add <= SHRT_MAX) {
		s->cfa_rule.cfa = number == m->sp ? UNWIND_DEREF_SP : UNWIND_DEREF_BP;
		s->cfa_rule.base = offset;
		s->cfa_rule.add = add;
	}
}

/* Where a state says that a register is saved; NULL: that register is not tracked. */
static struct saved *saved_of(const struct run *r, struct state *s, uint64_t number)
{
	if (number == r->machine->bp)
		return &s->bp;
	return number == r->machine->bx ? &s->bx : NULL;
}

/* Sets where a register is saved, if a rule can express it. */
static void set_saved(struct saved *saved, enum unwind_saved kind, int64_t offset)
{
	if (offset % 8 || !fits_short(offset / 8))
		return;
	saved->kind = kind;
	saved->at = offset / 8;
}

static void lose_register(struct run *r, uint64_t number)
{
	struct saved *saved = saved_of(r, &r->now, number);

	if (saved)
		*saved = (struct saved){ UNWIND_LOST, 0 };
	if (number == r->machine->return_address)
		r->now.caller = CALLER_UNKNOWN;
}

static void save_register(struct run *r, uint64_t number, int64_t factored)
{
	struct saved *saved = saved_of(r, &r->now, number);
	int64_t offset;

	lose_register(r, number);
	if (__builtin_mul_overflow(factored, r->cie->data_align, &offset))
		return;
	if (saved)
		set_saved(saved, UNWIND_SAVED_AT_CFA, offset);
	else if (number == r->machine->return_address && offset == r->machine->return_at)
		r->now.caller = CALLER_SAVED;
}

static void save_register_by_expression(struct run *r)
{
	uint64_t number = dwarf_uleb(&r->c), base;
	struct dwarf_cursor c = read_block(&r->c);
	int64_t offset;

	lose_register(r, number);
	if (number != r->machine->bp || !read_base(&c, &base, &offset) || c.at < c.end ||
	    base != r->machine->bp)
		return;
	set_saved(&r->now.bp, UNWIND_SAVED_AT_BP, offset);
}

/* Returns false in a CIE's instructions, where it is invalid. */
static bool restore_register(struct run *r, uint64_t number)
{
	if (!r->initial)
		return false;
	if (number == r->machine->bp)
		r->now.bp = r->initial->bp;
	else if (number == r->machine->bx)
		r->now.bx = r->initial->bx;
	if (number == r->machine->return_address)
		r->now.caller = r->initial->caller; /* never CALLER_IN_REGISTER */
	return true;
}

static bool define_cfa(struct run *r, uint64_t number, int64_t offset)
{
	r->now.cfa = CFA_REGISTER;
	r->now.cfa_register = number;
	r->now.cfa_offset = offset;
	return true;
}

static int64_t data_offset(struct run *r)
{
	int64_t offset;

	if (__builtin_mul_overflow(dwarf_sleb(&r->c), r->cie->data_align, &offset))
		return INT64_MAX;
	return offset;
}

/* Advances the location, at most to UINT64_MAX: all addresses after the FDE's end are equal. */
static bool advance(struct run *r, uint64_t delta)
{
	if (__builtin_mul_overflow(delta, r->cie->code_align, &delta) ||
	    __builtin_add_overflow(r->location, delta, &r->location))
		r->location = UINT64_MAX;
	return true;
}

/* Executes an instruction without an operand in its first byte. False: it is invalid. */
static bool execute_extended(struct run *r, uint8_t op)
{
	struct dwarf_cursor *c = &r->c;
	struct saved *saved;
	uint64_t number, other, address;

	switch (op) {
	case DW_CFA_nop:
	case DW_CFA_GNU_window_save: /* on other machines; arm64: the return address is signed */
		return true;
	case DW_CFA_set_loc:
		if (!cfi_address(r->cie, c, &address) || address < r->location)
			return false;
		r->location = address;
		return true;
	case DW_CFA_advance_loc1:
		return advance(r, dwarf_number(c, 1));
	case DW_CFA_advance_loc2:
		return advance(r, dwarf_number(c, 2));
	case DW_CFA_advance_loc4:
		return advance(r, dwarf_number(c, 4));
	case DW_CFA_MIPS_advance_loc8:
		return advance(r, dwarf_number(c, 8));
	case DW_CFA_offset_extended:
		number = dwarf_uleb(c);
		save_register(r, number, dwarf_uleb(c));
		return true;
	case DW_CFA_offset_extended_sf:
		number = dwarf_uleb(c);
		save_register(r, number, dwarf_sleb(c));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		number = dwarf_uleb(c);
		save_register(r, number, -dwarf_uleb(c));
		return true;
	case DW_CFA_restore_extended:
		return restore_register(r, dwarf_uleb(c));
	case DW_CFA_undefined:
		number = dwarf_uleb(c);
		lose_register(r, number);
		if (number == r->machine->return_address)
			r->now.caller = CALLER_NONE;
		return true;
	case DW_CFA_same_value:
		number = dwarf_uleb(c);
		lose_register(r, number);
		saved = saved_of(r, &r->now, number);
		if (saved)
			saved->kind = UNWIND_SAME;
		return true;
	case DW_CFA_register:
		number = dwarf_uleb(c);
		other = dwarf_uleb(c);
		lose_register(r, number);
		if (number == r->machine->return_address) {
			r->now.caller = CALLER_IN_REGISTER;
			r->now.caller_register = other;
		}
		return true;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		lose_register(r, dwarf_uleb(c));
		dwarf_uleb(c);
		return true;
	case DW_CFA_remember_state:
		if (r->remembered_count == REMEMBERED_MAX)
			return false;
		r->remembered[r->remembered_count++] = r->now;
		return true;
	case DW_CFA_restore_state:
		if (!r->remembered_count)
			return false;
		r->now = r->remembered[--r->remembered_count];
		return true;
	case DW_CFA_def_cfa:
		number = dwarf_uleb(c);
		return define_cfa(r, number, dwarf_uleb(c));
	case DW_CFA_def_cfa_sf:
		number = dwarf_uleb(c);
		return define_cfa(r, number, data_offset(r));
	case DW_CFA_def_cfa_register:
		return define_cfa(r, dwarf_uleb(c), r->now.cfa_offset) && r->now.cfa != CFA_RULE;
	case DW_CFA_def_cfa_offset:
		r->now.cfa_offset = dwarf_uleb(c);
		return r->now.cfa == CFA_REGISTER;
	case DW_CFA_def_cfa_offset_sf:
		r->now.cfa_offset = data_offset(r);
		return r->now.cfa == CFA_REGISTER;
	case DW_CFA_def_cfa_expression:
		define_cfa_by_expression(r);
		return true;
	case DW_CFA_expression:
		save_register_by_expression(r);
		return true;
	case DW_CFA_val_expression:
		lose_register(r, dwarf_uleb(c));
		read_block(c);
		return true;
	case DW_CFA_GNU_args_size:
		dwarf_uleb(c);
		return true;
	default:
		return false;
	}
}

/* Executes the next instruction, which has at least one byte. False: it is invalid. */
static bool execute(struct run *r)
{
	uint8_t byte = *r->c.at++, operand = byte & 0x3f;

	switch (byte & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(r, operand);
	case DW_CFA_offset:
		save_register(r, operand, dwarf_uleb(&r->c));
		return !r->c.bad;
	case DW_CFA_restore:
		return restore_register(r, operand);
	default:
		return execute_extended(r, operand) && !r->c.bad;
	}
}

/* The rule for the CFA only. */
static struct unwind_rule cfa_rule_of(const struct machine *m, const struct state *s)
{
	struct unwind_rule rule = { .cfa = UNWIND_UNSUPPORTED };

	if (s->cfa == CFA_RULE)
		return s->cfa_rule;
	if (s->cfa == CFA_NONE || s->cfa_offset < INT_MIN || s->cfa_offset > INT_MAX)
		return rule;
	if (s->cfa_register == m->sp || s->cfa_register == m->bp) {
		rule.cfa = s->cfa_register == m->sp ? UNWIND_SP : UNWIND_BP;
		rule.offset = s->cfa_offset;
	} else if (s->cfa_register == m->bx && !links(m)) {
		rule.cfa = UNWIND_BX;
		rule.offset = s->cfa_offset;
	} else if (s->cfa_register <= SHRT_MAX && fits_short(s->cfa_offset)) {
		rule.cfa = UNWIND_REGISTER;
		rule.base = s->cfa_register;
		rule.add = s->cfa_offset;
	}
	return rule;
}

/* Sets where a rule finds the caller's registers. False: no rule can express it. */
static bool set_registers(const struct machine *m, const struct state *s, struct unwind_rule *rule)
{
	int bx_at = s->bx.at;

	rule->bp = s->bp.kind;
	rule->bp_at = s->bp.at;
	rule->bx = s->bx.kind;
	if (links(m) ? s->bx.kind == UNWIND_LOST : s->caller != CALLER_SAVED)
		return false;
	if (links(m) && s->bx.kind == UNWIND_SAVED_AT_CFA) {
		if (s->bp.kind != UNWIND_SAVED_AT_CFA)
			rule->bp_at = s->bx.at;
		bx_at -= rule->bp_at;
	}
	if (bx_at < SCHAR_MIN || bx_at > SCHAR_MAX) {
		rule->bx = UNWIND_LOST;
		bx_at = 0;
	}
	rule->bx_at = bx_at;
	return true;
}

static struct unwind_rule rule_of(const struct run *r, const struct state *s)
{
	struct unwind_rule rule = cfa_rule_of(r->machine, s);

	if (r->cie->signal) {
		bool known =
			!r->machine->signal_sp || (rule.cfa == UNWIND_DEREF_SP &&
						   rule.base == r->machine->signal_sp && !rule.add);

		return (struct unwind_rule){ .cfa = known ? UNWIND_SIGNAL : UNWIND_UNSUPPORTED };
	}
	if (r->cie->return_register != r->machine->return_address)
		return (struct unwind_rule){ .cfa = UNWIND_UNSUPPORTED };
	if (s->caller == CALLER_NONE)
		return (struct unwind_rule){ .cfa = UNWIND_END };
	if (s->caller == CALLER_IN_REGISTER && rule.cfa == UNWIND_SP && fits_short(rule.offset) &&
	    s->caller_register <= SHRT_MAX)
		return (struct unwind_rule){
			.cfa = UNWIND_RETURN,
			.base = s->caller_register,
			.add = rule.offset,
		};
	if (rule.cfa == UNWIND_UNSUPPORTED || !set_registers(r->machine, s, &rule))
		return (struct unwind_rule){ .cfa = UNWIND_UNSUPPORTED };
	return rule;
}

/* Sets *number to a rule's number, and adds the rule if it is new. The cache finds most. */
static int number_rule(struct builder *b, const struct unwind_rule *rule, uint32_t *number)
{
	struct unwind_rows *rows = b->rows;
	uint64_t bits;
	size_t slot;

	static_assert(sizeof(*rule) == sizeof(bits), "a rule is a word");
	memcpy(&bits, rule, sizeof(bits));
	slot = bits * 0x9e3779b97f4a7c15 >> (64 - RULE_CACHE_BITS);
	if (!b->cache[slot].number || memcmp(&b->cache[slot].rule, rule, sizeof(*rule)) != 0) {
		if (table_add_element(&rows->rules, &rows->rule_count, &rows->rule_room, &b->index,
				      sizeof(*rule), rule, sizeof(*rule), number))
			return error_no_memory(b->e);
		if (rows->rule_count > RULES_MAX)
			return error_set(b->e, 0,
					 "its call frame information has more than %d rules",
					 RULES_MAX);
		b->cache[slot].rule = *rule;
		b->cache[slot].number = *number + 1;
	}
	*number = b->cache[slot].number - 1;
	return 0;
}

/* Adds a row: the rule holds from this address on. */
static int add_row(struct builder *b, uint64_t address, const struct unwind_rule *rule)
{
	struct unwind_rows *rows = b->rows;
	uint32_t number;
	int err = number_rule(b, rule, &number);

	if (err || (rows->count && rows->rows[rows->count - 1].rule == number))
		return err;
	if (rows->count == ROWS_MAX)
		return error_set(b->e, 0, "it has more than %d rows of call frame information",
				 ROWS_MAX);
	if (array_reserve(&rows->rows, &rows->room, rows->count + 1, sizeof(*rows->rows)))
		return error_no_memory(b->e);
	rows->rows[rows->count].address = address;
	rows->rows[rows->count++].rule = number;
	return 0;
}

/*
 * Adds rows for the addresses from b->end to `limit`, which no FDE describes: those that the code
 * itself gives, if any. The entry point is the outermost frame: the dynamic linker has no FDE that
 * says so.
 */
static int add_gap(struct builder *b, uint64_t limit)
{
	static const struct unwind_rule gap = { .cfa = UNWIND_GAP }, end = { .cfa = UNWIND_END };
	const struct code_row *rows = b->code->rows;
	size_t count = b->code->row_count, at = b->next_code;
	bool has_entry;
	int err;

	while (at < count && rows[at].address < b->end)
		at++;
	b->next_code = at;
	if (at < count && rows[at].address < limit) {
		err = b->rows->count && rows[at].address > b->end ? add_row(b, b->end, &gap) : 0;
		for (; !err && at < count && rows[at].address < limit; at++)
			err = add_row(b, rows[at].address, &rows[at].rule);
		return err;
	}
	if (!b->rows->count)
		return 0;
	has_entry = b->entry >= b->end && b->entry < limit;
	err = has_entry && b->entry == b->end ? 0 : add_row(b, b->end, &gap);
	if (err || !has_entry)
		return err;
	err = add_row(b, b->entry, &end);
	return err || limit < UINT64_MAX ? err : add_row(b, b->entry + 1, &gap);
}

/* Adds a row for the current state from b->end to `limit`, if that is higher. */
static int add_state(struct builder *b, uint64_t limit)
{
	struct unwind_rule rule;
	int err;

	if (limit <= b->end)
		return 0;
	rule = rule_of(&b->run, &b->run.now);
	if (b->switching >= 0 && rule.cfa == UNWIND_SP && fits_short(rule.offset))
		rule = (struct unwind_rule){
			.cfa = UNWIND_SWITCH,
			.base = rule.offset,
			.add = switches[b->switching].kind,
		};
	err = add_row(b, b->end, &rule);
	b->end = limit;
	return err;
}

/* initial: the CIE's state; NULL for the CIE's instructions. */
static void start_run(struct builder *b, const struct cfi_cie *cie, const struct state *initial)
{
	struct run *r = &b->run;

	r->cie = cie;
	r->machine = b->machine;
	r->initial = initial;
	r->now = initial ? *initial : (struct state){ 0 };
	r->remembered_count = 0;
	r->location = 0;
}

/* Adds the rows of an FDE for addresses after b->end. */
static int add_fde(struct builder *b, const struct cfi_fde *fde)
{
	struct run *r = &b->run;
	int err = 0;

	if (fde->limit <= b->end)
		return 0;
	if (fde->start > b->end)
		err = add_gap(b, fde->start);
	if (fde->start > b->end)
		b->end = fde->start;
	start_run(b, &b->frames->cies[fde->cie], &b->initial[fde->cie]);
	b->switching = -1;
	for (size_t i = 0; i < SWITCH_COUNT && b->switching < 0; i++)
		if (b->switch_starts[i] && b->switch_starts[i] == fde->start)
			b->switching = i;
	r->location = fde->start;
	r->c = cfi_cursor(b->frames, r->cie->section, fde->instructions, fde->size);
	while (!err && r->c.at < r->c.end && r->location < fde->limit) {
		uint64_t location = r->location;

		if (!execute(r)) {
			r->now = (struct state){ 0 };
			break;
		}
		if (r->location > location)
			err = add_state(b, r->location < fde->limit ? r->location : fde->limit);
	}
	return err ?: add_state(b, fde->limit);
}

/* Adds a row of Go's own table, and before it those of the FDEs that begin before: C's. */
static int add_go_frame(void *context, const struct go_frame *frame)
{
	const struct cfi_frames *f;
	struct builder *b = context;
	const struct machine *m = b->machine;
	const struct cfi_cie cie = { .return_register = m->return_address };
	uint64_t start = frame->start;
	struct state *s = &b->run.now;
	int err = 0;

	for (f = b->frames; !err && frame->is_first && b->next_fde < f->fde_count &&
			    f->fdes[b->next_fde].start <= start;)
		err = add_fde(b, &f->fdes[b->next_fde++]);
	if (err || start < b->end)
		return err;
	if (start > b->end)
		err = add_gap(b, start);
	b->end = start;
	if (frame->is_first) {
		b->switching = -1;
		for (size_t i = 0; frame->name && i < SWITCH_COUNT; i++)
			if (m->machine == EM_X86_64 && strcmp(switches[i].name, frame->name) == 0)
				b->switching = i;
	}
	/* As Go's linker writes it in .debug_frame: that a function has no caller, for arm64 only
	 */
	start_run(b, &cie, NULL);
	s->cfa = CFA_REGISTER;
	s->cfa_register = m->sp;
	s->cfa_offset = (int64_t)frame->size - m->return_at;
	s->caller = links(m) && frame->is_outermost ? CALLER_NONE : CALLER_SAVED;
	if (links(m) && frame->size > 0) {
		s->bx.kind = UNWIND_LOST;
		set_saved(&s->bx, UNWIND_SAVED_AT_CFA, -(int64_t)frame->size);
	}
	err = err ?: add_state(b, frame->limit);
	b->run.cie = NULL;
	return err;
}

/* table: Go's, which may have no code. */
static int build_rows(struct builder *b, struct go_table *table)
{
	const struct cfi_frames *f = b->frames;
	/*
	 * Compilers write some six rows a function, twice that in C with many saved registers. A
	 * file may have millions of functions without any. Unused room takes no memory.
	 */
	const size_t most = 1 << 20, rows = f->fde_count < most / 12 ? 12 * f->fde_count : most;
	struct run *r = &b->run;
	bool valid, is_described = false;
	int err = 0;

	if (!f->fde_count && !table->limit && !b->code->row_count)
		return 0;
	b->initial = calloc(f->cie_count + 1, sizeof(*b->initial));
	if (!b->initial ||
	    array_reserve(&b->rows->rows, &b->rows->room, rows, sizeof(*b->rows->rows))) {
		free(b->initial);
		return error_no_memory(b->e);
	}
	for (size_t i = 0; i < f->cie_count; i++) {
		const struct cfi_cie *cie = &f->cies[i];

		start_run(b, cie, NULL);
		r->c = cfi_cursor(f, cie->section, cie->instructions, cie->size);
		for (valid = true; valid && r->c.at < r->c.end;)
			valid = execute(r);
		if (valid)
			b->initial[i] = r->now;
	}
	/* If there is call frame information of Go's code, it is that of its own table. */
	for (size_t i = 0; i < f->fde_count && !is_described; i++)
		is_described = f->fdes[i].start >= table->start &&
			       f->fdes[i].start < table->limit &&
			       !f->cies[f->fdes[i].cie].section->eh;
	if (!is_described)
		err = go_table_frames(table, add_go_frame, b);
	while (!err && b->next_fde < f->fde_count)
		err = add_fde(b, &f->fdes[b->next_fde++]);
	free(b->initial);
	return err ?: add_gap(b, UINT64_MAX);
}

/* Finds Go's functions that switch stacks, if the file is Go's and has a symbol table. */
static void find_switches(struct builder *b, struct elf_file *file)
{
	bool assembly[SWITCH_COUNT] = { 0 }; /* found by the name with ".abi0" */
	struct symbol_reader reader;
	struct error ignored;
	GElf_Shdr section;
	const char *name;
	GElf_Sym symbol;

	if (!elf_find_section(file->elf, ".note.go.buildid", &section))
		return;
	if (symbol_reader_open(&reader, file, SHT_SYMTAB, &ignored) == 0)
		while (symbol_reader_next(&reader, &symbol, &name)) {
			if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
			    symbol.st_shndx == SHN_UNDEF || (*name != 'r' && *name != 't'))
				continue; /* as nearly all */
			for (size_t i = 0; i < SWITCH_COUNT; i++) {
				size_t length = strlen(switches[i].name);
				bool is_assembly;

				if (strncmp(name, switches[i].name, length) != 0)
					continue;
				is_assembly = strcmp(name + length, ".abi0") == 0;
				if (!is_assembly && (name[length] || assembly[i]))
					continue;
				b->switch_starts[i] = symbol.st_value;
				assembly[i] = is_assembly;
			}
		}
	symbol_reader_close(&reader);
}

static int read_rows(struct elf_file *file, struct unwind_rows *rows, struct error *e)
{
	const struct machine *machine = NULL;
	struct code_frames code = { 0 };
	struct cfi_frames frames;
	struct go_table table;
	struct builder *b;
	GElf_Ehdr header;
	int err;

	if (!gelf_getehdr(file->elf, &header))
		return 0;
	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
		if (machines[i].machine == header.e_machine &&
		    machines[i].class == header.e_ident[EI_CLASS])
			machine = &machines[i];
	if (!machine)
		return 0;
	b = calloc(1, sizeof(*b));
	if (!b)
		return error_no_memory(e);
	b->frames = &frames;
	b->code = &code;
	b->machine = machine;
	b->entry = header.e_entry;
	b->rows = rows;
	b->e = e;
	err = cfi_frames_read(&frames, file, e);
	if (!err && machine->machine == EM_X86_64)
		find_switches(b, file);
	go_table_open(&table, file, false);
	if (!err && !table.limit)
		err = code_frames_read(&code, file, &frames, e);
	err = err ?: build_rows(b, &table);
	go_table_close(&table);
	code_frames_free(&code);
	cfi_frames_free(&frames);
	index_free(&b->index);
	free(b);
	return err;
}

int cfi_read(int fd, const char *path, const struct context_wishes *wishes,
	     struct read_budget *budget, struct unwind_rows *rows, struct error *e)
{
	struct elf_file file;
	GElf_Phdr segment;
	int err, own;

	*rows = (struct unwind_rows){ 0 };
	if (fd >= 0)
		own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	else if (strcmp(path, "[vdso]") == 0)
		own = elf_open_vdso();
	else
		return 0;
	if (own < 0)
		return error_set(e, fd >= 0 ? errno : -own, "cannot read it");
	err = elf_file_open(&file, own, budget, e);
	if (err)
		return err;
	for (size_t i = 0; rows->segment_count < UNWIND_SEGMENTS_MAX &&
			   elf_next_segment(file.elf, &i, PT_LOAD, &segment);)
		if (segment.p_flags & PF_X)
			rows->segments[rows->segment_count++] = (struct unwind_segment){
				.offset = segment.p_offset,
				.size = segment.p_filesz,
				.address = segment.p_vaddr,
			};
	err = read_rows(&file, rows, e);
	language_find(&file, &rows->language);
	context_find(&file, path, wishes, &rows->context);
	rows->build_id_size = file.build_id_size;
	if (rows->build_id_size > sizeof(rows->build_id))
		rows->build_id_size = sizeof(rows->build_id);
	memcpy(rows->build_id, file.build_id, rows->build_id_size);
	elf_file_close(&file);
	if (err)
		unwind_rows_free(rows);
	return err;
}

static int compare_functions(const void *a, const void *b)
{
	return compare_u64(((const struct cfi_function *)a)->start,
			   ((const struct cfi_function *)b)->start);
}

int cfi_functions_read(struct cfi_functions *functions, const struct elf_file *file,
		       struct error *e)
{
	struct code_frames code = { 0 };
	struct cfi_frames frames;
	int err = cfi_frames_read(&frames, file, e);
	uint64_t end = 0;

	*functions = (struct cfi_functions){ 0 };
	err = err ?: code_frames_read(&code, file, &frames, e);
	if (!err && frames.fde_count + code.function_count) {
		functions->all =
			calloc(frames.fde_count + code.function_count, sizeof(*functions->all));
		err = functions->all ? 0 : error_no_memory(e);
	}
	for (size_t i = 0; i < frames.fde_count && !err; i++) {
		const struct cfi_fde *fde = &frames.fdes[i];

		if (fde->limit <= end)
			continue;
		functions->all[functions->count].start = fde->start > end ? fde->start : end;
		functions->all[functions->count++].limit = fde->limit;
		end = fde->limit;
	}
	/* These are between those. */
	for (size_t i = 0; i < code.function_count && !err; i++)
		functions->all[functions->count++] = code.functions[i];
	if (!err && code.function_count)
		qsort(functions->all, functions->count, sizeof(*functions->all), compare_functions);
	code_frames_free(&code);
	cfi_frames_free(&frames);
	return err;
}

void cfi_functions_free(struct cfi_functions *functions)
{
	free(functions->all);
	*functions = (struct cfi_functions){ 0 };
}

static int compare_function(const void *address, const void *function)
{
	const struct cfi_function *f = function;
	uint64_t at = *(const uint64_t *)address;

	return at < f->start ? -1 : at >= f->limit;
}

const struct cfi_function *cfi_functions_find(const struct cfi_functions *functions,
					      uint64_t address)
{
	if (!functions->count)
		return NULL;
	return bsearch(&address, functions->all, functions->count, sizeof(*functions->all),
		       compare_function);
}
