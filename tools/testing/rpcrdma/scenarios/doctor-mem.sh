# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   rpcrdma doctor tells when a device cannot do what NFS over RDMA needs
# guests:  um
# also:    um-7-debug debian-6.1
# devices: mem
# modules: ours
# faults:  what the doctor is to find
#
# mem0, on lab0, is deleted and added again with other limits.

. /lab/guest/doctor.sh

PARAMETERS=/sys/module/rdma_mem/parameters

client() {
	client_begin
	need "the program" tool_up
	check "all is well: 0" well
	few_resources
	no_registration
	check "all is well again: 0" well
}

few_resources() {
	need "a device with few queue pairs" device_with preset few-qps
	check "few queue pairs" finds_only "mem0 has few resources: 4 queue pairs"
	need "a device with few registrations" device_with max_mr 32
	check "few registrations" finds_only "mem0 has few resources: .* 32 memory regions"
	need "the usual device" usual_device
	check "enough of both: 0" well
}

# device_with PARAMETER VALUE: mem0 anew, with one of its parameters changed
device_with() {
	usual_parameters
	echo "$2" >$PARAMETERS/$1
	device_anew
}

device_anew() {
	rdma link delete mem0 && rdma_up
}

usual_device() {
	usual_parameters
	device_anew
}

usual_parameters() {
	echo usual >$PARAMETERS/preset
	echo -1 | tee $PARAMETERS/{max_mr,max_fast_reg_page_list_len} >/dev/null
	echo Y >$PARAMETERS/fast_reg
}

# The module says the same in the log.
no_registration() {
	need "a device without pages" device_with max_fast_reg_page_list_len 0
	check "it registers no pages" finds "mem0 registers no pages by work request"
	check "the log says that it is not usable" says_what_to_do wrong "\"mem0: not usable: "
	dmesg --clear
	need "a device without fast registration" device_with fast_reg N
	check "it does not do fast registration" finds "mem0 has no memory management extensions"
	check "the log says that it is not usable" says_what_to_do wrong "\"mem0: not usable: "
	need "the usual device" usual_device
	check "it is usable: 0" well
}
