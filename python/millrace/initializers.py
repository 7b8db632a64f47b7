# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.initializers."""

from millrace.ops.init_ops import (  # noqa: F401
    constant_initializer as constant,
    glorot_normal_initializer as glorot_normal,
    glorot_uniform_initializer as glorot_uniform,
    identity_initializer as identity,
    ones_initializer as ones,
    orthogonal_initializer as orthogonal,
    random_normal_initializer as random_normal,
    random_uniform_initializer as random_uniform,
    truncated_normal_initializer as truncated_normal,
    uniform_unit_scaling_initializer as uniform_unit_scaling,
    variance_scaling_initializer as variance_scaling,
    zeros_initializer as zeros,
)
from millrace.ops.variables import global_variables_initializer as global_variables  # noqa: F401
from millrace.ops.variables import local_variables_initializer as local_variables  # noqa: F401
from millrace.ops.variables import variables_initializer as variables  # noqa: F401
from millrace.keras.initializers import he_normal, he_uniform, lecun_normal, lecun_uniform  # noqa: F401
from millrace.ops.lookup_ops import tables_initializer  # noqa: F401
