# SPDX-License-Identifier: Apache-2.0
"""Modules that TensorFlow carried for its tutorials."""

from millrace.examples import tutorials
