# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The lab's own tests, for pytest. Their guests have logs of their own."""

import os

os.environ.setdefault("RPCRDMA_LAB_TEST", "pytest")     # before host is imported
