# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.specs: networks written in a line, as `net = Cr(64, [3, 3]) | Mp([2, 2]) | Flat | Fm(10)`. The lines are Python, and run as such."""

from __future__ import annotations

import sys
from typing import Any

from millrace.contrib.specs import operators, summaries
from millrace.contrib.specs.functions import Callable, Composable, Composition, External, Function, Import, Operator, check_keywords, debug, get_positional
from millrace.contrib.specs.nets import create_net, create_net_fun, eval_params, eval_spec
from millrace.contrib.specs.summaries import tf_num_params, tf_parameter_iter, tf_parameter_summary, tf_print, tf_structure


class LocalImport:
    """A context in which names are globals of the module that enters it."""

    def __init__(self, names: Any) -> None:
        self.names = names if isinstance(names, dict) else vars(names)

    def __enter__(self) -> None:
        self._globals = sys._getframe(1).f_globals
        self._before = {name: self._globals[name] for name in self.names if name in self._globals}
        self._globals.update(self.names)

    def __exit__(self, *unused: Any) -> None:
        for name in self.names:
            del self._globals[name]
        self._globals.update(self._before)


ops = LocalImport({name: value for name, value in vars(operators).items() if not name.startswith("_")})
