/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Output for programs, by jansson. Its functions that build values return NULL
 * if there is no memory; out_json() and out_json_line() take that as well and
 * end the program.
 */
#ifndef RPCRDMA_JSON_H
#define RPCRDMA_JSON_H

#include <jansson.h>

/**
 * out_json - print a value, indented, to standard output
 * @value: is freed
 */
void out_json(json_t *value);

/**
 * out_json_line - print a value in one line, and have it written at once
 * @value: is freed
 */
void out_json_line(json_t *value);

/**
 * json_add - add a member to an object; the program ends if there is no memory
 * @object: not freed
 * @name: of the member
 * @value: the object owns it
 */
void json_add(json_t *object, const char *name, json_t *value);

#endif
