# SPDX-License-Identifier: Apache-2.0
"""Functions with the arguments of TensorFlow 2, which 1.15 has within its modules (`nn_ops.dropout_v2`): what they do is that of the function of 1.x."""

from __future__ import annotations

import importlib
import inspect
from typing import Any, Callable, Dict

from millrace.framework import dispatch
from millrace.framework.errors import at_user_line

# A row is the module and name of the function of 1.x, then the parameters by their places: `new=old` is called otherwise there, `old:value` is no
# parameter but always this. Those without a default in the function of 1.x stay without one.
_TEXT = """
ops.array_ops expand_dims input! axis! name
ops.array_ops squeeze input! axis name
ops.array_ops shape input! out_type name
ops.array_ops size input! out_type name
ops.array_ops zeros_like input=tensor! dtype name
ops.array_ops ones_like input=tensor! dtype name
ops.array_ops transpose a! perm conjugate name
ops.array_ops pad tensor! paddings! mode constant_values name
ops.gather_ops gather params! indices! validate_indices axis batch_dims name
ops.array_ops boolean_mask tensor! mask! axis name
ops.math_ops argmax input! axis output_type name
ops.math_ops argmin input! axis output_type name
ops.math_ops count_nonzero input! axis keepdims dtype name
ops.nn_ops softmax logits! axis name
ops.nn_ops log_softmax logits! axis name
ops.nn_ops l2_normalize x! axis epsilon name
ops.nn_ops dropout x! rate! noise_shape seed name
ops.nn_ops moments x! axes! shift keepdims name
ops.nn_ops sparse_softmax_cross_entropy_with_logits labels! logits! name
ops.nn_ops sigmoid_cross_entropy_with_logits labels logits name
ops.nn_ops conv2d_transpose input! filters! output_shape! strides! padding data_format dilations name
ops.nn_ops conv3d_transpose input! filters! output_shape! strides! padding data_format dilations name
ops.candidate_sampling nce_loss weights! biases! labels! inputs! num_sampled! num_classes! num_true sampled_values remove_accidental_hits name partition_strategy:div
ops.candidate_sampling sampled_softmax_loss weights! biases! labels! inputs! num_sampled! num_classes! num_true sampled_values remove_accidental_hits seed name partition_strategy:div
ops.nn_ops embedding_lookup params! ids! max_norm name partition_strategy:div
ops.nn_ops embedding_lookup_sparse params! sp_ids! sp_weights! combiner max_norm name partition_strategy:div
ops.matrix_ops norm tensor! ord axis keepdims name
ops.check_ops assert_negative x! message summarize name
ops.check_ops assert_positive x! message summarize name
ops.check_ops assert_non_negative x! message summarize name
ops.check_ops assert_non_positive x! message summarize name
ops.check_ops assert_equal x! y! message summarize name
ops.check_ops assert_none_equal x! y! message summarize name
ops.derived_ops assert_near x! y! rtol atol message summarize name
ops.check_ops assert_less x! y! message summarize name
ops.check_ops assert_less_equal x! y! message summarize name
ops.check_ops assert_greater x! y! message summarize name
ops.check_ops assert_greater_equal x! y! message summarize name
ops.check_ops assert_rank x! rank! message name
ops.check_ops assert_rank_at_least x! rank! message name
ops.check_ops assert_rank_in x! ranks! message name
ops.check_ops assert_integer x! message name
ops.check_ops assert_type tensor! tf_type! message name
"""


def _rows() -> Dict[str, Any]:
    rows = (line.split() for line in _TEXT.strip().splitlines())
    return {name + "_v2": (module, name, parts) for module, name, *parts in rows}


_ROWS = _rows()


def _made(module: str, name: str, parts: Any) -> Callable[..., Any]:
    function = getattr(importlib.import_module("millrace." + module), name)
    if name in dispatch.NAMES:
        function = dispatch.wrapped(function, name)
    fixed = dict(part.split(":") for part in parts if ":" in part)
    old, places = {}, []
    defaults = {key: p.default for key, p in inspect.signature(function).parameters.items()}
    for part in parts:
        if ":" not in part:
            new, _, was = part.rstrip("!").partition("=")
            old[new] = was or new
            default = inspect.Parameter.empty if part.endswith("!") else defaults[old[new]]
            places.append(inspect.Parameter(new, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    signature = inspect.Signature(places)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise at_user_line(TypeError("%s_v2(): %s" % (name, error))) from None
        return function(**{old[key]: value for key, value in given.items()}, **fixed)

    call.__name__ = call.__qualname__ = name + "_v2"
    call.__doc__ = "%s with the arguments of TensorFlow 2." % name
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def __getattr__(name: str) -> Any:
    if name not in _ROWS:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    made = globals()[name] = _made(*_ROWS[name])
    return made
