# SPDX-License-Identifier: Apache-2.0
"""Weights of models in files: checkpoints of TensorFlow's form, and HDF5 where h5py is installed."""

from __future__ import annotations

import contextlib
import json
import os
import weakref
from typing import Any, Dict, Iterator, List, Optional

import numpy as np

from millrace import names, tf_logging
from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras import losses, metrics, optimizers, optimizers_v1
from millrace.layers.recurrent import GRU, LSTM
from millrace.layers.wrappers import Bidirectional, TimeDistributed
from millrace.train.checkpoint_management import update_checkpoint_state

_VERSION = "2.0.8-tf"


def __getattr__(name: str) -> Any:
    if name in ("load_model", "save_model"):  # of whole models: of the modules that stand on this one
        return getattr(names.find("keras.models"), name)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def h5py() -> Any:
    """The package h5py; ImportError says what to do without."""
    try:
        import h5py as found
    except ImportError:
        raise at_user_line(
            ImportError("HDF5 files need the package h5py: install it, or use save_weights with a name that does not end in .h5, which writes a checkpoint.")
        ) from None
    return found


def is_hdf5(path: Any, save_format: Optional[str] = None) -> bool:
    """Whether a file of this name is HDF5."""
    return save_format == "h5" or str(path).endswith((".h5", ".hdf5", ".keras"))


def holds_hdf5(path: Any) -> bool:
    """Whether there is an HDF5 file, whatever it is called."""
    if is_hdf5(path) or not os.path.isfile(path):
        return is_hdf5(path)
    with open(path, "rb") as file:
        return file.read(8) == b"\x89HDF\r\n\x1a\n"


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def save_weights_to_hdf5_group(group: Any, layers: List[Any]) -> None:
    """Writes the weights of layers, with their names, to a group of an HDF5 file."""
    group.attrs["layer_names"] = [layer.name.encode("utf-8") for layer in layers]
    group.attrs["backend"], group.attrs["keras_version"] = b"tensorflow", _VERSION.encode()
    for layer in layers:
        inner = group.create_group(layer.name)
        weights = layer.weights
        values, names = K.batch_get_value(weights), [w.name.encode("utf-8") for w in weights]
        inner.attrs["weight_names"] = names
        for name, value in zip(names, values):
            inner.create_dataset(name.decode(), data=np.asarray(value))


def _values(group: Any, name: str) -> List[Any]:
    inner = group[name]
    return [np.asarray(inner[_text(n)]) for n in inner.attrs["weight_names"]]


def load_weights_from_hdf5_group(group: Any, layers: List[Any]) -> None:
    """Sets the weights of layers in the order in which the file has them."""
    version = _text(group.attrs["keras_version"]) if "keras_version" in group.attrs else "1"
    original = _text(group.attrs["backend"]) if "backend" in group.attrs else None
    wanted = [layer for layer in layers if layer.weights]
    names = [_text(n) for n in group.attrs["layer_names"] if len(group[_text(n)].attrs["weight_names"])]
    if len(names) != len(wanted):
        raise at_user_line(ValueError("You are trying to load a weight file containing %d layers into a model with %d layers." % (len(names), len(wanted))))
    pairs: List[Any] = []
    for number, (layer, name) in enumerate(zip(wanted, names)):
        values = preprocess_weights_for_loading(layer, _values(group, name), version, original)
        pairs += _pairs(layer, number, values)
    K.batch_set_value(pairs)


def load_weights_from_hdf5_group_by_name(group: Any, layers: List[Any]) -> None:
    """Sets the weights of the layers whose names the file has."""
    version = _text(group.attrs["keras_version"]) if "keras_version" in group.attrs else "1"
    original = _text(group.attrs["backend"]) if "backend" in group.attrs else None
    pairs: List[Any] = []
    for number, name in enumerate(_text(n) for n in group.attrs["layer_names"]):
        for layer in (x for x in layers if x.name == name):
            pairs += _pairs(layer, number, preprocess_weights_for_loading(layer, _values(group, name), version, original))
    K.batch_set_value(pairs)


def _pairs(layer: Any, number: int, values: List[Any]) -> List[Any]:
    weights = layer.weights
    which = 'Layer #%d (named "%s")' % (number, layer.name)
    if len(weights) != len(values):
        raise at_user_line(ValueError("%s expects %d weight(s), but the saved weights have %d element(s)." % (which, len(weights), len(values))))
    for w, value in zip(weights, values):
        if tuple(w.get_shape().as_list()) != value.shape:
            raise at_user_line(ValueError("%s, weight %s has shape %s, but the saved weight has shape %s." % (which, w, w.get_shape(), value.shape)))
    return list(zip(weights, values))


def preprocess_weights_for_loading(layer: Any, weights: Any, original_keras_version: Optional[str] = None, original_backend: Optional[str] = None) -> Any:
    """Weights as the layer has them, of those that Keras 1 or another backend saved."""
    kind = type(layer).__name__
    if isinstance(layer, Bidirectional):
        half = len(weights) // 2
        return [
            *preprocess_weights_for_loading(layer.forward_layer, weights[:half], original_keras_version, original_backend),
            *preprocess_weights_for_loading(layer.backward_layer, weights[half:], original_keras_version, original_backend),
        ]
    if original_keras_version == "1":
        if isinstance(layer, TimeDistributed):
            weights = preprocess_weights_for_loading(layer.layer, weights, original_keras_version, original_backend)
        if kind == "Conv1D":
            shape = weights[0].shape
            if shape[:2] != (layer.kernel_size[0], 1) or shape[3] != layer.filters:
                weights = [np.transpose(weights[0], (2, 3, 1, 0)), *weights[1:]]
            weights = [weights[0][:, 0, :, :], *weights[1:]]
        elif kind in ("Conv2D", "Conv3D", "Conv2DTranspose") and layer.data_format == "channels_first":
            order = {"Conv2D": (2, 3, 1, 0), "Conv3D": (2, 3, 4, 1, 0), "Conv2DTranspose": (2, 3, 0, 1)}[kind]
            weights = [np.transpose(weights[0], order), *weights[1:]]
        elif kind == "Conv2DTranspose":
            weights = [np.transpose(weights[0], (0, 1, 3, 2)), *weights[1:]]
        elif isinstance(layer, (GRU, LSTM)) and len(weights) in (9, 12):  # one matrix for each gate: z r h, or i c f o
            gates = len(weights) // 3
            order = (0, 1, 2) if gates == 3 else (0, 2, 1, 3)
            return [np.concatenate([weights[3 * g + part] for g in order], axis=-1) for part in range(3)]
    if original_backend and original_backend not in ("tensorflow", "cntk") and kind in ("Conv1D", "Conv2D", "Conv3D", "SeparableConv2D", "Conv2DTranspose"):
        spatial = tuple(slice(None, None, -1) for _ in range(weights[0].ndim - 2))  # Theano turns kernels around
        weights = [weights[0][spatial], *weights[1:]]
    return weights


def _training_config(model: Any) -> Dict[str, Any]:
    def named(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: named(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [named(v) for v in value]
        if isinstance(value, metrics.Metric):
            return metrics.serialize(value)
        return losses.serialize(value) if hasattr(value, "get_config") else getattr(value, "__name__", value)

    return {
        "optimizer_config": {"class_name": type(model.optimizer).__name__, "config": model.optimizer.get_config()},
        "loss": named(model.loss),
        "metrics": named(model._compile_metrics),
        "weighted_metrics": named(model._compile_weighted_metrics),
        "sample_weight_mode": model.sample_weight_mode,
        "loss_weights": model.loss_weights,
    }


@contextlib.contextmanager
def opened(path: Any, mode: str) -> Iterator[Any]:
    """An HDF5 file, which is closed behind it; one that is open already stays so."""
    library = h5py()
    if isinstance(path, library.File):
        yield path
        return
    with library.File(path, mode) as file:
        yield file


def ask_to_proceed_with_overwrite(filepath: Any) -> bool:
    """Asks whoever sits before the program whether a file is to be replaced."""
    answer = ""
    while answer not in ("y", "n"):
        answer = input("[WARNING] %s already exists - overwrite? [y/n] " % filepath).strip().lower()
    if answer == "y":
        print("[TIP] Next time specify overwrite=True!")
    return answer == "y"


def may_write(path: Any, overwrite: bool) -> bool:
    """Whether a file is new or may be replaced; where overwrite does not say so the user is asked."""
    return overwrite or not os.path.exists(path) or ask_to_proceed_with_overwrite(path)


def save_model(
    model: Any, filepath: Any, overwrite: bool = True, include_optimizer: bool = True, save_format: Optional[str] = None, signatures: Any = None
) -> None:
    """Writes a model, its weights and how it is trained to an HDF5 file."""
    if save_format not in (None, "h5", "hdf5", "keras") or signatures is not None:
        raise at_user_line(
            NotImplementedError("Models are saved as HDF5: leave out save_format=%r and signatures, or use tf.saved_model.simple_save." % (save_format,))
        )
    if not isinstance(filepath, h5py().File) and not may_write(filepath, overwrite):
        return
    with opened(filepath, "w") as file:
        file.attrs["keras_version"], file.attrs["backend"] = b"2.0.8-tf", b"tensorflow"
        file.attrs["model_config"] = json.dumps({"class_name": type(model).__name__, "config": model.get_config()}, default=as_json).encode("utf-8")
        save_weights_to_hdf5_group(file.create_group("model_weights"), model.layers)
        if include_optimizer and model.optimizer is not None and not isinstance(model.optimizer, optimizers.TFOptimizer):
            file.attrs["training_config"] = json.dumps(_training_config(model), default=as_json).encode("utf-8")
            weights = model.optimizer.weights
            if weights:
                group = file.create_group("optimizer_weights")
                names = ["%d/%s" % (i, w.name) for i, w in enumerate(weights)]
                group.attrs["weight_names"] = [n.encode("utf-8") for n in names]
                for name, value in zip(names, K.batch_get_value(weights)):
                    group.create_dataset(name, data=np.asarray(value))


_CHECKPOINTS: Any = weakref.WeakKeyDictionary()  # of models


class SavedWeights:
    """save_weights, load_weights, save and the like."""

    _waiting: Any = None  # what gives variables that are made later their values

    def _checkpoint(self: Any) -> Any:
        """The model as a checkpoint of objects: of its layers in their order, whatever they are called."""
        from millrace.train.checkpoint import CheckpointOf

        if self not in _CHECKPOINTS:
            _CHECKPOINTS[self] = CheckpointOf(self)
        return _CHECKPOINTS[self]

    def save_weights(self: Any, filepath: str, overwrite: bool = True, save_format: Optional[str] = None) -> None:
        """Writes the weights: an HDF5 file where the name ends in .h5, else a checkpoint of TensorFlow's form."""
        hdf5 = is_hdf5(filepath, save_format)
        if not self._has_weights() and (hdf5 or self._waits_for_inputs()):
            raise at_user_line(ValueError("Model %s has no weights yet: call it, or build it with the shape of its input, before they are saved." % self.name))
        if not may_write(str(filepath) if hdf5 else "%s.index" % filepath, overwrite):
            return
        if not hdf5:
            if isinstance(self.optimizer, optimizers_v1.Optimizer):
                tf_logging.warning("The state of this model's Keras optimizer (%s) is not in the checkpoint: use one of tf.keras.optimizers.", self.optimizer)
            path = self._checkpoint().write(filepath, K.get_session())
            update_checkpoint_state(os.path.dirname(path), path, [path], save_relative_paths=True)
            return
        with h5py().File(filepath, "w") as file:
            save_weights_to_hdf5_group(file, self.layers)

    def load_weights(self: Any, filepath: str, by_name: bool = False) -> Any:
        """Reads what save_weights wrote; by_name only the layers whose names an HDF5 file has. Of a checkpoint it gives what says whether all was found, and
        variables that are made later get their values when they are: those of a model that was not called yet, what an optimizer keeps."""
        if not holds_hdf5(filepath):
            if by_name:
                raise at_user_line(NotImplementedError("by_name is only for HDF5 files: a checkpoint is read by the order of the layers."))
            status = self._checkpoint().restore(filepath)
            if not self._checkpoint()._children():
                raise at_user_line(AssertionError("Nothing to load. No dependencies have been added to %s yet." % self))
            if self._has_weights():
                status.assert_nontrivial_match()
            self._waiting = status
            status.run_restore_ops(K.get_session())
            return status
        if not self._has_weights():
            raise at_user_line(
                ValueError(
                    "Unable to load weights saved in HDF5 format into a model which has not created its variables yet. Call the model first, then load the weights."
                )
            )
        with h5py().File(filepath, "r") as file:
            group = file["model_weights"] if "layer_names" not in file.attrs and "model_weights" in file else file
            (load_weights_from_hdf5_group_by_name if by_name else load_weights_from_hdf5_group)(group, self.layers)
        return None

    def _waits_for_inputs(self: Any) -> bool:
        """Whether weights are made when it is called: there are layers, or its class makes them."""
        return bool(self.layers) or "build" in vars(type(self))

    def _has_weights(self: Any) -> bool:
        if self.built or "build" in vars(type(self)):
            return bool(self.built)
        return bool(self.trainable_weights or self.non_trainable_weights)

    def _restore_new_variables(self: Any) -> None:
        """Gives variables that were made since load_weights what the checkpoint has for them."""
        if self._waiting is not None:
            self._waiting.restore_new(K.get_session())

    def save(
        self: Any, filepath: Any, overwrite: bool = True, include_optimizer: bool = True, save_format: Optional[str] = None, signatures: Any = None
    ) -> None:
        """Writes the model, its weights and how it is trained to an HDF5 file."""
        save_model(self, filepath, overwrite, include_optimizer, save_format, signatures)

    def _updated_config(self: Any) -> Dict[str, Any]:
        return {"class_name": type(self).__name__, "config": self.get_config(), "keras_version": _VERSION, "backend": "tensorflow"}

    def to_json(self: Any, **kwargs: Any) -> str:
        """Its layers and how they connect, as JSON."""
        return json.dumps(self._updated_config(), default=as_json, **kwargs)

    def to_yaml(self: Any, **kwargs: Any) -> str:
        """Its layers and how they connect, as YAML."""
        try:
            import yaml
        except ImportError:
            raise at_user_line(ImportError("YAML needs the package yaml: install it, or use to_json.")) from None
        return str(yaml.dump(json.loads(self.to_json()), **kwargs))

    def summary(self: Any, line_length: Optional[int] = None, positions: Any = None, print_fn: Any = None) -> None:
        """Prints its layers."""
        from millrace.keras.utils.layer_utils import print_summary

        print_summary(self, line_length, positions, print_fn)


def as_json(value: Any) -> Any:
    """What JSON has for numbers of NumPy, types and functions."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "as_numpy_dtype"):
        return value.name
    if hasattr(value, "__name__"):
        return value.__name__
    raise TypeError("Not JSON Serializable: %r" % (value,))
