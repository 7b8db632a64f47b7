# SPDX-License-Identifier: Apache-2.0
"""tf.keras.utils and tf.keras.preprocessing.sequence: arrays made ready."""
from __future__ import annotations

import os
from typing import Any, Optional

import numpy as np

from millrace.framework.errors import at_user_line


def to_categorical(y: Any, num_classes: Optional[int] = None) -> Any:
    """Numbers of classes as rows with a single one."""
    y = np.array(y, dtype="int")
    shape = y.shape[:-1] if y.shape and y.shape[-1] == 1 and y.ndim > 1 else y.shape
    flat = y.ravel()
    made = np.zeros([len(flat), num_classes or (int(flat.max()) + 1 if len(flat) else 0)], np.float32)
    made[np.arange(len(flat)), flat] = 1
    return made.reshape(*shape, made.shape[1])


def normalize(x: Any, axis: int = -1, order: int = 2) -> Any:
    """Scaled to norm one along an axis."""
    size = np.atleast_1d(np.linalg.norm(x, order, axis))
    return x / np.expand_dims(np.where(size == 0, 1, size), axis)


def get_file(fname: str, origin: str = "", cache_dir: Optional[str] = None, cache_subdir: str = "datasets", **unused: Any) -> str:
    """The path of a file in ~/.keras, which has to be there: nothing is downloaded."""
    path = os.path.join(cache_dir or os.path.join(os.path.expanduser("~"), ".keras"), cache_subdir, fname)
    if not os.path.exists(path):
        raise at_user_line(FileNotFoundError("%s is missing: put the file there (nothing is downloaded), from %s" % (path, origin)))
    return path


def pad_sequences(sequences: Any, maxlen: Optional[int] = None, dtype: Any = "int32", padding: str = "pre", truncating: str = "pre", value: Any = 0.0) -> Any:
    """Lists of several lengths as an array."""
    length = maxlen if maxlen is not None else max((len(s) for s in sequences), default=0)
    inner = next((np.asarray(s).shape[1:] for s in sequences if len(s)), ())
    made = np.full([len(sequences), length, *inner], value, dtype)
    for i, s in enumerate(sequences):
        kept = np.asarray(s[-length:] if truncating == "pre" else s[:length], dtype)
        if len(kept):
            made[i, slice(-len(kept), None) if padding == "pre" else slice(0, len(kept))] = kept
    return made
