# SPDX-License-Identifier: Apache-2.0
"""Functions that make ops. gen_ops is generated; the other modules give its functions TensorFlow's names and arguments."""
