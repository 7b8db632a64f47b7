# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.meta_graph_transform: MetaGraphDefs whose graphs were changed."""

from millrace.contrib.meta_graph_transform import meta_graph_transform
