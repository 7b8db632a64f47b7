# SPDX-License-Identifier: Apache-2.0
"""tf.layers, and where all layers are: base.py has the class that they stand on, scoped.py those of tf.layers, whose variables are of the
variable scope; the other modules those of tf.keras.layers. What tf.layers has is loaded when it is first named."""

from typing import TYPE_CHECKING
from typing import Any as _Any
from typing import List as _List

from millrace import names as _names
from millrace.framework import not_provided as _not_provided

if TYPE_CHECKING:
    from millrace.layers.scoped import *  # noqa: F403
del TYPE_CHECKING


_NAMES = frozenset(
    """
    AveragePooling1D AveragePooling2D AveragePooling3D BatchNorm BatchNormalization Conv1D Conv2D Conv2DTranspose Conv3D Conv3DTranspose
    Convolution1D Convolution2D Convolution3D Dense Dropout Flatten Input InputLayer InputSpec Layer MaxOut MaxPooling1D MaxPooling2D
    MaxPooling3D Network Node SeparableConv1D SeparableConv2D average_pooling1d average_pooling2d average_pooling3d batch_norm
    batch_normalization conv1d conv2d conv2d_transpose conv3d conv3d_transpose dense dropout flatten max_pooling1d max_pooling2d
    experimental max_pooling3d maxout separable_conv1d separable_conv2d
    """.split()
)


def _later(name: str) -> _Any:
    if name not in _NAMES:
        raise AttributeError("module 'millrace.layers' has no attribute %r" % name)
    import millrace.layers.scoped as scoped

    if name == "experimental":
        value = globals()[name] = _names.find("layers.experimental")
        return value

    value = globals()[name] = getattr(scoped, name)
    return value


def __dir__() -> _List[str]:
    return sorted(_NAMES)


__getattr__ = _not_provided.getter("layers", _later)
