/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How many objects of each kind there are, in builds with unit tests: none may be left when
 * the module goes. server/ counts its services and requests itself.
 */
#ifndef RPCRDMA_OBJECTS_H
#define RPCRDMA_OBJECTS_H

enum rpcrdma_object {
	RPCRDMA_OBJECT_CONN,
	RPCRDMA_OBJECT_MR,
	RPCRDMA_OBJECT_SEND,
	RPCRDMA_OBJECT_RECV,
	RPCRDMA_OBJECT_SLOT,
	RPCRDMA_OBJECT_BACKWARD,
	RPCRDMA_OBJECTS
};

#ifdef RPCRDMA_COUNT_OBJECTS
void rpcrdma_object_made(enum rpcrdma_object kind);
void rpcrdma_object_freed(enum rpcrdma_object kind);
/* How many were ever made */
unsigned int rpcrdma_objects_ever(enum rpcrdma_object kind);
void rpcrdma_objects_exit(void);
#else
static inline void rpcrdma_object_made(enum rpcrdma_object kind) {}
static inline void rpcrdma_object_freed(enum rpcrdma_object kind) {}
static inline void rpcrdma_objects_exit(void) {}
#endif

#endif /* RPCRDMA_OBJECTS_H */
