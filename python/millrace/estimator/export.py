# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""What an exported model takes, and the folders that exports go to."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, NamedTuple, Optional

from millrace import gfile, tf_logging
from millrace.compat import as_bytes
from millrace.estimator.export_output import ClassificationOutput, ExportOutput, PredictOutput, RegressionOutput  # noqa: F401
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, parsing_ops
from millrace.saved_model import signature_def_utils

_FEATURE, _RECEIVER = "feature", "input"  # the names of single ones
MAX_DIRECTORY_CREATION_ATTEMPTS = 10


def _named(given: Any, name: str, what: str, kinds: Any, expected: str) -> Dict[str, Any]:
    """Tensors by names, checked; a single one gets a name."""
    tensors = given if isinstance(given, dict) else {name: given}
    for key, value in tensors.items():
        if not isinstance(key, str):
            raise at_user_line(ValueError("%s keys must be strings: %s." % (what, key)))
        if not isinstance(value, kinds):
            raise at_user_line(ValueError("%s %s must be a %s." % (what.replace("receiver_tensors", "receiver_tensor"), key, expected)))
    return tensors


def _receivers(given: Any) -> Dict[str, Any]:
    if given is None:
        raise at_user_line(ValueError("receiver_tensors must be defined."))
    return _named(given, _RECEIVER, "receiver_tensors", Tensor, "Tensor")


def _alternatives(given: Any) -> Any:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise at_user_line(ValueError("receiver_tensors_alternatives must be a dict: %s." % (given,)))
    return {name: _named(tensors, _RECEIVER, "receiver_tensors", (Tensor, SparseTensor), "Tensor or SparseTensor") for name, tensors in given.items()}


class _Receiver(NamedTuple):
    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Any


class ServingInputReceiver(_Receiver):
    """The features of a served model, the tensors that they are made of, and other tensors that may be fed instead."""

    def __new__(cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None) -> "ServingInputReceiver":
        if features is None:
            raise at_user_line(ValueError("features must be defined."))
        made = _named(features, _FEATURE, "feature", (Tensor, SparseTensor), "Tensor or SparseTensor")
        return super().__new__(cls, made, _receivers(receiver_tensors), _alternatives(receiver_tensors_alternatives))


class TensorServingInputReceiver(_Receiver):
    """The same for a model whose features are one tensor, without a name."""

    def __new__(cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None) -> "TensorServingInputReceiver":
        if features is None:
            raise at_user_line(ValueError("features must be defined."))
        if not isinstance(features, (Tensor, SparseTensor)):
            raise at_user_line(ValueError("feature must be a Tensor or SparseTensor."))
        return super().__new__(cls, features, _receivers(receiver_tensors), _alternatives(receiver_tensors_alternatives))


def build_parsing_serving_input_receiver_fn(feature_spec: Dict[str, Any], default_batch_size: Optional[int] = None) -> Callable[[], ServingInputReceiver]:
    """A function that takes serialized examples and parses them."""

    def receive() -> ServingInputReceiver:
        serialized = array_ops.placeholder(dtypes.string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(parsing_ops.parse_example(serialized, feature_spec), {"examples": serialized})

    return receive


def build_raw_serving_input_receiver_fn(features: Dict[str, Any], default_batch_size: Optional[int] = None) -> Callable[[], ServingInputReceiver]:
    """A function that makes placeholders like these features."""

    def receive() -> ServingInputReceiver:
        made = {
            key: array_ops.placeholder(t.dtype.base_dtype, [default_batch_size, *t.get_shape().as_list()[1:]], name=t.op.name) for key, t in features.items()
        }
        return ServingInputReceiver(made, dict(made))

    return receive


def build_all_signature_defs(receiver_tensors: Any, export_outputs: Any, receiver_tensors_alternatives: Any = None) -> Dict[str, Any]:
    """A signature for each output and each way of feeding it. Outputs that cannot be had from such inputs have none."""
    if not isinstance(export_outputs, dict):
        raise ValueError("export_outputs must be a dict.")
    receivers = {"": receiver_tensors, **{(name or "None") + ":": tensors for name, tensors in (receiver_tensors_alternatives or {}).items()}}
    made = {}
    for prefix, tensors in receivers.items():
        named = tensors if isinstance(tensors, dict) else {_RECEIVER: tensors}
        for key, output in export_outputs.items():
            try:
                made["%s%s" % (prefix, key or "None")] = output.as_signature_def(named)
            except ValueError as error:
                tf_logging.debug("No signature %s%s: %s", prefix, key, error)
    return {key: signature for key, signature in made.items() if signature_def_utils.is_valid_signature(signature)}


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
