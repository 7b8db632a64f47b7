# SPDX-License-Identifier: Apache-2.0
"""Data sets of slim: records in files, what they hold, and queues of it."""
