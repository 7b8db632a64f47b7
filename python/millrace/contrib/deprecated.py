# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.deprecated: summaries with the arguments of 0.x."""

from millrace.summary import histogram_summary, image_summary, merge_all as merge_all_summaries, merge as merge_summary, scalar_summary  # noqa: F401
