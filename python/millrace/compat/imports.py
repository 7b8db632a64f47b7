# SPDX-License-Identifier: Apache-2.0
"""Makes `import tensorflow` and its module paths mean this package."""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any, Dict, Optional

from millrace import namespaces

# Module paths inside TensorFlow that programs import, and what they mean here: a module, or the package itself.
_PATHS: Dict[str, str] = {
    "python.framework.ops": "python_names", "python.framework.dtypes": "framework.dtypes", "python.framework.errors": "framework.errors",
    "python.framework.tensor_shape": "framework.tensor_shape", "python.framework.graph_util": "graph_util",
    "python.framework.random_seed": "framework.random_seed", "python.framework.importer": "framework.importer",
    "python.framework.constant_op": "python_names", "python.framework.tensor_util": "contrib.util", "python.framework.function": "framework.function",
    "python.framework.common_shapes": "python_names", "python.framework.sparse_tensor": "framework.composite_tensors",
    "python.framework.device": "framework.device",
    "python.client.session": "framework.session", "python.client.graph_util": "graph_util", "python.graph_util": "graph_util",
    "python.pywrap_tensorflow": "train.saver", "python.client.timeline": "timeline", "python.client.device_lib": "device_lib",
    "python.ops.rnn_cell": "ops.rnn_cell", "python.ops.rnn_cell_impl": "ops.rnn_cell", "python.ops.rnn": "ops.rnn", "python.ops.rnn.rnn_cell_impl": "ops.rnn_cell",
    "python.ops.seq2seq": "contrib.legacy_seq2seq", "python.ops.nn": "nn", "python.ops.nn_ops": "nn", "python.ops.nn_impl": "nn",
    "python.ops.gen_nn_ops": "ops.gen_ops", "python.ops.gen_math_ops": "ops.gen_ops", "python.ops.gen_array_ops": "ops.gen_ops",
    "python.ops.gen_state_ops": "ops.gen_ops", "python.ops.variable_scope": "ops.variable_scope", "python.ops.variables": "ops.variables",
    "python.ops.init_ops": "ops.init_ops", "python.ops.losses.losses": "losses", "python.ops.losses": "losses",
    "python.ops.control_flow_ops": "ops.control_flow_ops", "python.ops.tensor_array_ops": "ops.tensor_array_ops",
    "python.ops.confusion_matrix": "ops.confusion_matrix", "python.ops.weights_broadcast_ops": "ops.weights_broadcast",
    "python.ops.functional_ops": "python_names", "python.ops.metrics": "metrics", "python.ops.check_ops": "ops.check_ops",
    "python.platform.flags": "flags", "python.platform.gfile": "gfile", "python.platform.tf_logging": "tf_logging", "python.platform.app": "app",
    "python.platform.test": "test", "python.platform.googletest": "test", "python.platform.resource_loader": "resource_loader",
    "python.lib.io.python_io": "python_io", "python.lib.io.tf_record": "python_io", "python.lib.io.file_io": "file_io",
    "python.training.moving_averages": "train.moving_averages", "python.training.training_util": "train.global_step",
    "python.training.saver": "train.saver", "python.training.optimizer": "train.optimizer", "python.training.training_ops": "ops.gen_ops",
    "python.training.training": "train", "python.training.slot_creator": "train.slot_creator", "python.training.session_run_hook": "train.hooks",
    "python.training.basic_session_run_hooks": "train.hooks", "python.training.monitored_session": "train.monitored_session",
    "python.training.input": "train", "python.training.queue_runner": "train.queue_runner", "python.training.queue_runner_impl": "train.queue_runner",
    "python.training.coordinator": "train.coordinator", "python.ops.data_flow_ops": "python_names", "python.training.learning_rate_decay": "train.decay",
    "contrib.framework.python.ops.audio_ops": "audio", "python.ops.lookup_ops": "ops.lookup_ops",
    "python.util.compat": "compat", "python.util.tf_contextlib": "compat.util", "python.util.tf_inspect": "compat.util",
    "python.util.tf_decorator": "compat.util", "python.util.deprecation": "compat.util", "python.util.tf_export": "compat.util",
    "python.util.keyword_args": "compat.util", "python.util.nest": "framework.nest", "python.layers.core": "layers", "python.layers.base": "layers",
    "python.layers.convolutional": "layers", "python.layers.layers": "layers", "python.layers.normalization": "layers",
    "python.saved_model": "saved_model", **{"python.saved_model." + name: "saved_model." + name for name in (
        "builder", "constants", "loader", "main_op", "signature_constants", "signature_def_utils", "tag_constants", "utils")},
    "python.saved_model.simple_save": "saved_model", "python.layers.utils": "layers_utils", "keras.datasets": "keras_datasets", "keras.losses": "keras.objectives",
    "keras.metrics": "keras.objectives", "keras.preprocessing.sequence": "keras.utils", "keras.initializers": "initializers",
    "python.tools": "tools", "python.tools.freeze_graph": "tools.freeze_graph", "python.tools.inspect_checkpoint": "tools.inspect_checkpoint",
    **{"python.debug" + name: "debug" for name in ("", ".wrappers", ".wrappers.local_cli_wrapper", ".wrappers.hooks", ".lib", ".lib.debug_data", ".cli")},
    "python.summary.summary": "summary", "python.data": "data",
    "core.framework.summary_pb2": "protos.definitions", "core.framework.graph_pb2": "protos.definitions",
    "core.framework.variable_pb2": "protos.definitions", "core.framework.op_def_pb2": "protos.definitions",
    "core.framework.attr_value_pb2": "protos.definitions", "core.framework.node_def_pb2": "protos.definitions",
    "core.framework.tensor_pb2": "protos.definitions", "core.framework.types_pb2": "protos.types_pb2",
    "core.framework.tensor_shape_pb2": "protos.definitions", "core.framework.step_stats_pb2": "protos.definitions",
    "core.protobuf.config_pb2": "protos.definitions", "core.protobuf.saver_pb2": "protos.definitions",
    "core.protobuf.meta_graph_pb2": "protos.definitions", "core.protobuf.rewriter_config_pb2": "protos.definitions",
    "core.example.example_pb2": "protos.definitions", "core.example.feature_pb2": "protos.definitions", "core.util.event_pb2": "protos.definitions",
    "contrib.learn.python.learn.datasets.mnist": "examples.tutorials.mnist.input_data",
    "contrib.learn.datasets.mnist": "examples.tutorials.mnist.input_data",
    "contrib.layers.python.layers": "contrib.layers", "contrib.layers.python.layers.utils": "contrib.layers_utils",
    "contrib.layers.python.layers.summaries": "contrib.layers", "contrib.layers.python.layers.embedding_ops": "contrib.layers",
    "contrib.layers.python.layers.optimizers": "contrib.layers", "contrib.layers.utils": "contrib.layers_utils", "contrib.layers.python.layers.layers": "contrib.layers",
    "contrib.layers.python.layers.initializers": "contrib.layers", "contrib.layers.python.layers.regularizers": "contrib.layers",
    "contrib.layers.python.layers.feature_column": "contrib.feature_columns", "contrib.layers.python.layers.feature_column_ops": "contrib.feature_columns",
    "contrib.layers.feature_column": "contrib.feature_columns", "python.feature_column.feature_column": "feature_column", "python.feature_column": "feature_column",
    "contrib.slim.python.slim": "contrib.slim", "contrib.slim.learning": "contrib.slim_learning", "contrib.slim.evaluation": "contrib.slim_evaluation", "contrib.slim.utils": "contrib.layers_utils",
    "contrib.slim.python.slim.learning": "contrib.slim_learning", "contrib.slim.model_analyzer": "contrib.slim_model_analyzer",
    "contrib.slim.python.slim.model_analyzer": "contrib.slim_model_analyzer",
    **{path + "slim.nets" + name: "contrib.slim_nets" + name for path in ("contrib.", "contrib.slim.python.") for name in (
        "", ".alexnet", ".inception", ".inception_v1", ".inception_v2", ".inception_v3", ".overfeat", ".resnet_utils", ".resnet_v1", ".resnet_v2", ".vgg")},
    "contrib.learn.python.learn.monitors": "contrib.learn.monitors", "contrib.learn.python.learn.metric_spec": "contrib.learn.metric_spec",
    "contrib.learn.python.learn.estimators": "contrib.learn", "contrib.learn.python.learn.learn_runner": "contrib.learn.learn_runner",
    **{folder + name: "contrib.slim_data." + name for folder in ("contrib.slim.", "contrib.slim.python.slim.data.") for name in (
        "data_decoder", "data_provider", "dataset", "dataset_data_provider", "parallel_reader", "prefetch_queue", "queues", "tfexample_decoder")},
    "contrib.slim.python.slim.queues": "contrib.slim_data.queues", "contrib.training.python.training.bucket_ops": "contrib.training",
    "contrib.learn.datasets.base": "contrib.learn.base", "contrib.learn.python.learn.datasets.base": "contrib.learn.base",
    **{"g3doc.tutorials.mnist" + name: "examples.tutorials.mnist" + name for name in ("", ".input_data", ".mnist")},  # in 0.5
    "models.rnn.rnn_cell": "ops.rnn_cell", "models.rnn.rnn": "ops.rnn", "models.rnn.seq2seq": "contrib.legacy_seq2seq",
    "models.rnn.ptb": "examples.models", "models.rnn.ptb.reader": "examples.models.reader",
    "models.rnn.translate": "examples.models", "models.rnn.translate.data_utils": "examples.models.data_utils", "logging": "tf_logging",
}
_WHOLE = ("python.ops.", "python.framework.", "python.training.", "python.platform.", "python.util.")


def _target(path: str) -> Optional[str]:
    """The module of this package that a path below `tensorflow` means."""
    for folder in ("python.keras", "contrib.keras.python.keras", "contrib.keras.api.keras"):
        if path == folder or path.startswith(folder + "."):
            path = "keras" + path[len(folder):]
    if path in _PATHS:
        return _PATHS[path]
    parts = path.split(".")
    if len(parts) > 2 and parts[0] == "contrib" and parts[2] == "python":  # where contrib's packages keep their modules
        return ".".join(parts[:2])
    if path.startswith("contrib.") or path in ("contrib", "examples") or path.startswith("examples."):
        return path
    if path.startswith(_WHOLE):
        return "python_names"  # all names of the package: math_ops, array_ops and the like
    return path


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "tensorflow" and not fullname.startswith("tensorflow."):
            return None
        if self._resolve(fullname) is None:
            raise ModuleNotFoundError("%s is not provided by Millrace" % fullname, name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    @staticmethod
    def _resolve(fullname: str) -> Any:
        if fullname in ("tensorflow", "tensorflow.compat.v1"):
            return importlib.import_module("millrace")
        inner = fullname[len("tensorflow."):]
        if inner.startswith("compat.v1."):
            inner = inner[len("compat.v1."):]
        name = _target(inner)
        if name == "python_names":
            return importlib.import_module("millrace")
        try:
            return importlib.import_module("millrace." + str(name))
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("millrace"):
                raise
        if namespaces.find(str(name).partition(".")[0]) is not None and "." not in str(name):
            return namespaces.find(str(name))
        if inner in _PACKAGES:
            return types.ModuleType(fullname)
        return None

    def create_module(self, spec: Any) -> Any:
        """The module of this package, or a package that only has others inside."""
        real = self._resolve(spec.name)
        if spec.name == "tensorflow":
            return _Alias(spec.name, real)
        return _Alias(spec.name, real) if isinstance(real, types.ModuleType) else real

    def exec_module(self, module: Any) -> None:
        """Nothing to do: the module behind it was run by its own import."""


class _Alias(types.ModuleType):
    """A module under another name."""

    def __init__(self, name: str, real: Any) -> None:
        super().__init__(name)
        self.__dict__["_real"] = real
        self.__dict__["__path__"] = []
        names = getattr(real, "__all__", None)
        self.__dict__["__all__"] = list(names) if names else [n for n in dir(real) if not n.startswith("_")]

    def __getattr__(self, name: str) -> Any:
        if name in ("__file__", "__wrapped__"):
            raise AttributeError(name)
        return getattr(self.__dict__["_real"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, types.ModuleType) or name.startswith("__"):  # the import system binds submodules
            if name.startswith("__") or isinstance(getattr(self.__dict__["_real"], name, value), types.ModuleType):
                super().__setattr__(name, value)
            return
        setattr(self.__dict__["_real"], name, value)

    def __dir__(self) -> Any:
        return dir(self.__dict__["_real"])


_PACKAGES = {p.rsplit(".", n)[0] for p in _PATHS for n in range(1, p.count(".") + 1)} | {"core", "python", "python.ops", "python.framework"}


def install() -> None:
    """Makes `import tensorflow` mean this package, in this process."""
    if not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
