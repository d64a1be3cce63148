# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   what zoo shows, with each preset
# also:    um
# devices: mem
# limit:   600
# steps:   zoo
# faults:  connections are broken between the forms

. "${BASH_SOURCE%/*}/zoo.sh"

PRESETS=
