# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# The package of the module for this kernel, which takes only signed modules: one that is not
# signed, and one that is signed by a key that the firmware has, see signed() in
# rpcrdma_lab/debs.py. Variables:
#
#   VERSION    of the packages

. /lab/guest/doctor.sh

# install_package NAME: this root has the kernel, and not its package.
install_package() {
	dpkg --force-depends -i "/lab/$1.deb" && right_module
}

refused() {
	! modprobe rpcrdma && not loaded && dmesg | grep "Loading of unsigned module is rejected"
}

loads() {
	modprobe rpcrdma && is "$VERSION" "$(cat /sys/module/rpcrdma/version)"
}

# The guest has neither device nor listener, which is wrong, too.
well_signed() {
	tool doctor
	says "^ok +module +module.sig_enforce is set, and the module is signed$"
}

in_guest() {
	need "the program" tool_up
	need "the unsigned package installs" install_package unsigned
	check "the kernel does not take its module" refused
	check "doctor says why, and what to do" \
		finds "module.sig_enforce is set, and the module is not signed"
	need "the signed package installs" install_package signed
	check "the kernel takes its module" loads
	check "doctor finds it signed" well_signed
	module_down
}
