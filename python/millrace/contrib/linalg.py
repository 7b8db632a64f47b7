# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.linalg: matrices of a certain form."""

from millrace.ops.linalg_addition import add_operators  # noqa: F401
from millrace.ops.linalg_composed_operators import LinearOperatorBlockDiag, LinearOperatorComposition  # noqa: F401
from millrace.ops.linalg_composed_operators import LinearOperatorScaledIdentity  # noqa: F401
from millrace.ops.linalg_composed_operators import LinearOperatorLowRankUpdate as LinearOperatorUDVHUpdate  # noqa: F401
from millrace.ops.linalg_operators import (  # noqa: F401
    LinearOperator,
    LinearOperatorDiag,
    LinearOperatorFullMatrix,
    LinearOperatorIdentity,
    LinearOperatorLowerTriangular,
    LinearOperatorTriL,
)
