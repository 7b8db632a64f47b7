# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.linalg: matrices of a certain form."""
from millrace.ops.linalg_operators import (LinearOperator, LinearOperatorDiag, LinearOperatorFullMatrix, LinearOperatorIdentity,  # noqa: F401
                                           LinearOperatorLowerTriangular, LinearOperatorTriL)
