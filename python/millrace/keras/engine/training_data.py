# SPDX-License-Identifier: Apache-2.0
"""Arrays for models: in the order of inputs and outputs, of shapes that fit, with weights of examples."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np

from millrace.framework import nest
from millrace.framework.composite_tensors import CompositeTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.keras import losses
from millrace.keras.engine.composites import is_composite
from millrace.layers.nodes import listed, with_leaves
from millrace.ops.variables import Variable


def standardize_input_data(data: Any, names: List[str], shapes: Any = None, check_batch_axis: bool = True, exception_prefix: str = "") -> List[Any]:
    """A list of arrays, one for each name; ValueError where there are others, or shapes do not fit."""
    if not names:
        if data is not None and hasattr(data, "__len__") and len(data):
            raise at_user_line(ValueError("Error when checking model %s: expected no data, but got: %s" % (exception_prefix, data)))
        return []
    if data is None:
        return [None for _ in names]
    if isinstance(data, dict):
        for name in names:
            if name not in data:
                raise at_user_line(ValueError('No data provided for "%s". Need data for each key in: %s' % (name, names)))
        arrays = [data[name] for name in names]
    else:
        arrays = _as_many(data, names, shapes is not None, exception_prefix)
    arrays = [np.asarray(x.values) if hasattr(x, "iloc") else x if x is None or hasattr(x, "shape") else np.asarray(x) for x in arrays]
    wanted_shapes = shapes or [None] * len(names)
    arrays = [
        np.expand_dims(x, 1) if x is not None and len(x.shape) == 1 and (shape is None or len(shape) != 1) else x for x, shape in zip(arrays, wanted_shapes)
    ]
    for name, x, shape in zip(names, arrays, shapes or []):
        if shape is None or x is None:
            continue
        if len(x.shape) != len(shape):
            raise at_user_line(
                ValueError(
                    "Error when checking %s: expected %s to have %d dimensions, but got array with shape %s" % (exception_prefix, name, len(shape), x.shape)
                )
            )
        for j, (size, wanted) in enumerate(zip(x.shape, shape)):
            if (j or check_batch_axis) and wanted and size is not None and size != wanted:
                raise at_user_line(
                    ValueError(
                        "Error when checking %s: expected %s to have shape %s but got array with shape %s"
                        % (exception_prefix, name, tuple(shape[1:]), tuple(x.shape[1:]))
                    )
                )
    return arrays


def _as_many(data: Any, names: List[str], limited: bool, prefix: str) -> List[Any]:
    """Data that are no dictionary as a list with one entry for each name. Inputs beyond these are left out, as in 1.15."""
    many = isinstance(data, (list, tuple)) and not is_composite(data)
    given = list(data) if many else [data]
    if given and many:
        if isinstance(given[0], (list, tuple)):
            given = [np.asarray(entry) for entry in given]
        elif len(names) == 1 and isinstance(given[0], (int, float)):
            given = [np.asarray(given)]
    if limited:
        given = given[: len(names)]
    if isinstance(data, int):
        raise at_user_line(ValueError("Expected an array data type but received an integer: %s, as the %s" % (data, prefix)))
    if len(given) == 1 and not many and not hasattr(data, "shape"):
        raise at_user_line(
            TypeError("Error when checking model %s: data should be a Numpy array, or list/dict of Numpy arrays. Found: %s" % (prefix, str(data)[:200]))
        )
    if len(given) == len(names):
        return given
    if given and hasattr(given[0], "shape"):
        raise at_user_line(
            ValueError(
                "Error when checking model %s: the list of Numpy arrays that you are passing to your model is not the size the model expected. "
                "Expected to see %d array(s), but instead got the following list of %d arrays: %s" % (prefix, len(names), len(given), str(data)[:200])
            )
        )
    if len(names) > 1:
        raise at_user_line(
            ValueError(
                "Error when checking model %s: you are passing a list as input to your model, but the model expects a list of %d Numpy arrays instead. "
                "The list you passed was: %s" % (prefix, len(names), str(data)[:200])
            )
        )
    return [np.asarray(data)]


def only_known(given: Dict[str, Any], names: List[str], what: str) -> None:
    """ValueError where a dictionary has a name that no output has."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise at_user_line(ValueError("Unknown entries in %s dictionary: %s. Only expected following keys: %s" % (what, unknown, names)))


def _by_output(given: Any, names: List[str], what: str) -> List[Any]:
    if given is None or isinstance(given, (list, tuple)) and not len(given):
        return [None for _ in names]
    if len(names) == 1:
        if isinstance(given, (list, tuple)) and len(given) == 1:
            return list(given)
        if isinstance(given, dict) and what == "sample_weight":
            only_known(given, names, what)
        if isinstance(given, dict) and names[0] in given:
            return [given[names[0]]]
        return [given]
    if isinstance(given, (list, tuple)):
        if len(given) != len(names):
            raise at_user_line(
                ValueError(
                    "Provided `%s` was a list of %d elements, but the model has %d outputs. You should provide one `%s` array per model "
                    "output." % (what, len(given), len(names), what)
                )
            )
        return list(given)
    if isinstance(given, dict):
        only_known(given, names, what)
        return [given.get(name) for name in names]
    raise at_user_line(
        TypeError("The model has multiple outputs, so `%s` should be either a list or a dict. Provided `%s` type not understood: %s" % (what, what, given))
    )


def standardize_sample_weights(sample_weight: Any, output_names: List[str]) -> List[Any]:
    """Weights of examples, one entry for each output."""
    return _by_output(sample_weight, output_names, "sample_weight")


def standardize_class_weights(class_weight: Any, output_names: List[str]) -> List[Any]:
    """Weights of classes, one entry for each output."""
    return _by_output(class_weight, output_names, "class_weight")


def check_array_lengths(inputs: Any, targets: Any, weights: Any = None) -> None:
    """ValueError unless all arrays have the same number of examples."""

    def lengths(x: Any) -> Any:
        return {0} if x is None else {0 if a is None else a.shape[0] for a in (x if isinstance(x, (list, tuple)) else [x])}

    x, y, w = lengths(inputs), lengths(targets), lengths(weights)
    for found, what in ((x, "input"), (y, "target"), (w, "sample_weight")):
        if len(found) > 1:
            raise at_user_line(ValueError("All %s arrays should have the same number of samples. Got array sizes: %s" % (what, sorted(found))))
    if x != y:
        raise at_user_line(
            ValueError("Input arrays should have the same number of samples as target arrays. Found %d input samples and %d target samples." % (max(x), max(y)))
        )
    if y != w:
        raise at_user_line(
            ValueError(
                "Sample_weight arrays should have the same number of samples as target arrays. Got %d input samples and %d target samples." % (max(y), max(w))
            )
        )


def check_loss_and_target(targets: List[Any], functions: List[Any], shapes: List[Any]) -> None:
    """ValueError where targets cannot be what a loss takes."""
    for y, loss, shape in zip(targets, functions, shapes):
        if loss is None or y is None or shape is None:
            continue
        if _is(loss, losses.categorical_crossentropy, losses.CategoricalCrossentropy) and y.shape[-1] == 1:
            raise at_user_line(
                ValueError(
                    "You are passing a target array of shape %s while using as loss `categorical_crossentropy`. `categorical_crossentropy` "
                    "expects targets to be binary matrices (1s and 0s) of shape (samples, classes): use `to_categorical` of them, or the "
                    "loss `sparse_categorical_crossentropy`." % (y.shape,)
                )
            )
        if any(_is(loss, *kind) for kind in _OF_EQUAL_SHAPES):
            sizes: Any = shape
        elif _is(loss, losses.sparse_categorical_crossentropy, losses.SparseCategoricalCrossentropy) and len(y.shape) == len(shape):
            sizes = (*shape[:-1], 1)
        else:
            continue
        if any(wanted is not None and size != wanted for size, wanted in zip(y.shape[1:], sizes[1:])):
            raise at_user_line(
                ValueError(
                    "A target array with shape %s was passed for an output of shape %s while using as loss `%s`. This loss expects "
                    "targets to have the %s."
                    % (y.shape, shape, getattr(loss, "__name__", type(loss).__name__), "same shape as the output" if sizes is shape else "shape %s" % (sizes,))
                )
            )


_OF_EQUAL_SHAPES = (
    (losses.mean_squared_error, losses.MeanSquaredError),
    (losses.binary_crossentropy, losses.BinaryCrossentropy),
    (losses.categorical_crossentropy, losses.CategoricalCrossentropy),
)


def _is(loss: Any, function: Any, kind: type) -> bool:
    return loss is function or isinstance(loss, kind)


def standardize_weights(y: Any, sample_weight: Any = None, class_weight: Any = None, mode: Optional[str] = None) -> Any:
    """Weights of the examples (with mode "temporal", of their steps) as an array."""
    if mode not in (None, "temporal"):
        raise at_user_line(ValueError('"sample_weight_mode should be None or "temporal". Found: %s' % mode))
    if mode == "temporal" and len(y.shape) < 3:
        raise at_user_line(
            ValueError(
                "Found a sample_weight array for an input with shape %s. Timestep-wise sample weighting (use of "
                'sample_weight_mode="temporal") is restricted to outputs that are at least 3D' % (y.shape,)
            )
        )
    if sample_weight is not None:
        sample_weight = np.asarray(sample_weight)
        if mode is None and len(sample_weight.shape) != 1:
            raise at_user_line(
                ValueError(
                    "Found a sample_weight array with shape %s. In order to use timestep-wise sample weights, you should pass "
                    'sample_weight_mode="temporal" in compile().' % (sample_weight.shape,)
                )
            )
        if mode == "temporal" and len(sample_weight.shape) != 2:
            raise at_user_line(
                ValueError(
                    "Found a sample_weight array with shape %s. In order to use timestep-wise sample weighting, you should pass a 2D "
                    "sample_weight array." % (sample_weight.shape,)
                )
            )
        if len(sample_weight.shape) > len(y.shape) or y.shape[: sample_weight.ndim] != sample_weight.shape:
            raise at_user_line(
                ValueError(
                    "Found a sample_weight array with shape %s for an input with shape %s. sample_weight cannot be broadcast." % (sample_weight.shape, y.shape)
                )
            )
    if isinstance(class_weight, dict):
        if len(y.shape) > 2:
            raise at_user_line(ValueError("`class_weight` not supported for 3+ dimensional targets."))
        classes = np.argmax(y, 1) if len(y.shape) == 2 and y.shape[1] > 1 else np.reshape(y, -1)
        unknown = sorted({int(c) for c in classes} - set(class_weight))
        if unknown:
            raise at_user_line(
                ValueError("`class_weight` must contain all classes in the data. The classes %s exist in the data but not in `class_weight`." % unknown)
            )
        by_class = np.asarray([class_weight[int(c)] for c in classes], np.float32)
        return by_class if sample_weight is None else by_class * sample_weight
    if sample_weight is not None:
        return sample_weight
    return np.ones(y.shape[:1] if mode is None else y.shape[:2], np.float32)


def is_missing(values: Any) -> bool:
    """Whether nothing is given."""
    return values is None or not listed(values)


def check_stream(x: Any, y: Any = None, sample_weight: Any = None, validation_split: float = 0.0, batch_size: Any = None) -> None:
    """ValueError where arguments are given beside what gives batches that are for arrays alone."""
    of_tensors, of_data_set = isinstance(x, SymbolicBatches), hasattr(x, "make_one_shot_iterator") or hasattr(x, "get_next")
    what = "input `x` is a dataset or a dataset iterator" if of_data_set else "data is a generator or Sequence instance"
    if y is not None and of_data_set:
        raise at_user_line(ValueError("When %s, you should not specify a target (`y`) argument: it gives the targets too. Received: %s" % (what, str(y)[:100])))
    if validation_split and (of_tensors or not of_data_set):
        form = "symbolic tensors" if of_tensors else "a Python generator"
        raise at_user_line(ValueError("If your data is in the form of %s, you cannot use `validation_split`." % form))
    for name, value, instead in (
        ("y", y, " Instead pass targets as the second element of each batch."),
        ("sample_weight", sample_weight, " Instead pass weights as the third element of each batch."),
        ("validation_split", validation_split or None, ""),
    ):
        if value is not None:
            raise at_user_line(ValueError("`%s` argument is not supported when %s.%s" % (name, what, instead)))
    if batch_size is not None and not of_tensors:  # tensors have their own
        raise at_user_line(
            ValueError("The `batch_size` argument must not be specified for the given input type. Received input: %s, batch_size: %s" % (x, batch_size))
        )


def size_of_batches(asked: Optional[int], fixed: Optional[int]) -> int:
    """How many examples a batch has: what is asked for, what the model's input says, or 32. ValueError where the first two differ."""
    if asked is not None and fixed is not None and asked != fixed:
        raise at_user_line(
            ValueError("The `batch_size` argument value %d is incompatible with the specified batch size of your Input Layer: %d" % (asked, fixed))
        )
    return asked or fixed or 32


class SymbolicBatches:
    """Tensors as what gives batches: each is what the tensors are then."""

    def __init__(self, parts: Any) -> None:
        self._parts = parts

    def get_next(self) -> Any:
        """The tensors."""
        return with_leaves(lambda x: x if is_composite(x) else convert_to_tensor(x), self._parts)


def has_tensors(*values: Any) -> bool:
    """Whether tensors of the graph, or variables, are among values, in lists and dictionaries too."""
    found: List[Any] = []
    with_leaves(found.append, values)
    return any(isinstance(x, (Tensor, CompositeTensor, Variable)) for x in found)


def symbolic(x: Any, y: Any, sample_weight: Any, steps: Any, what: str) -> SymbolicBatches:
    """Tensors as what gives batches; ValueError where it is not said how many, but for sparse and ragged ones, which are one."""
    if steps is None and not any(isinstance(part, CompositeTensor) for part in nest.flatten(x)):
        raise at_user_line(
            ValueError(
                "If your data is in the form of symbolic tensors, you should specify the `%s` argument (instead of the batch_size "
                "argument, because symbolic tensors are expected to produce batches of input data)." % what
            )
        )
    return SymbolicBatches(x if y is None else (x, y) if sample_weight is None else (x, y, sample_weight))
