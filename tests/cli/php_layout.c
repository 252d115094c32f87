// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compares where profil takes PHP's fields to be with the headers of one version of PHP, and prints
 * the differences. Built and run by php_layout.sh.
 */
#include <SAPI.h>
#include <php.h>
#include <zend_generators.h>

#include "layout.h"
#include "script/php_layouts.h"

#define FIELD(ours, type, member) compare(#ours, l->php.ours, offsetof(type, member))
#define MEMBER(struct_, ours, type, member) \
	compare(#struct_ "." #ours, offsetof(struct struct_, ours), offsetof(type, member))
#define OFFSET(ours, type, member) compare(#ours, ours, offsetof(type, member))
#define VALUE(ours, theirs)	   compare(#ours, ours, theirs)

int main(void)
{
	const struct language_image *l = NULL;

	for (size_t i = 0; i < sizeof(php_layouts) / sizeof(*php_layouts); i++)
		if (php_layouts[i].version == (PHP_MAJOR_VERSION << 8 | PHP_MINOR_VERSION))
			l = &php_layouts[i];
	if (!l) {
		puts("there is no layout of version " PHP_VERSION);
		return 1;
	}
	FIELD(current, zend_executor_globals, current_execute_data);
	FIELD(thrower, zend_executor_globals, opline_before_exception);
	FIELD(opcodes, zend_op_array, opcodes);
	FIELD(file, zend_op_array, filename);
	/* What the code takes to be the same in all versions */
	compare("the first line", l->php.file + 8, offsetof(zend_op_array, line_start));
	compare("the last line", l->php.file + 12, offsetof(zend_op_array, line_end));
	MEMBER(php_frame, opline, zend_execute_data, opline);
	MEMBER(php_frame, function, zend_execute_data, func);
	MEMBER(php_frame, object, zend_execute_data, This);
	MEMBER(php_frame, call_info, zend_execute_data, This.u1);
	MEMBER(php_frame, previous, zend_execute_data, prev_execute_data);
	VALUE(PHP_CALL_TOP, ZEND_CALL_TOP);
	VALUE(PHP_OBJECT, IS_OBJECT);
	MEMBER(php_function, type, zend_op_array, type);
	MEMBER(php_function, name, zend_op_array, function_name);
	MEMBER(php_function, scope, zend_op_array, scope);
	MEMBER(php_function, type, zend_internal_function, type);
	MEMBER(php_function, name, zend_internal_function, function_name);
	MEMBER(php_function, scope, zend_internal_function, scope);
	VALUE(PHP_INTERNAL_FUNCTION, ZEND_INTERNAL_FUNCTION);
	VALUE(PHP_USER_FUNCTION, ZEND_USER_FUNCTION);
	VALUE(PHP_EVAL_CODE, ZEND_EVAL_CODE);
	OFFSET(PHP_INSTRUCTION_RESULT, zend_op, result);
	compare("extended_value",
		PHP_INSTRUCTION_RESULT + offsetof(struct php_instruction, extended_value),
		offsetof(zend_op, extended_value));
	compare("lineno", PHP_INSTRUCTION_RESULT + offsetof(struct php_instruction, line),
		offsetof(zend_op, lineno));
	compare("opcode", PHP_INSTRUCTION_RESULT + offsetof(struct php_instruction, opcode),
		offsetof(zend_op, opcode));
	VALUE(PHP_HANDLE_EXCEPTION, ZEND_HANDLE_EXCEPTION);
#ifdef ZEND_FRAMELESS_ICALL_0
	VALUE(PHP_FRAMELESS_CALL, ZEND_FRAMELESS_ICALL_0);
	VALUE(PHP_FRAMELESS_CALL + 3, ZEND_FRAMELESS_ICALL_3);
#endif
	OFFSET(PHP_OBJECT_CLASS, zend_object, ce);
	OFFSET(PHP_CLASS_NAME, zend_class_entry, name);
	OFFSET(PHP_STRING_HASH, zend_string, h);
	compare("a string's length", PHP_STRING_HASH + 8, offsetof(zend_string, len));
	OFFSET(PHP_STRING_TEXT, zend_string, val);
	OFFSET(PHP_GENERATOR_FRAME, zend_generator, execute_data);
	OFFSET(PHP_GENERATOR_PARENT, zend_generator, node.parent);
	OFFSET(PHP_SAPI_CONTEXT, sapi_globals_struct, server_context);
	OFFSET(PHP_SAPI_METHOD, sapi_globals_struct, request_info.request_method);
	OFFSET(PHP_SAPI_URI, sapi_globals_struct, request_info.request_uri);
	OFFSET(PHP_SAPI_STARTED, sapi_globals_struct, sapi_started);
	VALUE(PHP_VERSION_ID < 80400 ? PHP_SAPI_SIZE : PHP_SAPI_SIZE_84,
	      sizeof(sapi_globals_struct));
	return differences > 0;
}
