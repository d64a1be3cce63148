# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   verified I/O of mixed sizes by several jobs, cached and direct
# guests:  um um-7-debug/siw um-7-smp/siw
# also:    um/mem um-debug/siw um-7-debug um-7-smp debian-6.1 debian-6.12 debian-13-7 debian-13-rt
# devices: rxe siw mem
# skip:    * siw * inbox: siw may not deliver a first message, and only ours has a workaround
# skip:    * mem * inbox: it posts Receives again without a sync, which the test device reports
# limit:   90

client() {
	client_begin
	each_version verified_io
}

verified_io() {
	check "v$1: direct, 512 B to 1 MiB" fio_verify --direct=1 --bsrange=512-1m --numjobs=4
	check "v$1: cached, 4 KiB to 256 KiB" fio_verify --direct=0 --bsrange=4k-256k --numjobs=2
}
