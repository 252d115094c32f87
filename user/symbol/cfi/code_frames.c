// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/cfi/code_frames.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/cfi/x86_decode.h"
#include "symbol/symbol_table.h"
#include "util/array.h"
#include "util/sum.h"

/*
 * Of a file: C libraries have half a megabyte, static programs some.
 * Bound: files: bytes of code, sections, functions and bytes of each whose frames are found from
 * the code itself; then: none of the code, or not that function, has rows; seen: stack end gap.
 */
#define CODE_MAX     ((uint64_t)64 * 1024 * 1024)
#define RANGES_MAX   64
#define FUNCTION_MAX ((uint64_t)256 * 1024)
#define FRAME_MAX    (1 << 20)
#define STARTS_MAX   ((size_t)1 << 20)
/*
 * Of symbols, and of their names: a program of gigabytes has as many.
 * Bound: files: bytes of a symbol table, and of its names, that tell where functions begin; then:
 * it is not used; seen: stack end gap.
 */
#define SYMBOLS_MAX ((uint64_t)32 * 1024 * 1024)

/*
 * What no FDE describes is read if it is this part of the code at least. A few functions are so in
 * each file: what compilers and linkers add, which the walk leaves by other means. Between
 * functions is padding.
 * Bound: pace.
 */
#define LEAST_PART  32
#define MOST_PART   4 /* from here on calls from other code are searched, too */
#define PADDING_MAX 32

/*
 * Before an instruction. Where paths meet, it only becomes less: sp is lost, bp is no frame
 * pointer. So each path is followed a few times at most.
 */
struct state {
	bool known;
	bool sp_lost;
	bool outermost; /* there is no caller: the function has cleared rbp, as the ABI asks for */
	bool unused;	/* no padding: states are compared as bytes */
	int32_t cfa;	/* the CFA less sp */
	int32_t bp_cfa; /* the CFA less bp, where bp is a frame pointer; else 0 */
	int32_t bp_at;	/* where the caller's bp is saved, from the CFA; 0: in bp */
	int32_t bx_at;	/* the same of rbx */
};

/* A section of code, in memory. */
struct range {
	uint64_t start, limit, offset;
	uint8_t *bytes;
};

/* Code that no FDE describes. */
struct gap {
	const struct range *range;
	uint64_t start, limit;
};

/* Where a function begins, and what says so. */
struct start {
	uint64_t address;
	enum evidence {
		BY_CALL,    /* or a symbol: surely */
		BY_ADDRESS, /* code takes its address: it may be a label */
		BY_PLACE,   /* behind a function's end, or a jump leads there: it may be anything */
		NONE,	    /* a label */
	} evidence;
};

struct analysis {
	struct code_frames *result;
	struct range ranges[RANGES_MAX];
	size_t range_count;
	struct gap *gaps; /* sorted */
	size_t gap_count, gap_room;
	uint64_t entry;
	struct start *starts; /* of functions: those that are sorted, then new ones */
	size_t sorted_count, start_count, start_room;
	size_t next_start; /* the first one that is above what was analysed */
	/* of the function that is analysed */
	const struct gap *gap;
	uint64_t start, limit;
	struct state *states; /* by byte, FUNCTION_MAX; cleared up to `touched` between functions */
	uint64_t touched;
	struct state at_table; /* where it jumps through a table */
	enum evidence evidence;
	bool is_proven;	      /* it returns, or goes to another function, and the stack is right */
	bool leads_elsewhere; /* to what is not known to be a function */
	uint32_t *pending;    /* offsets of instructions whose state has changed */
	size_t pending_count, pending_room;
	bool is_odd;	/* no rows can be given for it */
	bool is_listed; /* its starts are known: functions and rows are wanted */
	struct error *e;
};

static int add_start(struct analysis *a, uint64_t address, enum evidence evidence)
{
	if (a->start_count == STARTS_MAX)
		return 0;
	if (array_reserve(&a->starts, &a->start_room, a->start_count + 1, sizeof(*a->starts)))
		return error_no_memory(a->e);
	a->starts[a->start_count++] = (struct start){ address, evidence };
	return 0;
}

/* Of those of one address the surest is the first. */
static int compare_starts(const void *a, const void *b)
{
	const struct start *x = a, *y = b;

	return compare_u64(x->address, y->address) ?: (int)x->evidence - (int)y->evidence;
}

static int compare_start(const void *address, const void *start)
{
	return compare_u64(*(const uint64_t *)address, ((const struct start *)start)->address);
}

static struct start *find_start(const struct analysis *a, uint64_t address)
{
	return bsearch(&address, a->starts, a->sorted_count, sizeof(*a->starts), compare_start);
}

static int compare_ranges(const void *a, const void *b)
{
	return compare_u64(((const struct range *)a)->start, ((const struct range *)b)->start);
}

static int add_gap(struct analysis *a, const struct range *r, uint64_t start, uint64_t limit)
{
	if (start + PADDING_MAX > limit)
		return 0;
	if (array_reserve(&a->gaps, &a->gap_room, a->gap_count + 1, sizeof(*a->gaps)))
		return error_no_memory(a->e);
	a->gaps[a->gap_count++] = (struct gap){ r, start, limit };
	return 0;
}

/* Finds the sections of code and the gaps. There are none if it is too much code. */
static int find_gaps(struct analysis *a, Elf *elf, const struct cfi_frames *f)
{
	uint64_t all = 0, end = 0, start, limit;
	Elf_Scn *scn = NULL;
	GElf_Shdr section;
	size_t fde = 0;
	int err = 0;

	while (a->range_count < RANGES_MAX && (scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &section) || !(section.sh_flags & SHF_EXECINSTR) ||
		    section.sh_type != SHT_PROGBITS || !section.sh_size)
			continue;
		if (section.sh_size > CODE_MAX || section.sh_addr > INT64_MAX)
			return 0;
		all += section.sh_size;
		a->ranges[a->range_count++] = (struct range){
			.start = section.sh_addr,
			.limit = section.sh_addr + section.sh_size,
			.offset = section.sh_offset,
		};
	}
	if (all > CODE_MAX)
		return 0;
	qsort(a->ranges, a->range_count, sizeof(*a->ranges), compare_ranges);
	for (size_t i = 0; i < a->range_count && !err; i++) {
		const struct range *r = &a->ranges[i];

		end = end > r->start ? end : r->start;
		for (; fde < f->fde_count && f->fdes[fde].start < r->limit && !err; fde++) {
			start = f->fdes[fde].start;
			limit = f->fdes[fde].limit;
			if (start > end)
				err = add_gap(a, r, end, start);
			end = limit > end ? limit : end;
		}
		if (end < r->limit && !err)
			err = add_gap(a, r, end, r->limit);
		end = r->limit > end ? r->limit : end; /* malicious sections overlap */
	}
	return err;
}

/* Adds the symbols of a table that can be starts of functions. */
static int add_symbols(struct analysis *a, const struct elf_file *file, GElf_Word type)
{
	struct elf_file own = *file; /* others use the names that the file has read */
	struct symbol_reader reader;
	GElf_Shdr table, strings;
	struct error ignored;
	const char *name;
	GElf_Sym symbol;
	int err = 0;

	if (elf_find_type(file->elf, type, &table) &&
	    (table.sh_size > SYMBOLS_MAX ||
	     !gelf_getshdr(elf_getscn(file->elf, table.sh_link), &strings) ||
	     strings.sh_size > SYMBOLS_MAX))
		return -EFBIG;
	memset(own.strings, 0, sizeof(own.strings));
	if (symbol_reader_open(&reader, &own, type, &ignored) == 0)
		while (!err && symbol_reader_next(&reader, &symbol, &name))
			if (symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE &&
			    (GELF_ST_TYPE(symbol.st_info) == STT_FUNC ||
			     (GELF_ST_TYPE(symbol.st_info) == STT_NOTYPE &&
			      GELF_ST_BIND(symbol.st_info) != STB_LOCAL)))
				err = add_start(a, symbol.st_value, BY_CALL);
	symbol_reader_close(&reader);
	for (size_t i = 0; i < ELF_STRING_TABLES; i++)
		free(own.strings[i]);
	return err;
}

/* Adds the targets of calls, and the addresses that code takes, of some code. */
static int add_targets(struct analysis *a, const struct range *r, uint64_t start, uint64_t limit)
{
	struct x86_instruction i;
	int err = 0;

	for (uint64_t at = start; at < limit && !err; at += i.size) {
		if (!x86_decode(r->bytes + (at - r->start), limit - at, &i)) {
			i.size = 1;
			continue;
		}
		if (i.has_target && (i.flow == X86_CALL || i.flow == X86_NEXT))
			err = add_start(a, at + i.target,
					i.flow == X86_CALL ? BY_CALL : BY_ADDRESS);
	}
	return err;
}

/* Reads code, and finds where functions start. -EIO: it cannot be read. */
static int find_starts(struct analysis *a, const struct elf_file *file)
{
	uint64_t all = 0, described = 0;
	int err = 0;

	for (size_t i = 0; i < a->range_count; i++)
		described += a->ranges[i].limit - a->ranges[i].start;
	for (size_t i = 0; i < a->gap_count; i++)
		all += a->gaps[i].limit - a->gaps[i].start;
	if (!all || all < described / LEAST_PART)
		return -EIO;
	/* What is not read takes no memory. */
	for (size_t i = 0; i < a->range_count && !err; i++) {
		struct range *r = &a->ranges[i];

		r->bytes = calloc(1, r->limit - r->start);
		err = r->bytes ? 0 : error_no_memory(a->e);
	}
	for (size_t i = 0;
	     i < (all < described / MOST_PART ? a->gap_count : a->range_count) && !err; i++) {
		const struct range *r = &a->ranges[i];
		uint64_t start = r->start, limit = r->limit;

		if (all < described / MOST_PART) {
			r = a->gaps[i].range;
			start = a->gaps[i].start;
			limit = a->gaps[i].limit;
		}
		if (!read_budget_has_memory(file->source.budget, limit - start) ||
		    elf_source_read(&file->source, r->bytes + (start - r->start), limit - start,
				    r->offset + (start - r->start)) != limit - start)
			return -EIO;
		err = add_targets(a, r, start, limit);
	}
	err = err ?: add_start(a, a->entry, BY_CALL);
	err = err ?: add_symbols(a, file, SHT_SYMTAB);
	return err ?: add_symbols(a, file, SHT_DYNSYM);
}

/* --- One function --- */

/* Sets the state before an instruction: adds it to what is known. */
static int merge(struct analysis *a, uint64_t address, const struct state *from)
{
	uint32_t offset = address - a->start;
	struct state *to = &a->states[offset], before = *to;

	if (!to->known) {
		*to = *from;
	} else if (!to->outermost || !from->outermost) {
		to->sp_lost = to->sp_lost || from->sp_lost;
		if (to->bp_cfa != from->bp_cfa)
			to->bp_cfa = 0;
		if (to->outermost != from->outermost || to->bp_at != from->bp_at ||
		    to->bx_at != from->bx_at || (!to->sp_lost && to->cfa != from->cfa))
			a->is_odd = true;
		if (to->sp_lost)
			to->cfa = 0;
	}
	if (to->sp_lost && !to->bp_cfa)
		a->is_odd = true;
	if (memcmp(to, &before, sizeof(before)) == 0)
		return 0;
	if (a->touched <= offset)
		a->touched = offset + 1;
	if (array_reserve(&a->pending, &a->pending_room, a->pending_count + 1, sizeof(*a->pending)))
		return error_no_memory(a->e);
	a->pending[a->pending_count++] = offset;
	return 0;
}

/* What an instruction does to a state. */
static void apply(struct analysis *a, const struct x86_instruction *i, struct state *s)
{
	int32_t *saved = i->reg == 5 ? &s->bp_at : i->reg == 3 ? &s->bx_at : NULL;

	if (s->outermost)
		return;
	switch (i->stack) {
	case X86_PUSH:
		s->cfa += 8;
		if (saved && !*saved && !s->sp_lost && !(i->reg == 5 && s->bp_cfa))
			*saved = -s->cfa;
		break;
	case X86_POP:
		if (saved && (*saved == -s->cfa || s->sp_lost))
			*saved = 0;
		if (i->reg == 5)
			s->bp_cfa = 0;
		s->cfa -= 8;
		break;
	case X86_ADD:
		s->cfa -= i->value;
		break;
	case X86_BP_FROM_SP:
		s->bp_cfa = s->sp_lost || !s->bp_at ? 0 : s->cfa - i->value;
		break;
	case X86_SP_FROM_BP:
		if (s->bp_cfa) {
			s->cfa = s->bp_cfa - i->value;
			s->sp_lost = false;
		} else {
			s->sp_lost = true;
		}
		break;
	case X86_LEAVE:
		s->sp_lost = !s->bp_cfa;
		s->cfa = s->bp_cfa - 8;
		s->bp_cfa = s->bp_at = 0;
		break;
	case X86_CLEAR_BP:
		s->outermost = !s->bp_at;
		s->bp_cfa = 0;
		break;
	case X86_SP_LOST:
		s->sp_lost = true;
		break;
	}
	/* Below the return address, or of no real frame */
	if (s->outermost)
		return;
	if (s->sp_lost)
		s->cfa = 0;
	else if (s->cfa < 8 || s->cfa > FRAME_MAX)
		a->is_odd = true;
}

/* Whether it is as at a function's start. rbx may have been loaded from where it is saved. */
static bool is_at_start(const struct state *s)
{
	return s->outermost || (!s->sp_lost && s->cfa == 8 && !s->bp_at);
}

static const uint8_t *code_at(const struct analysis *a, uint64_t address)
{
	return a->gap->range->bytes + (address - a->gap->range->start);
}

/* Executes an instruction, and sets the state before those that may be the next one. */
static int follow(struct analysis *a, uint64_t address)
{
	struct state s = a->states[address - a->start];
	struct x86_instruction i;
	struct start *start;
	uint64_t next, target;
	int err = 0;

	if (!x86_decode(code_at(a, address), a->limit - address, &i)) {
		a->is_odd = true;
		return 0;
	}
	next = address + i.size;
	target = address + i.target;
	if (a->touched < next - a->start)
		a->touched = next - a->start;
	if (i.flow == X86_RETURN) {
		a->is_odd = a->is_odd || !is_at_start(&s);
		a->is_proven = true;
	}
	apply(a, &i, &s);
	if ((i.flow == X86_JUMP || i.flow == X86_BRANCH) && target >= a->start &&
	    target < a->limit) {
		err = merge(a, target, &s);
	} else if (i.flow == X86_JUMP || i.flow == X86_BRANCH) {
		/* A call in place of a return, or to a part of the function that is elsewhere */
		if (i.flow == X86_JUMP && is_at_start(&s) && a->evidence == BY_CALL &&
		    !a->is_listed)
			err = add_start(a, target, BY_PLACE);
		if (!find_start(a, target) && target >= a->gap->start && target < a->gap->limit)
			a->leads_elsewhere = true;
		else
			a->is_proven = a->is_proven || is_at_start(&s);
	}
	if (i.flow == X86_JUMP_INDIRECT && !is_at_start(&s)) {
		if (a->at_table.known && memcmp(&a->at_table, &s, sizeof(s)) != 0)
			a->is_odd = true;
		a->at_table = s;
	}
	if (err || i.flow == X86_RETURN || i.flow == X86_JUMP || i.flow == X86_STOP ||
	    i.flow == X86_JUMP_INDIRECT)
		return err;
	if (next < a->limit)
		return merge(a, next, &s);
	/* A call that does not return may be the last instruction before padding. */
	if (i.flow == X86_CALL || i.flow == X86_CALL_INDIRECT || i.is_padding)
		return 0;
	start = find_start(a, next);
	if (start && start->evidence == BY_ADDRESS)
		start->evidence = NONE;
	if (!is_at_start(&s))
		a->is_odd = true;
	return 0;
}

static struct unwind_rule rule_of(const struct state *s)
{
	struct unwind_rule rule = { .cfa = UNWIND_SP, .offset = s->cfa };

	if (s->outermost)
		return (struct unwind_rule){ .cfa = UNWIND_END };
	if (s->sp_lost) {
		rule.cfa = UNWIND_BP;
		rule.offset = s->bp_cfa;
	}
	if (s->bp_at) {
		rule.bp = UNWIND_SAVED_AT_CFA;
		rule.bp_at = s->bp_at / 8;
	}
	if (s->bx_at / 8 < SCHAR_MIN) {
		rule.bx = UNWIND_LOST;
	} else if (s->bx_at) {
		rule.bx = UNWIND_SAVED_AT_CFA;
		rule.bx_at = s->bx_at / 8;
	}
	if (s->bp_at / 8 < SHRT_MIN)
		rule = (struct unwind_rule){ .cfa = UNWIND_GAP };
	return rule;
}

static int add_row(struct analysis *a, uint64_t address, struct unwind_rule rule)
{
	struct code_frames *c = a->result;

	/* Where a function ends, another one may begin. */
	if (c->row_count && c->rows[c->row_count - 1].address == address)
		c->row_count--;
	if (c->row_count && !memcmp(&c->rows[c->row_count - 1].rule, &rule, sizeof(rule)))
		return 0;
	if (array_reserve(&c->rows, &c->row_room, c->row_count + 1, sizeof(*c->rows)))
		return error_no_memory(a->e);
	c->rows[c->row_count++] = (struct code_row){ address, rule };
	return 0;
}

/* Adds the function, which ends at `end`, and its rows. */
static int add_function(struct analysis *a, uint64_t end)
{
	static const struct unwind_rule gap = { .cfa = UNWIND_GAP };
	struct code_frames *c = a->result;
	struct x86_instruction i;
	int err = 0;

	for (uint64_t at = a->start; at < end && !err && !a->is_odd; at += i.size) {
		const struct state *s = &a->states[at - a->start];
		struct unwind_rule rule = s->known ? rule_of(s) : gap;

		i.size = 1;
		if (a->start == a->entry)
			rule = (struct unwind_rule){ .cfa = UNWIND_END };
		if (s->known)
			x86_decode(code_at(a, at), a->limit - at, &i);
		err = add_row(a, at, rule);
	}
	if (!a->is_odd)
		err = err ?: add_row(a, end, gap);
	if (!err && array_reserve(&c->functions, &c->function_room, c->function_count + 1,
				  sizeof(*c->functions)))
		err = error_no_memory(a->e);
	if (!err)
		c->functions[c->function_count++] = (struct cfi_function){ a->start, end };
	return err;
}

/* Follows all paths. */
static int follow_pending(struct analysis *a)
{
	int err = 0;

	while (!err && a->pending_count)
		err = follow(a, a->start + a->pending[--a->pending_count]);
	return err;
}

/* Analyses the function at an address, which ends at `limit` at the latest. Sets *end. */
static int analyse(struct analysis *a, uint64_t start, uint64_t limit, enum evidence evidence,
		   uint64_t *end)
{
	const struct state first = { .known = true, .cfa = 8 };
	struct x86_instruction i;
	int err;

	a->start = start;
	a->limit = limit - start < FUNCTION_MAX ? limit : start + FUNCTION_MAX;
	a->evidence = evidence;
	a->is_odd = a->is_proven = a->leads_elsewhere = false;
	a->at_table.known = false;
	a->touched = a->pending_count = 0;
	err = merge(a, start, &first);
	err = err ?: follow_pending(a);
	/* What is not reached yet are cases of a table, and up to the next function they are its.
	 */
	for (uint64_t at = start; !err && a->at_table.known && at < a->limit; at += i.size) {
		if (!x86_decode(code_at(a, at), a->limit - at, &i) && !a->states[at - start].known)
			a->is_odd = true;
		if (a->is_odd)
			break;
		if (a->states[at - start].known || i.is_padding)
			continue;
		err = merge(a, at, &a->at_table);
		err = err ?: follow_pending(a);
	}
	*end = start + a->touched;
	/* Without proof this may be a part of another function, with a frame that is not known. */
	if (!err && a->is_listed &&
	    (evidence == BY_CALL ||
	     (!a->is_odd && !a->leads_elsewhere && (a->is_proven || evidence == BY_ADDRESS))))
		err = add_function(a, *end);
	memset(a->states, 0, a->touched * sizeof(*a->states));
	return err;
}

static int analyse_gap(struct analysis *a, struct read_budget *budget)
{
	uint64_t end = a->gap->start, limit;
	int err = 0;

	for (uint64_t at = end; at < a->gap->limit && !err; at = end > at ? end : at + 1) {
		const uint8_t *bytes = code_at(a, at);
		enum evidence evidence = BY_PLACE;
		struct x86_instruction i;

		while (a->next_start < a->sorted_count && a->starts[a->next_start].address < at)
			a->next_start++;
		end = at + 1;
		if (!x86_decode(bytes, a->gap->limit - at, &i))
			continue;
		end = at + i.size;
		/* Two zero bytes are an instruction, too. */
		if (i.is_padding || !*bytes)
			continue;
		if (!read_budget_take(budget, 0))
			return 0;
		if (a->next_start < a->sorted_count && a->starts[a->next_start].address == at)
			evidence = a->starts[a->next_start++].evidence;
		limit = a->gap->limit;
		if (a->next_start < a->sorted_count && a->starts[a->next_start].address < limit)
			limit = a->starts[a->next_start].address;
		err = analyse(a, at, limit, evidence, &end);
	}
	return err;
}

int code_frames_read(struct code_frames *c, const struct elf_file *file,
		     const struct cfi_frames *frames, struct error *e)
{
	struct analysis a = { .result = c, .e = e };
	GElf_Ehdr header;
	int err;

	*c = (struct code_frames){ 0 };
	if (!gelf_getehdr(file->elf, &header) || header.e_machine != EM_X86_64 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	a.entry = header.e_entry;
	err = find_gaps(&a, file->elf, frames);
	err = err ?: find_starts(&a, file);
	if (!err)
		a.states = calloc(FUNCTION_MAX, sizeof(*a.states));
	if (!err && !a.states)
		err = error_no_memory(e);
	/* Some functions are only jumped to, in place of a return: found by the first time. */
	for (int i = 0; i < 2 && !err; i++) {
		size_t kept = 0;

		qsort(a.starts, a.start_count, sizeof(*a.starts), compare_starts);
		for (size_t j = 0; j < a.start_count; j++)
			if (a.starts[j].evidence != NONE &&
			    (!kept || a.starts[j].address != a.starts[kept - 1].address))
				a.starts[kept++] = a.starts[j];
		a.start_count = a.sorted_count = kept;
		a.next_start = 0;
		a.is_listed = i;
		for (size_t j = 0; j < a.gap_count && !err; j++) {
			a.gap = &a.gaps[j];
			err = analyse_gap(&a, file->source.budget);
		}
	}
	for (size_t i = 0; i < a.range_count; i++)
		free(a.ranges[i].bytes);
	free(a.gaps);
	free(a.starts);
	free(a.states);
	free(a.pending);
	if (err)
		code_frames_free(c);
	return err == -ENOMEM ? err : 0;
}

void code_frames_free(struct code_frames *c)
{
	free(c->rows);
	free(c->functions);
	*c = (struct code_frames){ 0 };
}
