# SPDX-License-Identifier: Apache-2.0
"""Layers whose outputs' inner products are about the values of a kernel of their inputs."""

from __future__ import annotations

from typing import Any, Dict, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import initializers
from millrace.layers.base import Layer
from millrace.layers.nodes import InputSpec
from millrace.ops import gen_ops, init_ops, math_ops, matrix_ops, nn_ops

_KERNELS = ["gaussian", "laplacian"]


class RandomFourierFeatures(Layer):
    """Cosines of random projections, by which inner products come near a Gaussian or Laplacian kernel, or that of an initializer.

    The width of the kernel, `scale`, is trained where the layer is."""

    def __init__(
        self, output_dim: int, kernel_initializer: Any = "gaussian", scale: Optional[float] = None, trainable: bool = False, name: Any = None, **kwargs: Any
    ) -> None:
        if output_dim <= 0:
            raise at_user_line(ValueError("`output_dim` should be a positive integer. Given: %s." % output_dim))
        if isinstance(kernel_initializer, str) and kernel_initializer.lower() not in _KERNELS:
            raise at_user_line(ValueError("Unsupported kernel type: '%s'. Supported kernel types: %s." % (kernel_initializer, _KERNELS)))
        if scale is not None and scale <= 0.0:
            raise at_user_line(ValueError("When provided, `scale` should be a positive float. Given: %s." % scale))
        super().__init__(trainable=trainable, name=name, **kwargs)
        self.output_dim, self.kernel_initializer, self.scale = output_dim, kernel_initializer, scale

    def _is(self, kernel: str) -> bool:
        return isinstance(self.kernel_initializer, str) and self.kernel_initializer.lower() == kernel

    def _initializer(self, size: int) -> Any:
        if self._is("gaussian"):
            return init_ops.random_normal_initializer(stddev=1.0)
        if self._is("laplacian"):  # Cauchy's distribution
            return init_ops.constant_initializer(np.tan(np.pi * (np.random.uniform(size=(size, self.output_dim)) - 0.5)))
        return self.kernel_initializer

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        shape = TensorShape(input_shape)
        if shape.ndims != 2:
            raise at_user_line(ValueError("The rank of the input tensor should be 2. Got %s instead." % shape.ndims))
        size = shape.as_list()[1]
        if size is None:
            raise at_user_line(ValueError("The last dimension of the inputs to `RandomFourierFeatures` should be defined. Found `None`."))
        self.input_spec = InputSpec(ndim=2, axes={1: size})
        kind, phases = dtypes.float32, init_ops.random_uniform_initializer(0.0, 2 * np.pi, dtype=dtypes.float32)
        unscaled = self.add_weight("unscaled_random_features", (size, self.output_dim), kind, self._initializer(size), trainable=False)
        self.bias = self.add_weight("random_features_bias", (self.output_dim,), kind, phases, trainable=False)
        if self.scale is None:
            self.scale = float(np.sqrt(size / 2.0)) if self._is("gaussian") else 1.0
        start = init_ops.constant_initializer(self.scale)
        scale = self.add_weight("random_features_scale", (1,), kind, start, trainable=True, constraint="NonNeg")
        self.kernel = (1.0 / scale) * unscaled
        super().build(shape)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        given = math_ops.cast(convert_to_tensor(inputs), dtypes.float32)
        return gen_ops.cos(nn_ops.bias_add(matrix_ops.matmul(given, self.kernel), self.bias))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs."""
        rows, size = TensorShape(input_shape).with_rank(2).as_list()
        if size is None:
            raise at_user_line(ValueError("The innermost dimension of input shape must be defined. Given: %s" % (input_shape,)))
        return TensorShape([rows, self.output_dim])

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        made = self.kernel_initializer
        made = initializers.serialize(made) if isinstance(made, init_ops.Initializer) else made
        return {**super().get_config(), "output_dim": self.output_dim, "kernel_initializer": made, "scale": self.scale}
