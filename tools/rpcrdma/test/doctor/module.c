// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What libkmod reads of the file of a module */

__attribute__((section(".modinfo"), used))
static const char modinfo[] = "name=rpcrdma\0version=0.2\0srcversion=ABC";
