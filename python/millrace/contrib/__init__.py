# SPDX-License-Identifier: Apache-2.0
"""tf.contrib: what programs use of it. Modules are loaded when they are first used."""
import importlib as _importlib
from typing import Any as _Any

_MODULES = ("cudnn_rnn", "data", "deprecated", "distributions", "eager", "factorization", "framework", "keras", "layers", "learn", "legacy_seq2seq", "linalg", "losses",
            "metrics", "rnn", "seq2seq", "slim", "training", "util", "crf", "ffmpeg", "image", "lookup", "opt", "staging", "tensorboard")


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        try:
            value = _importlib.import_module("millrace.contrib." + name)
        except ModuleNotFoundError as error:
            if error.name != "millrace.contrib." + name:
                raise
            raise AttributeError("tf.contrib.%s is not provided by Millrace" % name) from None
        globals()[name] = value
        return value
    raise AttributeError("tf.contrib.%s is not provided by Millrace" % name)
