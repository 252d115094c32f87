// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compares where profil takes Perl's fields to be with the headers of one version of Perl, and
 * prints the differences. Built and run by perl_layout.sh.
 */
#include <string.h>

#include "bpf/script/language.h"
#include "layout.h"
#include "script/perl_versions.h"

#define PERL_NO_GET_CONTEXT
#include <EXTERN.h>
#include <perl.h>
#undef printf /* Perl forbids it to its own files. */
#undef puts

#define FIELD(ours, member, theirs, field) \
	compare(#ours "." #member, offsetof(struct ours, member), offsetof(theirs, field))
#define BODY(ours, member, theirs, field, begin) \
	compare(#ours "." #member, offsetof(struct ours, member) + (begin), offsetof(theirs, field))
#define SAME(ours, theirs) compare(#ours, ours, theirs)

int main(void)
{
	size_t i = 0;

	SAME(PERL_INTERPRETER_OP, offsetof(struct interpreter, Iop));
	SAME(PERL_INTERPRETER_COP, offsetof(struct interpreter, Icurcop));
	SAME(PERL_INTERPRETER_STACK, offsetof(struct interpreter, Icurstackinfo));
	compare("the interpreter is larger than PERL_INTERPRETER_BYTES", 0,
		sizeof(struct interpreter) > PERL_INTERPRETER_BYTES);

	FIELD(perl_stackinfo, contexts, PERL_SI, si_cxstack);
	FIELD(perl_stackinfo, prev, PERL_SI, si_prev);
	FIELD(perl_stackinfo, last, PERL_SI, si_cxix);

	compare("struct perl_context", sizeof(struct perl_context), sizeof(PERL_CONTEXT));
	FIELD(perl_context, type, PERL_CONTEXT, cx_u.cx_blk.blku_type);
	FIELD(perl_context, oldcop, PERL_CONTEXT, cx_u.cx_blk.blku_oldcop);
	FIELD(perl_context, retop, PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_sub.retop);
	FIELD(perl_context, retop, PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_eval.retop);
	FIELD(perl_context, cv, PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_sub.cv);
	FIELD(perl_context, cv, PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_format.cv);
	FIELD(perl_context, old_namesv, PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_eval.old_namesv);
	SAME(PERL_CONTEXT_TYPE(0xff), CXTYPEMASK);
	SAME(PERL_CONTEXT_NULL, CXt_NULL);
	SAME(PERL_CONTEXT_SUB, CXt_SUB);
	SAME(PERL_CONTEXT_FORMAT, CXt_FORMAT);
	SAME(PERL_CONTEXT_EVAL, CXt_EVAL);
	SAME(PERL_CONTEXT_DEFER, CXt_DEFER);
	SAME(PERL_CONTEXT_MULTICALL, CXp_MULTICALL);
	SAME(PERL_CONTEXT_EVAL_BLOCK, CXp_EVALBLOCK);
	SAME(PERL_CONTEXT_SUB_RE, CXp_SUB_RE);
	SAME(PERL_CONTEXT_SUB_RE_FAKE, CXp_SUB_RE_FAKE);

	FIELD(perl_cop, next, COP, op_next);
	/* Bit-fields: the type is the first. */
	compare("perl_cop.type", offsetof(struct perl_cop, type),
		offsetof(COP, op_targ) + sizeof(PADOFFSET));
	FIELD(perl_cop, line, COP, cop_line);
	FIELD(perl_cop, file, COP, cop_file);
	FIELD(perl_cop, seq, COP, cop_seq);

	FIELD(perl_sv, any, SV, sv_any);
	FIELD(perl_sv, flags, SV, sv_flags);
	FIELD(perl_sv, u, SV, sv_u);
	SAME(PERL_SV_TYPE(~0U), SVTYPEMASK);
	SAME(PERL_SV_CV, SVt_PVCV);
	SAME(PERL_SV_FORMAT, SVt_PVFM);

	BODY(perl_cv, stash, XPVCV, xcv_stash, PERL_CV_BODY);
	BODY(perl_cv, start, XPVCV, xcv_start_u, PERL_CV_BODY);
	BODY(perl_cv, root, XPVCV, xcv_root_u, PERL_CV_BODY);
	BODY(perl_cv, gv, XPVCV, xcv_gv_u, PERL_CV_BODY);
	BODY(perl_cv, file, XPVCV, xcv_file, PERL_CV_BODY);
	BODY(perl_cv, flags, XPVCV, xcv_flags, PERL_CV_BODY);
	SAME(PERL_CV_NAMED, CVf_NAMED);
	SAME(PERL_CV_LEXICAL, CVf_LEXICAL);
	BODY(perl_gv, name, XPVGV, xiv_u, PERL_GV_BODY);
	BODY(perl_gv, stash, XPVGV, xnv_u, PERL_GV_BODY);
	BODY(perl_stash, name, struct xpvhv_with_aux, xhv_aux.xhv_name_u, PERL_STASH_BODY);
	BODY(perl_stash, name_count, struct xpvhv_with_aux, xhv_aux.xhv_name_count,
	     PERL_STASH_BODY);
	SAME(PERL_HEK_LEN, offsetof(HEK, hek_len));
	SAME(PERL_HEK_KEY, offsetof(HEK, hek_key));
	SAME(PERL_HEK_UTF8, HVhek_UTF8);

	while (i < sizeof(perl_versions) / sizeof(*perl_versions) &&
	       perl_versions[i].version != (PERL_REVISION << 8 | PERL_VERSION))
		i++;
	if (i == sizeof(perl_versions) / sizeof(*perl_versions)) {
		printf("there is no layout of version %d.%d\n", PERL_REVISION, PERL_VERSION);
		return 1;
	}
	compare("operations", perl_versions[i].operations, MAXO);
	compare("nextstate", perl_versions[i].nextstate, OP_NEXTSTATE);
	compare("dbstate", perl_versions[i].nextstate + 1, OP_DBSTATE);
	return differences > 0;
}
