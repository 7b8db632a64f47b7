# SPDX-License-Identifier: Apache-2.0
"""What a model function is called for, and what it answers."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple

from millrace.estimator.export_output import ExportOutput, PredictOutput
from millrace.framework import nest
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, get_collection_ref, get_default_graph
from millrace.framework.tensor_util import is_tensor
from millrace.ops import array_ops, control_flow_ops
from millrace.saved_model import signature_constants

LOSS_METRIC_KEY, AVERAGE_LOSS_METRIC_KEY = "loss", "average_loss"


class ModeKeys:
    """What a model is built for."""

    TRAIN, EVAL, PREDICT = "train", "eval", "infer"


class _Spec(NamedTuple):
    mode: Any
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Any
    export_outputs: Any
    training_chief_hooks: Any
    training_hooks: Any
    scaffold: Any
    evaluation_hooks: Any
    prediction_hooks: Any


def _tensor(value: Any, what: str) -> Any:
    if not is_tensor(value) or isinstance(value, SparseTensor):
        raise at_user_line(TypeError("%s must be Tensor, given: %s" % (what, value)))
    return value


def _tensor_or_operation(value: Any, what: str) -> Any:
    if not isinstance(value, Operation) and not is_tensor(value):
        raise at_user_line(TypeError("%s must be Operation or Tensor, given: %s" % (what, value)))
    return value


def _scalar(loss: Any) -> Any:
    shape = _tensor(loss, "loss").get_shape()
    if shape.num_elements() not in (None, 1):
        raise at_user_line(ValueError("Loss must be scalar, given: %s" % loss))
    return loss if shape.is_compatible_with([]) else array_ops.reshape(loss, [])


def _metrics(given: Any) -> Dict[str, Any]:
    if not isinstance(given, dict):
        raise at_user_line(TypeError("eval_metric_ops must be a dict, given: %s" % (given,)))
    given = {key: _pair(value, key) for key, value in given.items()}
    for key, pair in given.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise at_user_line(TypeError("Values of eval_metric_ops must be (metric_value, update_op) tuples, given: %s for key: %s" % (pair, key)))
        for part in [*nest.flatten(pair[0]), pair[1]]:
            _tensor_or_operation(part, "eval_metric_ops[%s]" % key)
    return given


def _pair(value: Any, key: str) -> Any:
    """Value and update of a metric of Keras, which has been updated; anything else as it is."""
    from millrace.keras.metrics import Metric

    if not isinstance(value, Metric):
        return value
    if not value.updates:
        raise at_user_line(ValueError("Please call update_state(...) on the metric %s (%s) of eval_metric_ops." % (key, value.name)))
    local = get_collection_ref(GraphKeys.LOCAL_VARIABLES)
    local += [variable for variable in value.variables if not any(variable is there for there in local)]  # a session sets them
    return value.result(), control_flow_ops.group(*value.updates)


def _exports(given: Any, predictions: Any, mode: str) -> Any:
    """The outputs that are exported; a single one is the default one too, and that are the predictions where nothing is said."""
    default = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    if given is None:
        return {default: PredictOutput(predictions)} if mode == ModeKeys.PREDICT else None
    if not isinstance(given, dict):
        raise at_user_line(TypeError("export_outputs must be dict, given: %s" % (given,)))
    if not all(isinstance(value, ExportOutput) for value in given.values()):
        raise at_user_line(TypeError("Values in export_outputs must be ExportOutput objects. Given: %s" % given))
    if len(given) > 1 and default not in given:
        raise at_user_line(
            ValueError(
                "Multiple export_outputs were provided, but none of them is specified as the default.  Do this by naming one of them "
                "with signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY."
            )
        )
    return {**given, default: next(iter(given.values()))} if len(given) == 1 else given


def _in_default_graph(what: str, named: Dict[str, Any]) -> None:
    graph = get_default_graph()
    for key, value in named.items():
        for part in nest.flatten(value):
            if part is not None and part.graph is not graph:
                raise at_user_line(
                    ValueError(
                        '%s with "%s%s" must be from the default graph. Possible causes of this error include: \n\n1) %s was created '
                        "outside the context of the default graph.\n\n2) The object passed through to EstimatorSpec was not created "
                        'in the most recent call to "model_fn".' % (what, key and key + ": ", part.name, what)
                    )
                )


def _hooks(given: Any) -> Any:
    from millrace.train.hooks import SessionRunHook

    for hook in given or ():
        if not isinstance(hook, SessionRunHook):
            raise at_user_line(TypeError("All hooks must be SessionRunHook instances, given: %s" % (hook,)))
    return tuple(given or ())


class EstimatorSpec(_Spec):
    """The tensors and operations of a model."""

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Any = None,
        export_outputs: Any = None,
        training_chief_hooks: Any = None,
        training_hooks: Any = None,
        scaffold: Any = None,
        evaluation_hooks: Any = None,
        prediction_hooks: Any = None,
    ) -> "EstimatorSpec":
        from millrace.train.monitored_session import Scaffold

        wanted = {ModeKeys.TRAIN: [("train_op", train_op), ("loss", loss)], ModeKeys.EVAL: [("loss", loss)], ModeKeys.PREDICT: [("predictions", predictions)]}
        for name, value in wanted.get(mode, ()):
            if value is None:
                raise at_user_line(ValueError("Missing %s." % name))
        if train_op is not None:
            _tensor_or_operation(train_op, "train_op")
        loss = None if loss is None else _scalar(loss)
        predictions = {} if predictions is None else predictions
        named = predictions if isinstance(predictions, dict) else {"": predictions}
        for key, value in named.items():
            _tensor(value, "predictions[%s]" % (key,) if isinstance(predictions, dict) else "predictions")
        measures = _metrics({} if eval_metric_ops is None else eval_metric_ops)
        exports = _exports(export_outputs, predictions, mode)
        _in_default_graph("prediction values", named)
        _in_default_graph("loss", {"": loss})
        _in_default_graph("train_op", {"": train_op})
        _in_default_graph("eval_metric_ops", measures)
        hooks = [_hooks(given) for given in (training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks)]
        if scaffold is not None and not isinstance(scaffold, Scaffold):
            raise at_user_line(TypeError("scaffold must be tf.train.Scaffold. Given: %s" % (scaffold,)))
        return super().__new__(cls, mode, predictions, loss, train_op, measures, exports, hooks[0], hooks[1], scaffold or Scaffold(), hooks[2], hooks[3])

    def _replace(self, **changes: Any) -> "EstimatorSpec":
        """A copy with other values, which are checked too; for the same mode."""
        if changes.get("mode", self.mode) != self.mode:
            raise at_user_line(ValueError("mode of EstimatorSpec cannot be changed."))
        return EstimatorSpec(**{**self._asdict(), **changes})
