# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.distributions.bijectors."""

from millrace.distributions.basic_bijectors import Affine, AffineScalar, Chain, Exp, Inline, Invert, PowerTransform, Sigmoid, SoftmaxCentered, Softplus
from millrace.distributions.bijector import Bijector, ConditionalBijector, Identity
from millrace.distributions.elementwise_bijectors import AbsoluteValue, Gumbel, Kumaraswamy, Permute, SigmoidCentered, SinhArcsinh, Softsign, Square, Weibull
from millrace.distributions.flow_bijectors import (
    BatchNormalization,
    MaskedAutoregressiveFlow,
    RealNVP,
    masked_autoregressive_default_template,
    masked_dense,
    real_nvp_default_template,
)
from millrace.distributions.matrix_bijectors import (
    AffineLinearOperator,
    CholeskyOuterProduct,
    FillTriangular,
    MatrixInverseTriL,
    Ordered,
    Reshape,
    ScaleTriL,
    TransformDiagonal,
)

__all__ = [
    "AbsoluteValue",
    "Affine",
    "AffineLinearOperator",
    "AffineScalar",
    "BatchNormalization",
    "Bijector",
    "Chain",
    "CholeskyOuterProduct",
    "ConditionalBijector",
    "Exp",
    "FillTriangular",
    "Gumbel",
    "Identity",
    "Inline",
    "Invert",
    "Kumaraswamy",
    "MaskedAutoregressiveFlow",
    "MatrixInverseTriL",
    "Ordered",
    "Permute",
    "PowerTransform",
    "RealNVP",
    "Reshape",
    "ScaleTriL",
    "Sigmoid",
    "SigmoidCentered",
    "SinhArcsinh",
    "SoftmaxCentered",
    "Softplus",
    "Softsign",
    "Square",
    "TransformDiagonal",
    "Weibull",
    "masked_autoregressive_default_template",
    "masked_dense",
    "real_nvp_default_template",
]
