# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.util: TensorProtos and arrays."""
from millrace.framework.tensor_util import (MakeNdarray, constant_value, constant_value_as_shape, make_ndarray,  # noqa: F401
                                            make_tensor_proto)
