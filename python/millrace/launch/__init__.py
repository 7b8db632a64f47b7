# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Processes of clusters: which task of which cluster a process is (identity)."""
from millrace.launch.identity import Identity, parse_cluster, who_am_i
