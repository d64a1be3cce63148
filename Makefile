# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# The module:  make [KVER=release | KDIR=folder [ARCH=um]] [KUNIT=1]
# The lab:     make demo, make check, make help

MAKEFLAGS += --no-print-directory

$(if $(word 2,$(CURDIR)),$(error make cannot work in a folder with a blank in its path: $(CURDIR)))

# Not kernel.release: in Debian's 6.1 headers that is not what uname -r says.
UTSRELEASE = $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h)
ifneq ($(KDIR),)
KVER ?= $(UTSRELEASE)
endif
KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build
KO := net/sunrpc/xprtrdma/rpcrdma.ko
UPDATES = $(INSTALL_MOD_PATH)/lib/modules/$(KVER)/updates
LAB := tools/testing/rpcrdma/lab

modules: headers ## build rpcrdma.ko for the running kernel, or for KVER= or KDIR=
	$(MAKE) -C $(KDIR) M=$(CURDIR) \
		$(if $(KUNIT),CONFIG_SUNRPC_XPRT_RDMA_KUNIT_TEST=y) modules

headers:
	@test -e $(KDIR)/Makefile || { echo "make: no kernel headers in $(KDIR):" \
		"install linux-headers-$(KVER), or name others by KVER= or KDIR=" >&2; exit 1; }

install: ## put the built module before the kernel's own, for modprobe
	@test -e $(KO) || { echo "make: there is no $(KO): run make first" >&2; exit 1; }
	install -D -m 644 $(KO) $(UPDATES)/rpcrdma.ko
	depmod $(if $(INSTALL_MOD_PATH),-b $(INSTALL_MOD_PATH)) $(KVER)

uninstall: ## undo install
	rm -f $(UPDATES)/rpcrdma.ko
	depmod $(if $(INSTALL_MOD_PATH),-b $(INSTALL_MOD_PATH)) $(KVER)

demo: ## boot a guest, mount over RDMA, show that it works
	@$(LAB) demo

check: ## every check; T=pattern for some, ALL=1 in every guest, MODULE=inbox
	@$(LAB) check $(if $(ALL),--all) $(if $(MODULE),--module $(MODULE)) $(if $(T),'$(T)')

coverage: ## which lines of net/ KUnit and the scenarios run: build/coverage.txt
	@$(LAB) check coverage

scenarios: ## name the scenarios, a line for each place where they run; or ALL=1
	@$(LAB) list $(if $(ALL),--all)

shell: ## a shell in a guest with an NFS server; GUEST=um for the fast one, MODULE=inbox
	@$(LAB) shell $(if $(GUEST),--guest $(GUEST)) $(if $(MODULE),--module $(MODULE))

bench: ## measure ours beside the kernel's own, minutes; ROUNDS=3, T=pattern for some jobs
	@$(LAB) bench $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(T),'$(T)')

fuzz: ## fuzz the wire format for FUZZ_SECONDS=600
	@$(LAB) fuzz $(FUZZ_SECONDS)

clean: ## remove what was built here; the cache of guests stays
	rm -rf build
	[ ! -e $(KDIR)/Makefile ] || $(MAKE) -C $(KDIR) M=$(CURDIR) clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

.PHONY: modules headers install uninstall demo check coverage scenarios shell bench fuzz clean help
