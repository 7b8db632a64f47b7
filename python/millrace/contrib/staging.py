# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.staging."""

from millrace.ops.staging import StagingArea

__all__ = ["StagingArea"]
