# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   what krb5 shows, with small files and KASAN
# guests:  um-7-debug/siw
# also:    um-debug/siw
# devices: siw
# modules: ours
# limit:   60

. "${BASH_SOURCE%/*}/krb5.sh"

SIZE=256k

client() {
	client_begin
	head -c 131075 /dev/urandom >/tmp/file
	use 3 krb5i
	need "both ends may use version 2" versions_up_to 2 2
	use 4.2 krb5p 2
}
