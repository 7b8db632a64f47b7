# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Processes of clusters: who they are (identity), how they begin and end (contract), how they are started here (local) or by Ray (ray)."""

from millrace.launch.contract import BAD_CONFIGURATION, DONE, LOST_PEER, USER_ERROR, exit_code_of
from millrace.launch.identity import Identity, parse_cluster, who_am_i
