# SPDX-License-Identifier: Apache-2.0
"""Ragged tensors: rows of different lengths, as one tensor of all values and where each row ends. What a name means: names.py."""
