# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.tensorboard.plugins."""

from millrace.contrib.tensorboard.plugins import projector as projector
from millrace.contrib.tensorboard.plugins import trace as trace
