# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.data: tf.data."""
from millrace.data import *  # noqa: F401,F403
