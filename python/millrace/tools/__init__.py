# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.tools: what programs import of it."""
