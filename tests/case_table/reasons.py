# SPDX-License-Identifier: Apache-2.0
"""Ops without a row, each with the place where it is tested."""

from __future__ import annotations

_FUNCTIONS = "of function bodies only: src/graph/function_call_test.cc"
_TRANSFERS = "made by partitioning only: tests/session_test.cc runs graphs over several devices"

REASONS: dict[str, str] = {
    "_Arg": _FUNCTIONS,
    "_Retval": _FUNCTIONS,
    "_Send": _TRANSFERS,
    "_Recv": _TRANSFERS,
    "_HostSend": _TRANSFERS,
    "_HostRecv": _TRANSFERS,
}
