# SPDX-License-Identifier: Apache-2.0
"""Lines that are run, and the networks that they make."""

from __future__ import annotations

from typing import Any, Dict, Optional

from millrace.contrib.specs import operators
from millrace.contrib.specs import params as numbers
from millrace.contrib.specs.functions import check_keywords
from millrace.framework.errors import at_user_line


def _run(text: str, names: Dict[str, Any], environment: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    check_keywords(text)
    bindings = dict(environment or {})
    exec(text, dict(names), bindings)
    return bindings


def eval_params(params: str, environment: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    """The names that lines bind, in which Uf, Ui, Lf, Li and Nt draw numbers."""
    return _run(params, vars(numbers), environment)


def eval_spec(spec: str, environment: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    """The names that lines of a network bind."""
    return _run(spec, vars(operators), environment)


def create_net_fun(spec: str, environment: Optional[Dict[str, Any]] = None) -> Any:
    """The function that builds a network, behind its input: what the lines call `net`."""
    net = eval_spec(spec, environment).get("net")
    if net is None:
        raise at_user_line(ValueError("spec failed to create 'net': %s" % (spec,)))
    return net.funcall


def create_net(spec: str, inputs: Any, environment: Optional[Dict[str, Any]] = None) -> Any:
    """The output of a network."""
    return create_net_fun(spec, environment)(inputs)
