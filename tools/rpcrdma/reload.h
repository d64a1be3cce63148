/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Replacing the loaded module by the installed one */
#ifndef RPCRDMA_RELOAD_H
#define RPCRDMA_RELOAD_H

#include <stdbool.h>
#include "doctor.h"

/* Exit codes */
enum reload {
	RELOAD_OK,
	RELOAD_REFUSED,		/* nothing has changed */
	RELOAD_FAILED,		/* it was begun; the results say what is not as before */
};

/**
 * reload - have the installed module run, and the NFS server listen as before
 * @d: after doctor_init(); gets a result for all that is wrong
 * @force: cut clients off, load what runs already, or what the doctor has a finding about
 * @wait: seconds for which clients may go by themselves
 */
enum reload reload(struct doctor *d, bool force, unsigned int wait);

#endif
