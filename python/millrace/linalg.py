# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.linalg."""

from millrace.framework import not_provided as _not_provided
from millrace.ops.array_ops import matrix_transpose, matrix_transpose as transpose  # noqa: F401
from millrace.ops.derived_ops import matvec  # noqa: F401
from millrace.ops.gen_ops import cholesky, cross, lu  # noqa: F401
from millrace.ops.gen_ops import diag as tensor_diag, diag_part as tensor_diag_part  # noqa: F401
from millrace.ops.gen_ops import matrix_band_part as band_part, matrix_logarithm as logm  # noqa: F401
from millrace.ops.gen_ops import matrix_determinant as det, matrix_inverse as inv  # noqa: F401
from millrace.ops.band_ops import matrix_diag as diag, matrix_diag_part as diag_part, matrix_set_diag as set_diag  # noqa: F401
from millrace.ops.band_ops import matrix_exponential as expm, matrix_square_root as sqrtm, tridiagonal_matmul, tridiagonal_solve  # noqa: F401
from millrace.ops.gen_ops import matrix_solve as solve, matrix_triangular_solve as triangular_solve  # noqa: F401
from millrace.ops.linalg_composed_operators import (  # noqa: F401
    LinearOperatorAdjoint,
    LinearOperatorBlockDiag,
    LinearOperatorCirculant,
    LinearOperatorCirculant2D,
    LinearOperatorCirculant3D,
    LinearOperatorComposition,
    LinearOperatorHouseholder,
    LinearOperatorInversion,
    LinearOperatorKronecker,
    LinearOperatorLowRankUpdate,
    LinearOperatorScaledIdentity,
    LinearOperatorToeplitz,
    LinearOperatorZeros,
)
from millrace.ops.linalg_operators import LinearOperator, LinearOperatorDiag, LinearOperatorFullMatrix, LinearOperatorIdentity, LinearOperatorLowerTriangular  # noqa: F401
from millrace.ops.linalg_ops import adjoint, cholesky_solve, logdet, qr, slogdet, svd  # noqa: F401
from millrace.ops.linalg_ops import matrix_solve_ls as lstsq, self_adjoint_eig as eigh, self_adjoint_eigvals as eigvalsh  # noqa: F401
from millrace.ops.math_ops import global_norm  # noqa: F401
from millrace.ops.matrix_ops import einsum, eye, matmul, norm, tensordot, trace  # noqa: F401
from millrace.ops.nn_ops import l2_normalize  # noqa: F401
from millrace.framework import dispatch as _dispatch
from millrace.ops.lu_ops import lu_matrix_inverse, lu_reconstruct, lu_solve, matrix_rank, normalize, pinv  # noqa: F401

_dispatch.install_for_operators(globals(), ["adjoint", "cholesky", "det", "diag_part", "inv", "logdet", "matmul", "solve", "trace"])
__getattr__ = _not_provided.getter("linalg")
