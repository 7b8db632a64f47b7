# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""What an exported model takes, and the folders that exports go to."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, NamedTuple, Optional

from millrace import gfile, tf_logging
from millrace.compat import as_bytes
from millrace.estimator.export_output import ClassificationOutput, EvalOutput, ExportOutput, PredictOutput, RegressionOutput, TrainOutput  # noqa: F401
from millrace.estimator.mode_keys import ModeKeyMap
from millrace.estimator.reading import input_of
from millrace.estimator.spec import ModeKeys
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Tensor
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, parsing_ops
from millrace.saved_model import signature_constants, signature_def_utils, tag_constants

_FEATURE, _RECEIVER, _LABEL = "feature", "input", "label"  # the names of single ones
_SINGLE = {"feature": _FEATURE, "label": _LABEL, "receiver_tensor": _RECEIVER, "receiver_tensors_alternative": _RECEIVER}
EXPORT_TAG_MAP = ModeKeyMap(predict=[tag_constants.SERVING], train=[tag_constants.TRAINING], test=[tag_constants.EVAL])
SIGNATURE_KEY_MAP = ModeKeyMap(
    predict=signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    train=signature_constants.DEFAULT_TRAIN_SIGNATURE_DEF_KEY,
    test=signature_constants.DEFAULT_EVAL_SIGNATURE_DEF_KEY,
)
MAX_DIRECTORY_CREATION_ATTEMPTS = 10


def _named(given: Any, what: str, allow_int_keys: bool = False) -> Dict[Any, Any]:
    """Tensors by names, checked; a single one gets a name."""
    if given is None:
        raise at_user_line(ValueError("%ss must be defined." % what))
    tensors = given if isinstance(given, dict) else {_SINGLE[what]: given}
    for key, value in tensors.items():
        if not isinstance(key, (str, int) if allow_int_keys else str):
            raise at_user_line(ValueError("%s keys must be strings%s: %s." % (what, " or ints" if allow_int_keys else "", key)))
        if not isinstance(value, (Tensor, SparseTensor)) and not _stands_for_tensor(value):
            raise at_user_line(ValueError("%s %s must be a Tensor or SparseTensor." % (what, key)))
    return tensors


def _stands_for_tensor(value: Any) -> bool:
    """Whether it has a tensor and converts to one, as those of tf.contrib.labeled_tensor do."""
    if not hasattr(value, "tensor"):
        return False
    try:
        convert_to_tensor(value)
    except (TypeError, ValueError):
        return False
    return True


def _alternatives(given: Any) -> Any:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise at_user_line(ValueError("receiver_tensors_alternatives must be a dict: %s." % (given,)))
    return {name: _named(tensors, "receiver_tensors_alternative") for name, tensors in given.items()}


class _Receiver(NamedTuple):
    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Any


class ServingInputReceiver(_Receiver):
    """The features of a served model, the tensors that they are made of, and other tensors that may be fed instead."""

    def __new__(cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None) -> "ServingInputReceiver":
        return super().__new__(
            cls, _named(features, "feature", True), _named(receiver_tensors, "receiver_tensor"), _alternatives(receiver_tensors_alternatives)
        )


class TensorServingInputReceiver(_Receiver):
    """The same for a model whose features are one tensor, without a name."""

    def __new__(cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None) -> "TensorServingInputReceiver":
        if features is None:
            raise at_user_line(ValueError("features must be defined."))
        if not isinstance(features, (Tensor, SparseTensor)):
            raise at_user_line(ValueError("feature must be a Tensor or SparseTensor."))
        return super().__new__(cls, features, _named(receiver_tensors, "receiver_tensor"), _alternatives(receiver_tensors_alternatives))


class UnsupervisedInputReceiver(ServingInputReceiver):
    """The features of a model that trains or is evaluated without labels, and the tensors that they are made of."""

    def __new__(cls, features: Any, receiver_tensors: Any) -> "UnsupervisedInputReceiver":  # type: ignore[misc]
        return super().__new__(cls, features, receiver_tensors)  # type: ignore[return-value]


class _WithLabels(NamedTuple):
    features: Any
    labels: Any
    receiver_tensors: Any


class SupervisedInputReceiver(_WithLabels):
    """The features and labels of a model that trains or is evaluated, and the tensors that they are made of."""

    def __new__(cls, features: Any, labels: Any, receiver_tensors: Any) -> "SupervisedInputReceiver":
        _named(features, "feature", True)
        _named(labels, "label", True)
        return super().__new__(cls, features, labels, _named(receiver_tensors, "receiver_tensor"))


def build_parsing_serving_input_receiver_fn(feature_spec: Dict[str, Any], default_batch_size: Optional[int] = None) -> Callable[[], ServingInputReceiver]:
    """A function that takes serialized examples and parses them."""

    def receive() -> ServingInputReceiver:
        serialized = array_ops.placeholder(dtypes.string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(parsing_ops.parse_example(serialized, feature_spec), {"examples": serialized})

    return receive


def build_raw_serving_input_receiver_fn(features: Dict[str, Any], default_batch_size: Optional[int] = None) -> Callable[[], ServingInputReceiver]:
    """A function that makes placeholders like these features."""

    def receive() -> ServingInputReceiver:
        made = _placeholders(features, default_batch_size)
        return ServingInputReceiver(made, dict(made))

    return receive


def _placeholders(like: Dict[str, Any], batch_size: Optional[int]) -> Dict[str, Any]:
    batch = TensorShape([batch_size])
    return {key: array_ops.placeholder(t.dtype.base_dtype, batch.concatenate(t.get_shape()[1:]), name=t.op.name) for key, t in like.items()}


def build_raw_supervised_input_receiver_fn(features: Any, labels: Any, default_batch_size: Optional[int] = None) -> Callable[[], SupervisedInputReceiver]:
    """A function that makes placeholders like these features and labels: for exports that train and evaluate."""
    given = {_RECEIVER: features, _LABEL: labels}
    parts = {name: part if isinstance(part, dict) else {name: convert_to_tensor(part)} for name, part in given.items()}
    both = set(parts[_RECEIVER]) & set(parts[_LABEL])
    if both:
        raise at_user_line(ValueError("Features and labels must have distinct keys. Found overlapping keys: %s" % sorted(both)))

    def receive() -> SupervisedInputReceiver:
        made = {name: _placeholders(part, default_batch_size) for name, part in parts.items()}
        inner, answers = (made[name] if isinstance(given[name], dict) else made[name][name] for name in (_RECEIVER, _LABEL))
        return SupervisedInputReceiver(inner, answers, {**made[_RECEIVER], **made[_LABEL]})

    return receive


def build_supervised_input_receiver_fn_from_input_fn(input_fn: Callable[..., Any], **input_fn_args: Any) -> Callable[[], SupervisedInputReceiver]:
    """A function that makes placeholders like what an input function gives."""
    with Graph().as_default():
        features, labels = input_of(input_fn(**input_fn_args))
    return build_raw_supervised_input_receiver_fn(features, labels)


def export_outputs_for_mode(mode: str, serving_export_outputs: Any = None, predictions: Any = None, loss: Any = None, metrics: Any = None) -> Dict[str, Any]:
    """What a graph of a mode answers, by the names of its signatures."""
    if mode in (ModeKeys.PREDICT, "predict"):  # the second is Keras's name
        if serving_export_outputs is None and predictions is not None:
            return {signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: PredictOutput(predictions)}
        return serving_export_outputs or {}
    if mode == ModeKeys.TRAIN:
        return {signature_constants.DEFAULT_TRAIN_SIGNATURE_DEF_KEY: TrainOutput(loss, predictions, metrics)}
    return {signature_constants.DEFAULT_EVAL_SIGNATURE_DEF_KEY: EvalOutput(loss, predictions, metrics)}


def build_all_signature_defs(
    receiver_tensors: Any, export_outputs: Any, receiver_tensors_alternatives: Any = None, serving_only: bool = True
) -> Dict[str, Any]:
    """A signature for each output and each way of feeding it. Outputs that cannot be had from such inputs have none, and, unless it is said
    otherwise, only those are there that can be served."""
    if not isinstance(export_outputs, dict):
        raise ValueError("export_outputs must be a dict and not %s" % type(export_outputs))
    receivers = {"": receiver_tensors, **{(name or "None") + ":": tensors for name, tensors in (receiver_tensors_alternatives or {}).items()}}
    made = {}
    for prefix, tensors in receivers.items():
        named = tensors if isinstance(tensors, dict) else {_RECEIVER: tensors}
        for key, output in export_outputs.items():
            try:
                made["%s%s" % (prefix, key or "None")] = output.as_signature_def(named)
            except ValueError as error:
                tf_logging.debug("No signature %s%s: %s", prefix, key, error)
    return {key: signature for key, signature in made.items() if not serving_only or signature_def_utils.is_valid_signature(signature)}


def get_timestamped_export_dir(export_dir_base: Any) -> bytes:
    """A folder, which is not there yet, named after the time in seconds."""
    for attempt in range(MAX_DIRECTORY_CREATION_ATTEMPTS):
        folder = os.path.join(as_bytes(export_dir_base), as_bytes(str(int(time.time()))))
        if not gfile.Exists(folder):
            return folder
        time.sleep(1)
        tf_logging.warning("Export directory %s already exists; retrying (attempt %d/%d)", folder, attempt + 1, MAX_DIRECTORY_CREATION_ATTEMPTS)
    raise at_user_line(RuntimeError("Failed to obtain a unique export directory name after %d attempts." % MAX_DIRECTORY_CREATION_ATTEMPTS))


def get_temp_export_dir(timestamped_export_dir: Any) -> bytes:
    """The folder beside it in which an export is made."""
    parent, name = os.path.split(as_bytes(timestamped_export_dir))
    return os.path.join(parent, b"temp-" + name)
