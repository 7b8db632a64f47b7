# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.util: TensorProtos and arrays."""

from millrace.framework.tensor_util import (  # noqa: F401
    MakeNdarray,
    constant_value,
    constant_value_as_shape,
    make_ndarray,
    make_tensor_proto,
)
from millrace.train.meta_graph import ops_used_by_graph_def, stripped_op_list_for_graph  # noqa: F401
