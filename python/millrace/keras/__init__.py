# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras: models of layers, trained on arrays and data sets. Its modules are loaded when they are first used."""

from typing import TYPE_CHECKING
from typing import Any as _Any
from typing import List as _List

from millrace import names as _names

if TYPE_CHECKING:  # at run time __getattr__ finds them
    from millrace import keras_datasets as datasets
    from millrace.keras import (
        activations,
        applications,
        backend,
        callbacks,
        constraints,
        engine,
        estimator,
        experimental,
        initializers,
        layers,
        losses,
        metrics,
        models,
        optimizers,
        preprocessing,
        regularizers,
        utils,
        wrappers,
    )
    from millrace.keras.engine import Input
    from millrace.keras.models import Model, Sequential
del TYPE_CHECKING

__version__ = "2.2.4-tf"  # whose interface this is: that of TensorFlow 1.15


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = globals()[name] = _names.find("keras." + name)
    return value


def __dir__() -> _List[str]:
    return _names.under("keras")
