/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SCRIPT_PERL_VERSIONS_H
#define PROFIL_SCRIPT_PERL_VERSIONS_H

/*
 * A version of Perl is known by how many operations it has: that is the size of a table that it
 * exports. Each has another number of the operation nextstate; its structures are alike
 * (bpf/script/perl_layout.h). tests/cli/perl_layout.sh compares all with the headers here. Tried
 * with 5.36.0, 5.38.2, 5.40.1 and 5.42.3.
 */
static const struct {
	unsigned int version, operations, nextstate;
} perl_versions[] = {
	{ 0x524, 414, 195 },
	{ 0x526, 421, 198 },
	{ 0x528, 422, 198 },
	{ 0x52a, 426, 202 },
};

#endif
