# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The lab: guests made from Debian packages, and the scenarios that run in them."""
