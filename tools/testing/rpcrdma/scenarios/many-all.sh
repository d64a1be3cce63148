# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   what many shows, with 10,000 connections
# also:    um
# devices: mem
# modules: ours
# loads:   crowd
# memory:  8192
# limit:   900
# steps:   many
# faults:  connections are closed
# skip:    um-7* * * *: it would take as long again and show the same

MOUNTS=625 IOPS=2500

. "${BASH_SOURCE%/*}/many.sh"
