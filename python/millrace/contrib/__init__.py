# SPDX-License-Identifier: Apache-2.0
"""tf.contrib: what programs use of it. Modules are loaded when they are first used."""

from typing import TYPE_CHECKING
from typing import Any as _Any
from typing import List as _List

from millrace import names as _names

if TYPE_CHECKING:  # at run time __getattr__ finds them
    from millrace.contrib import (
        crf,
        data,
        distributions,
        factorization,
        framework,
        keras,
        layers,
        learn,
        legacy_seq2seq,
        linalg,
        lookup,
        losses,
        metrics,
        opt,
        rnn,
        seq2seq,
        signal,
        slim,
        staging,
        training,
        util,
    )
del TYPE_CHECKING


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = globals()[name] = _names.find("contrib." + name)
    return value


def __dir__() -> _List[str]:
    return _names.under("contrib")
