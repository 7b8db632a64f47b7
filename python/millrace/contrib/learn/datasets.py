# SPDX-License-Identifier: Apache-2.0
"""Data sets."""
from millrace.examples.tutorials.mnist import input_data as mnist  # noqa: F401
from millrace.examples.tutorials.mnist.input_data import load_mnist, read_data_sets  # noqa: F401
from millrace.contrib.learn import base  # noqa: F401
