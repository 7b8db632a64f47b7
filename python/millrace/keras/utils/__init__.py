# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras.utils."""
from typing import Any as _Any

from millrace.framework import missing as _missing
from millrace.keras.utils.data_utils import GeneratorEnqueuer, OrderedEnqueuer, Sequence, SequenceEnqueuer, get_file
from millrace.keras.utils.generic_utils import (CustomObjectScope, Progbar, custom_object_scope, deserialize_keras_object,
                                                get_custom_objects, serialize_keras_object)
from millrace.keras.utils.np_utils import normalize, to_categorical

_missing.fill(globals(), "keras.utils.", {"plot_model": "Model.summary", "multi_gpu_model": "the model itself: there is one device",
                                          "convert_all_kernels_in_model": "weights of TensorFlow"})


def __getattr__(name: str) -> _Any:
    if name == "get_source_inputs":  # networks need these utilities first
        from millrace.keras.engine.network import get_source_inputs
        return get_source_inputs
    if name in ("HDF5Matrix", "io_utils"):  # what reads files is loaded when it is used
        import importlib
        module = importlib.import_module("millrace.keras.utils.io_utils")
        return module if name == "io_utils" else module.HDF5Matrix
    raise AttributeError("tf.keras.utils.%s is not provided by Millrace" % name)
