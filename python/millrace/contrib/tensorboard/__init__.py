# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.tensorboard: settings of TensorBoard's plugins."""

from millrace.contrib.tensorboard import plugins as plugins
