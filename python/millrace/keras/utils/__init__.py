# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras.utils."""

import importlib as _importlib
from typing import Any as _Any

from millrace.framework import not_provided as _not_provided
from millrace.keras.utils.data_utils import GeneratorEnqueuer, OrderedEnqueuer, Sequence, SequenceEnqueuer, get_file
from millrace.keras.utils.generic_utils import (
    CustomObjectScope,
    Progbar,
    custom_object_scope,
    deserialize_keras_object,
    get_custom_objects,
    serialize_keras_object,
)
from millrace.keras.utils.np_utils import normalize, to_categorical


def _later(name: str) -> _Any:
    if name == "get_source_inputs":  # networks need these utilities first
        from millrace.keras.engine.network import get_source_inputs

        return get_source_inputs
    home = {"HDF5Matrix": "io_utils", "model_to_dot": "vis_utils", "plot_model": "vis_utils", "multi_gpu_model": "multi_gpu_utils"}.get(name, name)
    if home in ("io_utils", "conv_utils", "losses_utils", "metrics_utils", "multi_gpu_utils", "tf_utils", "vis_utils"):  # loaded when they are used
        module = _importlib.import_module("millrace.keras.utils." + home)
        return module if home == name else getattr(module, name)
    raise AttributeError("tf.keras.utils.%s is not provided by Millrace" % name)


__getattr__ = _not_provided.getter("keras.utils", _later)
