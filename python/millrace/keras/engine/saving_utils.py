# SPDX-License-Identifier: Apache-2.0
"""Calls of models as functions, and what else is asked of a model before it is written."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from millrace.framework import nest
from millrace.framework.def_function import Function, function
from millrace.framework.errors import at_user_line
from millrace.framework.type_spec import TensorSpec


def extract_model_metrics(model: Any) -> Optional[Dict[str, Any]]:
    """The metrics that a model was compiled with, by name; None where there are none."""
    if not getattr(model, "_compile_metrics", None):
        return None
    chosen = {id(metric) for metric in model._chosen_metrics}
    return {model.metrics_names[at]: metric for at, metric in model._counting.items() if id(metric) in chosen}


def model_input_signature(model: Any) -> Optional[List[Any]]:
    """A list of the TensorSpecs of a model's inputs, for any number of examples; None where it has no inputs yet."""
    if not getattr(model, "inputs", None):
        return None
    specs = [TensorSpec([None, *t.shape.as_list()[1:]], t.dtype.base_dtype, name) for t, name in zip(model.inputs, model.input_names)]
    if len(specs) == 1 and not _by_name(model):
        return specs
    return [dict(zip(model.input_names, specs)) if _by_name(model) else specs]


def _by_name(model: Any) -> bool:
    """Whether a model was connected to a dictionary of inputs."""
    calls: Any = getattr(model, "_inbound_nodes", ())
    return bool(calls) and isinstance(calls[-1].form, list)


def raise_model_input_error(model: Any) -> None:
    """ValueError: a model has no inputs yet."""
    raise at_user_line(
        ValueError(
            "Model %s cannot be saved because the input shapes have not been set. Usually, input shapes are automatically determined from calling .fit() or "
            ".predict(). To manually set the shapes, call model._set_inputs(inputs)." % model
        )
    )


def trace_model_call(model: Any, input_signature: Any = None) -> Any:
    """A tf.function of a model's inputs that gives its outputs by name, as it predicts."""
    signature = input_signature
    if signature is None and isinstance(model.call, Function):
        signature = model.call.input_signature
    if signature is None:
        signature = model_input_signature(model)
    if signature is None:
        raise_model_input_error(model)

    def _wrapped_model(*args: Any) -> Dict[str, Any]:
        outputs = nest.flatten(model(args[0] if len(signature) == 1 else list(args), training=False))
        names = getattr(model, "output_names", None) or ["output_%d" % (i + 1) for i in range(len(outputs))]
        return dict(zip(names, outputs))

    return function(_wrapped_model, input_signature=signature)
