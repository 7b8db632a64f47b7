# SPDX-License-Identifier: Apache-2.0
"""Dense layers, dropout, shapes, functions and masks."""

from __future__ import annotations

import copy
import marshal
import types
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import activations
from millrace.keras import backend as K
from millrace.layers.base import arguments_of
from millrace.layers.nodes import each_shape
from millrace.layers.settings import InputSpec, SettingsLayer
from millrace.keras.utils.generic_utils import get_custom_objects
from millrace.layers.utils import normalize_data_format
from millrace.ops.variables import variable_creator_scope
from millrace.ops import array_ops, gen_ops, math_ops, matrix_ops, nn_ops, sparse_ops
from millrace.ops.control_flow_ops import smart_cond


class Masking(SettingsLayer):
    """Leaves out the steps of which all entries have a value."""

    settings: Tuple[str, ...] = ("mask_value",)
    supports_masking = True

    def __init__(self, mask_value: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mask_value = mask_value

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Which steps count."""
        return math_ops.reduce_any(gen_ops.not_equal(inputs, math_ops.cast(self.mask_value, inputs.dtype.base_dtype)), -1)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        counts = math_ops.reduce_any(gen_ops.not_equal(inputs, math_ops.cast(self.mask_value, inputs.dtype.base_dtype)), -1, True)
        return inputs * math_ops.cast(counts, inputs.dtype.base_dtype)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs."""
        return TensorShape(input_shape)


class Dropout(SettingsLayer):
    """While training, elements set to zero."""

    settings: Tuple[str, ...] = ("rate", "noise_shape", "seed")
    supports_masking = True

    def __init__(self, rate: float = 0.5, noise_shape: Any = None, seed: Optional[int] = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def _shape(self, inputs: Any) -> Any:
        if not isinstance(self.noise_shape, (list, tuple)) or None not in self.noise_shape:
            return self.noise_shape
        given = array_ops.shape(inputs)
        return convert_to_tensor([given[i] if n is None else n for i, n in enumerate(self.noise_shape)])

    def call(self, inputs: Any, training: Any = None) -> Any:
        """Computes the outputs."""
        if isinstance(self.rate, (int, float)) and self.rate == 0:
            return inputs
        training = K.learning_phase() if training is None else training
        return smart_cond(training, lambda: nn_ops.dropout(inputs, None, self._shape(inputs), self.seed, rate=self.rate), lambda: array_ops.identity(inputs))


class SpatialDropout1D(Dropout):
    """While training, whole channels of sequences set to zero."""

    settings: Tuple[str, ...] = ("rate",)
    rank = 1

    def __init__(self, rate: float = 0.5, data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(rate, **kwargs)
        self.data_format = K.image_data_format() if data_format is None else data_format
        if self.data_format not in ("channels_last", "channels_first"):
            raise at_user_line(ValueError('data_format must be in {"channels_last", "channels_first"}'))
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _shape(self, inputs: Any) -> Any:
        size, ones = array_ops.shape(inputs), [1] * self.rank
        first = self.data_format == "channels_first" and self.rank > 1
        return [size[0], size[1], *ones] if first else [size[0], *ones, size[self.rank + 1]]


class SpatialDropout2D(SpatialDropout1D):
    """While training, whole channels of images set to zero."""

    settings: Tuple[str, ...] = ("rate", "data_format")
    rank = 2


class SpatialDropout3D(SpatialDropout1D):
    """While training, whole channels of volumes set to zero."""

    settings: Tuple[str, ...] = ("rate", "data_format")
    rank = 3


class Activation(SettingsLayer):
    """An activation."""

    settings: Tuple[str, ...] = ("activation",)
    supports_masking = True

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        return self.activation(inputs)


class Reshape(SettingsLayer):
    """Another shape of each example."""

    settings: Tuple[str, ...] = ("target_shape",)

    def __init__(self, target_shape: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs."""
        given = TensorShape(input_shape).as_list()
        if None in given[1:]:
            return TensorShape([given[0], *(None if d == -1 else d for d in self.target_shape)])
        return TensorShape([given[0], *self._fixed(given[1:])])

    def _fixed(self, given: Any) -> Any:
        size, known = int(np.prod(given, dtype=int)), int(np.prod([d for d in self.target_shape if d != -1], dtype=int))
        open_places = self.target_shape.count(-1)
        if open_places > 1:
            raise at_user_line(ValueError("Can only specify one unknown dimension."))
        if (open_places and (known == 0 or size % known)) or (not open_places and size != known):
            raise at_user_line(ValueError("total size of new array must be unchanged"))
        return [size // known if d == -1 else d for d in self.target_shape]

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        given = inputs.get_shape().as_list()
        target = list(self.target_shape) if None in given[1:] else self._fixed(given[1:])
        made = array_ops.reshape(inputs, array_ops.stack([array_ops.shape(inputs)[0], *target]))
        made.set_shape([given[0], *(None if d == -1 else d for d in target)])
        return made


class Permute(SettingsLayer):
    """Axes of each example in another order, counted from 1."""

    settings: Tuple[str, ...] = ("dims",)

    def __init__(self, dims: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise at_user_line(ValueError("Invalid permutation `dims` for Permute Layer: %s. The indices in `dims` must be all from 1 on." % (self.dims,)))
        self.input_spec = InputSpec(ndim=len(self.dims) + 1)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        return array_ops.transpose(inputs, [0, *self.dims])


class Flatten(SettingsLayer):
    """[batch, ...] as [batch, elements]."""

    settings: Tuple[str, ...] = ("data_format",)

    def __init__(self, data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = normalize_data_format(K.image_data_format() if data_format is None else data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        shape = inputs.get_shape()
        if shape.ndims is None:
            if self.data_format == "channels_first":
                raise at_user_line(ValueError("Flatten with data_format='channels_first' needs inputs of known rank"))
            return array_ops.reshape(inputs, array_ops.stack([array_ops.shape(inputs)[0], -1]))
        if self.data_format == "channels_first" and shape.ndims > 2:
            inputs = array_ops.transpose(inputs, [0, *range(2, shape.ndims), 1])
        batch, count = shape[0].value, shape[1:].num_elements()
        sizes: Any = [batch if batch is not None else array_ops.shape(inputs)[0], -1]
        made = array_ops.reshape(inputs, sizes)
        made.set_shape([batch, count])
        return made


class RepeatVector(SettingsLayer):
    """Each vector n times."""

    settings: Tuple[str, ...] = ("n",)

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n = n
        self.input_spec = InputSpec(ndim=2)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        return K.repeat(inputs, self.n)


class Lambda(SettingsLayer):
    """A function as a layer."""

    supports_masking = False

    def __init__(self, function: Any, output_shape: Any = None, mask: Any = None, arguments: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not callable(function):
            raise at_user_line(TypeError("the function of a Lambda layer must be callable, got %r" % (function,)))
        self.function, self.arguments, self._output_shape = function, dict(arguments or {}), output_shape
        self._made: List[Any] = []  # the variables that the function has made
        if mask is not None:
            self.supports_masking = True
        self.mask = mask

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:
        """Computes the outputs."""
        arguments = dict(self.arguments)
        taken = arguments_of(self.function)
        if "mask" in taken:
            arguments["mask"] = mask
        if "training" in taken and "training" not in arguments:
            arguments["training"] = K.learning_phase() if training is None else training
        made = iter(list(self._made))

        def kept(next_creator: Any, **given: Any) -> Any:
            """The variable that an earlier call has made at this place, or a new one."""
            found = next(made, None)
            if found is None:
                found = next_creator(**given)
                self._made.append(found)
            return found

        with variable_creator_scope(kept):
            return self.function(inputs, **arguments)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask that was given, or made by a function."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shapes of the outputs: what was given for each example, or what a function says, or what the function gives."""
        if self._output_shape is None:
            return super().compute_output_shape(input_shape)
        if callable(self._output_shape):
            return each_shape(lambda shape: shape, self._output_shape(input_shape))
        many = isinstance(input_shape, list) and bool(input_shape) and isinstance(input_shape[0], (tuple, list, TensorShape))
        batch = TensorShape(input_shape[0] if many else input_shape)[0].value
        return each_shape(lambda shape: TensorShape([batch, *shape]), self._output_shape)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer; a lambda is kept as its code."""
        config = {**super().get_config(), "arguments": self.arguments}
        for name, value in (("function", self.function), ("output_shape", self._output_shape), ("mask", self.mask)):
            if name == "mask" and value is None:
                continue
            if name == "output_shape":
                config["output_shape_module"] = None
            if not callable(value):
                config.update({name: value, name + "_type": "raw"})
            elif isinstance(value, types.LambdaType) and value.__name__ == "<lambda>":
                closure = tuple(c.cell_contents for c in value.__closure__) if value.__closure__ else None
                code = marshal.dumps(value.__code__).decode("raw_unicode_escape")
                config.update({name: (code, value.__defaults__, closure), name + "_type": "lambda"})
                _KNOWN[code] = value
            else:
                config.update({name: value.__name__, name + "_type": "function"})
                _KNOWN[value.__name__] = value
            if callable(value):
                config["module" if name == "function" else name + "_module"] = value.__module__
        return config

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """A layer of what get_config gave; code out of a file is run only where the program has a function of it."""
        config = copy.copy(config)
        objects = {**_KNOWN, **get_custom_objects(), **(custom_objects or {})}
        for name in ("function", "output_shape", "mask"):
            config.pop("module" if name == "function" else name + "_module", None)
            kind, value = config.pop(name + "_type", "function" if name == "function" else "raw"), config.get(name)
            if kind == "raw":
                config[name] = (
                    tuple(value) if name == "output_shape" and isinstance(value, list) and not any(isinstance(v, (list, tuple)) for v in value) else value
                )
                continue
            config[name] = objects.get(value if isinstance(value, str) or value is None else value[0])
            if config[name] is None:
                raise at_user_line(
                    ValueError(
                        "The %s of a Lambda layer is not known to this program: use a function with a name, and give it in "
                        "custom_objects (code out of files is not run)." % name
                    )
                )
        for value in (config.get("arguments", {}),):
            for key in value:
                if isinstance(value[key], dict) and value[key].get("type") == "ndarray":
                    value[key] = np.array(value[key]["value"])
        return cls(**config)


_KNOWN: Dict[str, Any] = {}


class Dense(SettingsLayer):
    """activation(inputs kernel + bias)."""

    settings: Tuple[str, ...] = (
        "units",
        "activation",
        "use_bias",
        "kernel_initializer",
        "bias_initializer",
        "kernel_regularizer",
        "bias_regularizer",
        "activity_regularizer",
        "kernel_constraint",
        "bias_constraint",
    )
    supports_masking = True

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._set(
            activation=activation,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
        )
        self.units, self.use_bias = int(units), use_bias
        self.input_spec = InputSpec(min_ndim=2)
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        if self.dtype is not None and not (dtypes.as_dtype(self.dtype).is_floating or dtypes.as_dtype(self.dtype).is_complex):
            raise at_user_line(TypeError("Unable to build `Dense` layer with non-floating point dtype %s: cast its input" % dtypes.as_dtype(self.dtype).name))
        size = TensorShape(input_shape)[-1].value
        if size is None:
            raise at_user_line(ValueError("The last dimension of the inputs to `Dense` should be defined. Found `None`."))
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self.kernel = self.add_weight("kernel", [size, self.units], None, self.kernel_initializer, self.kernel_regularizer, True, self.kernel_constraint)
        if self.use_bias:
            self.bias = self.add_weight("bias", [self.units], None, self.bias_initializer, self.bias_regularizer, True, self.bias_constraint)
        self.built = True

    def _kernel_of_call(self) -> Any:
        """The kernel that calls use."""
        return self.kernel

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        kernel = self._kernel_of_call()
        if inputs.dtype.base_dtype != kernel.dtype.base_dtype:
            inputs = math_ops.cast(inputs, kernel.dtype.base_dtype)
        shape = inputs.get_shape()
        if isinstance(inputs, SparseTensor):
            made = sparse_ops.sparse_tensor_dense_matmul(inputs, kernel)
        elif (shape.ndims or 2) > 2:
            made = matrix_ops.tensordot(inputs, kernel, [[shape.ndims - 1], [0]])
            made.set_shape([*shape.as_list()[:-1], self.units])
        else:
            made = matrix_ops.matmul(inputs, kernel)
        return self.activation(nn_ops.bias_add(made, self.bias) if self.bias is not None else made)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs."""
        shape = TensorShape(input_shape).with_rank_at_least(2)
        if shape[-1].value is None:
            raise at_user_line(ValueError("The innermost dimension of input_shape must be defined, but saw: %s" % input_shape))
        return shape[:-1].concatenate(self.units)


class ActivityRegularization(SettingsLayer):
    """What goes in; its size is added to the loss."""

    settings: Tuple[str, ...] = ("l1", "l2")
    supports_masking = True

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **kwargs: Any) -> None:
        from millrace.keras import regularizers

        super().__init__(activity_regularizer=regularizers.L1L2(l1=l1, l2=l2), **kwargs)
        self.l1, self.l2 = l1, l2


__all__ = [
    "Activation",
    "ActivityRegularization",
    "Dense",
    "Dropout",
    "Flatten",
    "Lambda",
    "Masking",
    "Permute",
    "RepeatVector",
    "Reshape",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
]
