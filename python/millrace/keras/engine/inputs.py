# SPDX-License-Identifier: Apache-2.0
"""Where models begin."""

from __future__ import annotations

from typing import Any, Dict, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.engine.composites import is_composite
from millrace.layers.base import Layer
from millrace.layers.nodes import one_or_all, shape_tuple
from millrace.layers.nodes import History, Node


class InputLayer(Layer):
    """Where a model begins."""

    def __init__(
        self,
        input_shape: Any = None,
        batch_size: Optional[int] = None,
        dtype: Any = None,
        input_tensor: Any = None,
        sparse: bool = False,
        name: Optional[str] = None,
        batch_input_shape: Any = None,
        ragged: bool = False,
        **unused: Any,
    ) -> None:
        if sparse and ragged:
            raise at_user_line(ValueError("Cannot set both sparse and ragged to True in a Keras input."))
        if unused:
            raise at_user_line(ValueError("Unrecognized keyword arguments: %s" % sorted(unused)))
        super().__init__(name=name or "input_%d" % K.get_uid("input"))
        if batch_input_shape is not None:
            shape: Any = tuple(batch_input_shape)
        elif input_tensor is not None and input_shape is None:
            shape = shape_tuple(input_tensor)
        else:
            shape = (batch_size, *((input_shape,) if isinstance(input_shape, int) else input_shape or ()))
        self.built, self.batch_input_shape, self.sparse, self.ragged, self.is_placeholder = True, shape, sparse, ragged, input_tensor is None
        self._dtype = dtypes.as_dtype(dtype or (K.floatx() if input_tensor is None else input_tensor.dtype.base_dtype))
        if input_tensor is None:
            tensor = K.placeholder(shape, dtype=self.dtype, sparse=sparse, name=self.name, ragged=ragged)
        else:
            tensor = input_tensor if is_composite(input_tensor) else convert_to_tensor(input_tensor)
        tensor._keras_history = History(self, 0, 0)
        tensor._uses_learning_phase = False
        Node(self, [], [], [], [tensor], [tensor])

    input_shape = output_shape = property(lambda self: list(self._inbound_nodes[0].made_shapes), doc="A list of its shape, as 1.15 has it.")

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        return {"batch_input_shape": self.batch_input_shape, "dtype": self.dtype, "sparse": self.sparse, "ragged": self.ragged, "name": self.name}


def undeclared(array: Any) -> Any:
    """A value of which a model makes its input; ValueError where such an input is dense, and the value is not."""
    if is_composite(array):
        raise at_user_line(
            ValueError("All SparseTensor and RaggedTensor inputs of a model need a tf.keras.Input with sparse=True or ragged=True, got %s" % (array,))
        )
    if hasattr(array, "tocoo"):
        raise at_user_line(
            ValueError("Please provide either a single array or a list of arrays, or begin the model with an Input of sparse=True. You passed: %r" % (array,))
        )
    return array


def input_like(array: Any, name: Optional[str] = None) -> Any:
    """An input for arrays like this one: floating-point numbers of the default type, rows of one where it is a list of values."""
    array = np.asarray(undeclared(array))
    kind = "string" if array.dtype.kind in "USO" else array.dtype.name if array.dtype.kind in "iub" else None
    return Input(batch_shape=(None, *(array.shape[1:] or (1,))), dtype=kind, name=name)


def Input(
    shape: Any = None,
    batch_shape: Any = None,
    name: Optional[str] = None,
    dtype: Any = None,
    sparse: bool = False,
    tensor: Any = None,
    batch_size: Optional[int] = None,
    ragged: bool = False,
    **unused: Any,
) -> Any:
    """A tensor that a model is fed."""
    if unused:
        raise at_user_line(ValueError("Unrecognized keyword arguments: %s" % sorted(unused)))
    if isinstance(batch_shape, int):  # the second one by place: a shape until 1.3, a size since
        batch_shape, batch_size = None, batch_shape
    if shape is not None and batch_shape is not None:
        raise at_user_line(ValueError("Only provide the shape OR batch_shape argument to Input, not both at the same time."))
    if shape is None and batch_shape is None and tensor is None:
        raise at_user_line(
            ValueError("Please provide to Input either a `shape` or a `tensor` argument. Note that `shape` does not include the batch dimension.")
        )
    layer = InputLayer(shape, batch_size, dtype, tensor, sparse, name, batch_shape, ragged)
    return one_or_all(layer._inbound_nodes[0].made)
