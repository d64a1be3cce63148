# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   1,024 connections of one host, or of 64, work again soon after the server restarts
# also:    um um/mem
# devices: rxe siw mem
# modules: ours
# limit:   300
# memory:  2048
# skip:    um-7* rxe * *: ib_mad of 7.x sends nothing more for a port with 128 requests that have no answer
# faults:  connections are closed

MOUNTS=64

. "${BASH_SOURCE%/*}/faults-many.sh"
