# SPDX-License-Identifier: Apache-2.0
"""The digits data set, and the network of the tutorial."""

from millrace.examples.tutorials.mnist import input_data, mnist
