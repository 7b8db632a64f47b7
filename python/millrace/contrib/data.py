# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.data: tf.data."""
from millrace.data import *  # noqa: F401,F403
