# SPDX-License-Identifier: Apache-2.0
"""Graphs, tensors, types, sessions, errors, conversions: what the ops are built on."""
