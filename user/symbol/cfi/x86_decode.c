// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/cfi/x86_decode.h"

/* Bound: format. */
#define SIZE_MAX_X86 15

#define RSP 4
#define RBP 5

/*
 * What follows an opcode, by row of 16:
 *   .  nothing		M  ModRM	X  invalid
 *   b  a byte		B  ModRM and a byte
 *   z  four bytes, or two with the prefix 66	Z  ModRM and these
 *   w  two bytes	e  three	r  an offset of four bytes	s  one of a byte
 */
static const char one_byte[] = "MMMMbzXXMMMMbzXX"  /* 00 */
			       "MMMMbzXXMMMMbzXX"  /* 10 */
			       "MMMMbzXXMMMMbzXX"  /* 20 */
			       "MMMMbzXXMMMMbzXX"  /* 30 */
			       "XXXXXXXXXXXXXXXX"  /* 40 */
			       "................"  /* 50 */
			       "XXXMXXXXzZbB...."  /* 60 */
			       "ssssssssssssssss"  /* 70 */
			       "BZXBMMMMMMMMMMMM"  /* 80 */
			       "..........X....."  /* 90 */
			       "........bz......"  /* a0 */
			       "bbbbbbbbzzzzzzzz"  /* b0 */
			       "BBw.XXBZe.w..bX."  /* c0 */
			       "MMMMXXX.MMMMMMMM"  /* d0 */
			       "ssssbbbbrrXs...."  /* e0 */
			       "X.XX..MM......MM"; /* f0 */

/* After 0f */
static const char two_byte[] = "MMMMX.....X.XM.B"  /* 00 */
			       "MMMMMMMMMMMMMMMM"  /* 10 */
			       "MMMMXXXXMMMMMMMM"  /* 20 */
			       "......X.XXXXXXXX"  /* 30 */
			       "MMMMMMMMMMMMMMMM"  /* 40 */
			       "MMMMMMMMMMMMMMMM"  /* 50 */
			       "MMMMMMMMMMMMMMMM"  /* 60 */
			       "BBBBMMM.MMXXMMMM"  /* 70 */
			       "rrrrrrrrrrrrrrrr"  /* 80 */
			       "MMMMMMMMMMMMMMMM"  /* 90 */
			       "...MBMXX...MBMMM"  /* a0 */
			       "MMMMMMMMMMBMMMMM"  /* b0 */
			       "MMBMBBBM........"  /* c0 */
			       "MMMMMMMMMMMMMMMM"  /* d0 */
			       "MMMMMMMMMMMMMMMM"  /* e0 */
			       "MMMMMMMMMMMMMMMM"; /* f0 */

struct decoder {
	const uint8_t *code;
	size_t size, at;
	bool bad;
	bool operand16, repeat, address32;
	uint8_t rex;
	bool has_modrm, in_memory;
	uint8_t mod, reg, rm; /* with the bits of REX */
	uint8_t base;	      /* of an address; X86_NO_REGISTER: none; 17: rip */
	bool has_index;
	int32_t displacement;
	int64_t immediate;
};

#define RIP 17

static uint8_t next_byte(struct decoder *d)
{
	if (d->at >= d->size) {
		d->bad = true;
		return 0;
	}
	return d->code[d->at++];
}

/* Reads a signed number of 1, 2, 4 or 8 bytes. */
static int64_t next_number(struct decoder *d, unsigned int size)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < size; i++)
		value |= (uint64_t)next_byte(d) << 8 * i;
	return (int64_t)(value << (64 - 8 * size)) >> (64 - 8 * size);
}

static void read_modrm(struct decoder *d)
{
	uint8_t byte = next_byte(d), sib, rm = byte & 7;

	d->has_modrm = true;
	d->mod = byte >> 6;
	d->reg = (byte >> 3 & 7) | (d->rex & 4) << 1;
	d->rm = rm | (d->rex & 1) << 3;
	d->base = d->rm;
	d->in_memory = d->mod != 3;
	if (!d->in_memory)
		return;
	if (rm == 4) {
		sib = next_byte(d);
		d->base = (sib & 7) | (d->rex & 1) << 3;
		d->has_index = (sib >> 3 & 7) != 4 || d->rex & 2;
		if ((sib & 7) == 5 && d->mod == 0)
			d->base = X86_NO_REGISTER;
	} else if (rm == 5 && d->mod == 0) {
		d->base = RIP;
	}
	if (d->mod == 1)
		d->displacement = next_number(d, 1);
	else if (d->mod == 2 || d->base == RIP || d->base == X86_NO_REGISTER)
		d->displacement = next_number(d, 4);
}

static void read_operands(struct decoder *d, char what)
{
	switch (what) {
	case 'M':
		read_modrm(d);
		break;
	case 'B':
		read_modrm(d);
		d->immediate = next_number(d, 1);
		break;
	case 'Z':
		read_modrm(d);
		d->immediate = next_number(d, d->operand16 ? 2 : 4);
		break;
	case 'b':
	case 's':
		d->immediate = next_number(d, 1);
		break;
	case 'z':
		d->immediate = next_number(d, d->operand16 ? 2 : 4);
		break;
	case 'w':
		d->immediate = next_number(d, 2);
		break;
	case 'e':
		next_number(d, 2);
		next_number(d, 1);
		break;
	case 'r':
		d->immediate = next_number(d, 4);
		break;
	case 'X':
		d->bad = true;
		break;
	}
}

/* An instruction with a prefix VEX, EVEX or XOP, which uses no general register as a stack. */
static void read_vector(struct decoder *d, uint8_t prefix)
{
	uint8_t map = 1, opcode, first = next_byte(d);
	bool is_xop = prefix == 0x8f;

	if (prefix != 0xc5) {
		map = first & (prefix == 0x62 ? 0x07 : 0x1f);
		next_byte(d);
	}
	if (prefix == 0x62)
		next_byte(d);
	opcode = next_byte(d);
	if (!is_xop && map == 1 && opcode == 0x77)
		return;
	read_modrm(d);
	if (is_xop ? map == 8 : map == 3 || (map == 1 && two_byte[opcode] == 'B'))
		next_byte(d);
	if (is_xop && map == 10)
		next_number(d, 4);
	if (map == 0 || (map > 6 && !is_xop))
		d->bad = true;
}

/* What an instruction with ModRM of the one-byte map writes to rsp and rbp. */
static void set_stack(const struct decoder *d, uint8_t opcode, struct x86_instruction *i)
{
	const bool wide = d->rex & 8;
	uint8_t to = X86_NO_REGISTER, from; /* registers */

	if (opcode < 0x40 && (opcode & 7) < 4) { /* add, or, adc, sbb, and, sub, xor; cmp */
		bool to_reg = opcode & 2;

		if ((opcode & 0x38) != 0x38 && (to_reg || !d->in_memory))
			to = to_reg ? d->reg : d->rm;
		if ((opcode & 0xfd) == 0x31 && !d->in_memory && d->reg == RBP && d->rm == RBP)
			i->stack = X86_CLEAR_BP;
	} else if (opcode == 0x81 || opcode == 0x83) {
		if (d->in_memory || d->rm != RSP || (d->reg & 7) == 7)
			return;
		i->stack = X86_SP_LOST;
		if (wide && ((d->reg & 7) == 0 || (d->reg & 7) == 5)) {
			i->stack = X86_ADD;
			i->value = (d->reg & 7) == 0 ? d->immediate : -d->immediate;
		}
		return;
	} else if (opcode == 0x89 || opcode == 0x8b) {
		to = opcode == 0x8b ? d->reg : d->rm;
		from = opcode == 0x8b ? d->rm : d->reg;
		if (d->in_memory && opcode == 0x89)
			return;
		if (wide && !d->in_memory && to == RBP && from == RSP)
			i->stack = X86_BP_FROM_SP;
		if (wide && !d->in_memory && to == RSP && from == RBP) {
			i->stack = X86_SP_FROM_BP;
			return;
		}
	} else if (opcode == 0x8d) {
		to = d->reg;
		if (wide && to == RSP && !d->has_index && (d->base == RSP || d->base == RBP)) {
			i->stack = d->base == RSP ? X86_ADD : X86_SP_FROM_BP;
			i->value = d->displacement;
			return;
		}
		if (wide && to == RBP && !d->has_index && d->base == RSP) {
			i->stack = X86_BP_FROM_SP;
			i->value = d->displacement;
		}
	} else if (opcode == 0x87 || opcode == 0x63) {
		to = d->reg;
		if (opcode == 0x87 && !d->in_memory && d->rm == RSP)
			to = RSP;
	} else if (opcode == 0x8f) {
		i->stack = X86_POP;
		i->reg = d->in_memory ? X86_NO_REGISTER : d->rm;
		return;
	} else if (opcode == 0xff && (d->reg & 7) == 6) {
		i->stack = X86_PUSH;
		return;
	} else if ((opcode == 0xc7 || opcode == 0xff || opcode == 0xf7 || opcode == 0xc1 ||
		    opcode == 0xd1 || opcode == 0xd3) &&
		   !d->in_memory && (opcode != 0xff || (d->reg & 7) < 2)) {
		to = d->rm;
	}
	if (to == RSP)
		i->stack = X86_SP_LOST;
}

static void set_one_byte(const struct decoder *d, uint8_t opcode, struct x86_instruction *i)
{
	uint8_t low = (opcode & 7) | (d->rex & 1) << 3;

	switch (opcode) {
	case 0x50 ... 0x57:
		i->stack = X86_PUSH;
		i->reg = low;
		break;
	case 0x58 ... 0x5f:
		i->stack = low == RSP ? X86_SP_LOST : X86_POP;
		i->reg = low;
		break;
	case 0x68:
	case 0x6a:
	case 0x9c:
		i->stack = X86_PUSH;
		break;
	case 0x9d:
		i->stack = X86_POP;
		break;
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
		i->flow = X86_BRANCH;
		break;
	case 0x90:
		i->is_padding = !(d->rex & 1) && !d->repeat;
		break;
	case 0x91 ... 0x97:
		i->stack = low == RSP ? X86_SP_LOST : X86_SAME;
		break;
	case 0xb8 ... 0xbf:
		i->stack = low == RSP ? X86_SP_LOST : X86_SAME;
		break;
	case 0xc2:
	case 0xca:
	case 0xcb:
	case 0xcf:
		i->flow = X86_STOP; /* in code for other models of memory */
		break;
	case 0xc3:
		i->flow = X86_RETURN;
		break;
	case 0xc8:
		i->stack = X86_SP_LOST;
		break;
	case 0xc9:
		i->stack = X86_LEAVE;
		break;
	case 0xcc:
		i->is_padding = true;
		i->flow = X86_STOP;
		break;
	case 0xf4:
		i->flow = X86_STOP;
		break;
	case 0xe8:
		i->flow = X86_CALL;
		break;
	case 0xe9:
	case 0xeb:
		i->flow = X86_JUMP;
		break;
	case 0xff:
		if ((d->reg & 7) == 2 || (d->reg & 7) == 3)
			i->flow = X86_CALL_INDIRECT;
		else if ((d->reg & 7) == 4 || (d->reg & 7) == 5)
			i->flow = X86_JUMP_INDIRECT;
		break;
	}
	if (d->has_modrm)
		set_stack(d, opcode, i);
	if (d->operand16 && (i->stack == X86_PUSH || i->stack == X86_POP))
		i->stack = X86_SP_LOST;
}

bool x86_decode(const uint8_t *code, size_t size, struct x86_instruction *i)
{
	struct decoder d = { .code = code, .size = size < SIZE_MAX_X86 ? size : SIZE_MAX_X86 };
	uint8_t opcode;
	char what = 0;

	*i = (struct x86_instruction){ .reg = X86_NO_REGISTER };
	for (bool more = true; more;) {
		switch (opcode = next_byte(&d)) {
		case 0x66:
			d.operand16 = true;
			break;
		case 0x67:
			d.address32 = true;
			break;
		case 0xf2:
		case 0xf3:
			d.repeat = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0xf0:
			break;
		default:
			more = false;
		}
		more = more && !d.bad;
	}
	if ((opcode & 0xf0) == 0x40) {
		d.rex = opcode;
		opcode = next_byte(&d);
	}
	if (opcode == 0x0f) {
		opcode = next_byte(&d);
		what = two_byte[opcode];
		if (opcode == 0x38 || opcode == 0x3a) {
			next_byte(&d);
			what = opcode == 0x38 ? 'M' : 'B';
		}
		read_operands(&d, what);
		if (opcode >= 0x80 && opcode <= 0x8f)
			i->flow = X86_BRANCH;
		else if (opcode == 0x0b || opcode == 0xb9 || opcode == 0xff || opcode == 0x07 ||
			 opcode == 0x35)
			i->flow = X86_STOP;
		else if (opcode >= 0x40 && opcode <= 0x4f && d.reg == RSP) /* cmov */
			i->stack = X86_SP_LOST;
		i->is_padding = opcode == 0x1f; /* nop */
	} else if (!d.rex && (opcode == 0xc4 || opcode == 0xc5 || opcode == 0x62 ||
			      (opcode == 0x8f && d.at < d.size && (code[d.at] & 0x1f) >= 8))) {
		read_vector(&d, opcode);
	} else {
		what = one_byte[opcode];
		/* With REX.W operands have four bytes, whatever the prefix, or eight. */
		if (d.rex & 8)
			d.operand16 = false;
		if (opcode >= 0xb8 && opcode <= 0xbf && d.rex & 8)
			next_number(&d, 8);
		else if (opcode >= 0xa0 && opcode <= 0xa3)
			next_number(&d, d.address32 ? 4 : 8);
		else
			read_operands(&d, what);
		/* The group of not and neg has test, with one more operand. */
		if (opcode == 0xf6 && (d.reg & 7) < 2)
			next_number(&d, 1);
		if (opcode == 0xf7 && (d.reg & 7) < 2)
			next_number(&d, d.operand16 ? 2 : 4);
		set_one_byte(&d, opcode, i);
		if (opcode == 0x8d && d.base == RIP && d.in_memory) {
			i->has_target = true;
			i->target = (int64_t)d.at + d.displacement;
		}
	}
	i->size = d.at;
	if (what == 'r' || what == 's') {
		i->has_target = true;
		i->target = (int64_t)d.at + d.immediate;
	}
	return !d.bad;
}
