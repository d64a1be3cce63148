# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# The module:  make [KVER=release | KDIR=folder [ARCH=um]] [KUNIT=1] [UNTESTED=1]
# The lab:     make demo, make check, make help

MAKEFLAGS += --no-print-directory

$(if $(word 2,$(CURDIR)),$(error make cannot work in a path with a blank: move $(CURDIR)))

# Not kernel.release: in Debian's 6.1 headers that is not what uname -r says.
UTSRELEASE = $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' \
	$(KDIR)/include/generated/utsrelease.h 2>/dev/null)
ifneq ($(KDIR),)
KVER ?= $(UTSRELEASE)
endif
KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build
# The kernels that the tests cover: Debian's, releases built from source, and the lab's, as an
# expression. dkms.conf reads this line.
TESTED := 6\.1\.0-[0-9]+-amd64|(6\.12|7\.3)\.[0-9]+(\+deb1[23](\.[0-9]+)?-amd64|-rpcrdma-lab)?
MODULES = $(INSTALL_MOD_PATH)/lib/modules/$(KVER)
# What a vendor's RDMA stack has for this kernel. dkms.conf looks for the same.
VENDOR = $(firstword $(shell find $(MODULES) -path $(MODULES)/kernel -prune \
	-o -name 'ib_core.ko*' -print 2>/dev/null) \
	$(wildcard $(INSTALL_MOD_PATH)/usr/src/ofa_kernel/*/$(KVER)))
VERSION = $(shell git show HEAD:dkms.conf | sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p')
KO := net/sunrpc/xprtrdma/rpcrdma.ko
UPDATES = $(MODULES)/updates
LAB := tools/testing/rpcrdma/lab

modules: headers tested vendor ## build rpcrdma.ko for the running kernel, or for KVER= or KDIR=
	$(MAKE) -C $(KDIR) M=$(CURDIR) \
		$(if $(KUNIT),CONFIG_SUNRPC_XPRT_RDMA_KUNIT_TEST=y) modules

headers:
	@test -e $(KDIR)/Makefile || { echo "make: no kernel headers in $(KDIR):" \
		"install linux-headers-$(KVER), or name others with KVER= or KDIR=" >&2; exit 1; }
	@test -n '$(UTSRELEASE)' || { echo "make: the kernel in $(KDIR) is not configured:" \
		"run make modules_prepare there, or name another with KVER= or KDIR=" >&2; exit 1; }

tested: headers
	@test -n "$(UNTESTED)" || echo '$(UTSRELEASE)' | grep -Eqx '$(TESTED)' || { \
		echo "make: no test covers kernel $(UTSRELEASE): see Install in the admin guide, or" \
		"add UNTESTED=1 to build for it nevertheless" >&2; exit 1; }

vendor: headers
	@found='$(VENDOR)'; test -z "$$found" || { \
		echo "make: $$found is of a vendor's RDMA stack, and this module works only with" \
		"the kernel's own: remove that stack, or use its module for NFS" >&2; exit 1; }

install: ## install the module so that modprobe prefers it to the kernel's own
	@test -e $(KO) || { echo "make: there is no $(KO): run make first" >&2; exit 1; }
	install -D -m 644 $(KO) $(UPDATES)/rpcrdma.ko
	depmod $(if $(INSTALL_MOD_PATH),-b $(INSTALL_MOD_PATH)) $(KVER)

uninstall: ## undo install
	rm -f $(UPDATES)/rpcrdma.ko
	depmod $(if $(INSTALL_MOD_PATH),-b $(INSTALL_MOD_PATH)) $(KVER)

deb: $(if $(BINARY),headers tested vendor) ## make Debian packages in build/deb; BINARY=1 KVER=: the module for one kernel; KEY= CERT=
	@$(if $(BINARY),KVER='$(KVER)' KDIR='$(abspath $(KDIR))') scripts/make-deb

dist: ## make build/dist/rpcrdma-VERSION.tar.xz of the last commit; KEYID=: signed with gpg
	@rm -rf build/dist && mkdir -p build/dist
	git -c tar.umask=022 -c tar.tar.xz.command='xz -9 -T1' archive \
		--prefix=rpcrdma-$(VERSION)/ -o build/dist/rpcrdma-$(VERSION).tar.xz HEAD
	$(if $(KEYID),gpg --armor --local-user '$(KEYID)' --detach-sign \
		build/dist/rpcrdma-$(VERSION).tar.xz)

demo: ## boot a guest, mount over RDMA, show that it works
	@$(LAB) demo

check: ## run all checks; T=pattern: those that match; ALL=1: on all guests; MODULE=inbox; DIR=: um has that kernel tree
	@$(if $(DIR),RPCRDMA_TREE='$(abspath $(DIR))') $(LAB) check $(if $(ALL),--all) $(if $(MODULE),--module $(MODULE)) $(if $(T),'$(T)')

coverage: ## write build/coverage.txt: which lines of net/ KUnit and the scenarios run
	@$(LAB) check coverage

scenarios: ## list the scenarios and where each one runs; ALL=1: all guests
	@$(LAB) list $(if $(ALL),--all)

shell: ## a shell in a guest with an NFS server; GUEST=um; MODULE=inbox; DEVICE=mem
	@$(LAB) shell $(if $(GUEST),--guest $(GUEST)) $(if $(MODULE),--module $(MODULE)) \
		$(if $(DEVICE),--device $(DEVICE))

bench: ## compare our module with the kernel's own; ROUNDS=7, 0: only what TCG counts; SAMPLE=1; GUEST=um-7-smp; T=pattern
	@$(LAB) bench $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(T),'$(T)')

soak: ## I/O while faults happen at random; HOURS=2; SEED=; GUEST=um-7-smp; DEVICE=mem
	@$(LAB) soak $(if $(HOURS),--hours $(HOURS)) $(if $(SEED),--seed $(SEED)) \
		$(if $(GUEST),--guest $(GUEST)) $(if $(DEVICE),--device $(DEVICE))

xfstests: ## run xfstests (DIR=: a checkout) on NFS, and repeat failures with inbox and TCP; T='generic/001 generic/002'
	@$(LAB) xfstests '$(DIR)' $(if $(T),'$(T)')

fuzz: ## fuzz the wire format; FUZZ_SECONDS=600
	@$(LAB) fuzz $(FUZZ_SECONDS)

mutate: ## plant N=100 defects in net/, one at a time, and say which are found; SEED=0
	@$(LAB) mutate $(N) --seed $(or $(SEED),0)

drawings: ## make Documentation/drawings/*.svg again; needs graphviz
	@scripts/draw

clean: ## remove what was built here, and keep the cache of guests
	rm -rf build
	[ ! -e $(KDIR)/Makefile ] || $(MAKE) -C $(KDIR) M=$(CURDIR) clean

help: ## print this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

.PHONY: modules headers tested vendor install uninstall deb dist demo check coverage scenarios shell bench soak xfstests fuzz mutate drawings clean help
