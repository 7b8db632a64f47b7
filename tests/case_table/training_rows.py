# SPDX-License-Identifier: Apache-2.0
"""One step of each optimizer: on references, on resources, and on the rows that sparse gradients name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from table import SHAPES, Case, Draw, Table

Held = tuple[np.ndarray, ...]
# What the scalar inputs hold.
_SCALARS = {
    "alpha": 0.1,
    "lr": 0.1,
    "rho": 0.9,
    "momentum": 0.75,
    "beta1": 0.9,
    "beta2": 0.99,
    "beta1_power": 0.81,
    "beta2_power": 0.98,
    "epsilon": 0.01,
    "l1": 0.05,
    "l2": 0.1,
    "lr_power": -0.5,
    "l2_shrinkage": 0.07,
    "sign_decay": 0.8,
    "logbase": 1.0,
    "beta": 0.9,
    "global_step": 3,
}
_POSITIVE = {"accum", "accum_update", "v", "ms", "gradient_squared_accumulator", "vhat"}


def _descent(v: dict[str, Any]) -> Held:
    return (v["var"] - v["alpha"] * v["delta"],)


def _momentum(v: dict[str, Any]) -> Held:
    accum = v["accum"] * v["momentum"] + v["grad"]
    step = v["grad"] * v["lr"] + accum * v["momentum"] * v["lr"] if v.get("use_nesterov") else v["lr"] * accum
    return v["var"] - step, accum


def _adagrad(v: dict[str, Any]) -> Held:
    accum = v["accum"] + v["grad"] ** 2 if v.get("update_slots", True) else v["accum"]
    return v["var"] - v["lr"] * v["grad"] / np.sqrt(accum), accum


def _adadelta(v: dict[str, Any]) -> Held:
    accum = v["accum"] * v["rho"] + v["grad"] ** 2 * (1 - v["rho"])
    step = np.sqrt(v["accum_update"] + v["epsilon"]) / np.sqrt(accum + v["epsilon"]) * v["grad"]
    return v["var"] - v["lr"] * step, accum, v["accum_update"] * v["rho"] + step**2 * (1 - v["rho"])


def _adam(v: dict[str, Any]) -> Held:
    rate = v["lr"] * np.sqrt(1 - v["beta2_power"]) / (1 - v["beta1_power"])
    m = v["m"] + (v["grad"] - v["m"]) * (1 - v["beta1"])
    second = v["v"] + (v["grad"] ** 2 - v["v"]) * (1 - v["beta2"])
    first = v["grad"] * (1 - v["beta1"]) + v["beta1"] * m if v.get("use_nesterov") else m
    return v["var"] - rate * first / (np.sqrt(second) + v["epsilon"]), m, second


def _adamax(v: dict[str, Any]) -> Held:
    m = v["m"] + (v["grad"] - v["m"]) * (1 - v["beta1"])
    largest = np.maximum(v["beta2"] * v["v"], np.abs(v["grad"]))
    return v["var"] - v["lr"] / (1 - v["beta1_power"]) * m / (largest + v["epsilon"]), m, largest


def _rmsprop(v: dict[str, Any]) -> Held:
    ms = v["ms"] + (v["grad"] ** 2 - v["ms"]) * (1 - v["rho"])
    mom = v["mom"] * v["momentum"] + v["lr"] * v["grad"] / np.sqrt(ms + v["epsilon"])
    return v["var"] - mom, ms, mom


def _centered_rmsprop(v: dict[str, Any]) -> Held:
    ms = v["ms"] + (v["grad"] ** 2 - v["ms"]) * (1 - v["rho"])
    mg = v["mg"] + (v["grad"] - v["mg"]) * (1 - v["rho"])
    mom = v["mom"] * v["momentum"] + v["lr"] * v["grad"] / np.sqrt(ms - mg**2 + v["epsilon"])
    return v["var"] - mom, mg, ms, mom


def _ftrl(v: dict[str, Any]) -> Held:
    accum = v["accum"] + v["grad"] ** 2
    old, new = v["accum"] ** -v["lr_power"], accum ** -v["lr_power"]
    linear = v["linear"] + v["grad"] - (new - old) / v["lr"] * v["var"]
    pull = np.where(np.abs(linear) > v["l1"], np.sign(linear) * v["l1"] - linear, 0)
    return pull / (new / v["lr"] + 2 * v["l2"]), accum, linear


def _ftrl_v2(v: dict[str, Any]) -> Held:
    accum = v["accum"] + v["grad"] ** 2
    old, new = v["accum"] ** -v["lr_power"], accum ** -v["lr_power"]
    linear = v["linear"] + v["grad"] + 2 * v["l2_shrinkage"] * v["var"] - (new - old) / v["lr"] * v["var"]
    pull = np.where(np.abs(linear) > v["l1"], np.sign(linear) * v["l1"] - linear, 0)
    return pull / (new / v["lr"] + 2 * v["l2"]), accum, linear


def _adagrad_v2(v: dict[str, Any]) -> Held:
    accum = v["accum"] + v["grad"] ** 2 if v.get("update_slots", True) else v["accum"]
    return v["var"] - v["lr"] * v["grad"] / (np.sqrt(accum) + v["epsilon"]), accum


def _shrunk(x: np.ndarray, by: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.maximum(np.abs(x) - by, 0)


def _adagrad_da(v: dict[str, Any]) -> Held:
    total, squares = v["gradient_accumulator"] + v["grad"], v["gradient_squared_accumulator"] + v["grad"] ** 2
    pull = v["lr"] * _shrunk(total, v["l1"] * v["global_step"])
    return -pull / (v["l2"] * v["global_step"] * v["lr"] + np.sqrt(squares)), total, squares


def _proximal_adagrad(v: dict[str, Any]) -> Held:
    accum = v["accum"] + v["grad"] ** 2
    rate = v["lr"] / np.sqrt(accum)
    return _shrunk(v["var"] - rate * v["grad"], rate * v["l1"]) / (1 + rate * v["l2"]), accum


def _proximal_descent(v: dict[str, Any]) -> Held:
    moved = v["var"] - v["alpha"] * v["delta" if "delta" in v else "grad"]
    return (_shrunk(moved, v["alpha"] * v["l1"]) / (1 + v["alpha"] * v["l2"]),)


def _add_sign(v: dict[str, Any]) -> Held:
    m = v["m"] * v["beta"] + v["grad"] * (1 - v["beta"])
    return v["var"] - v["lr"] * (v["alpha"] + v["sign_decay"] * np.sign(v["grad"] * m)) * v["grad"], m


def _power_sign(v: dict[str, Any]) -> Held:
    m = v["m"] * v["beta"] + v["grad"] * (1 - v["beta"])
    return v["var"] - v["lr"] * np.exp(v["logbase"] * v["sign_decay"] * np.sign(v["grad"] * m)) * v["grad"], m


def _amsgrad(v: dict[str, Any]) -> Held:
    rate = v["lr"] * np.sqrt(1 - v["beta2_power"]) / (1 - v["beta1_power"])
    m = v["m"] + (v["grad"] - v["m"]) * (1 - v["beta1"])
    second = v["v"] + (v["grad"] ** 2 - v["v"]) * (1 - v["beta2"])
    largest = np.maximum(v["vhat"], second)
    return v["var"] - rate * m / (np.sqrt(largest) + v["epsilon"]), m, second, largest


def _keras_momentum(v: dict[str, Any]) -> Held:
    accum = v["accum"] * v["momentum"] - v["lr"] * v["grad"]
    step = accum * v["momentum"] - v["lr"] * v["grad"] if v.get("use_nesterov") else accum
    return v["var"] + step, accum


@dataclasses.dataclass(frozen=True)
class Optimizer:
    name: str
    held: tuple[str, ...]  # the variables
    inputs: str  # after them, in the op's order
    step: Callable[[dict[str, Any]], Held]
    variants: tuple[dict[str, Any], ...] = ({},)
    has_sparse: bool = True
    by_reference: bool = True


_NESTEROV: tuple[dict[str, Any], ...] = ({}, {"use_nesterov": True})
OPTIMIZERS = (
    Optimizer("GradientDescent", ("var",), "alpha delta", _descent, has_sparse=False),
    Optimizer("Momentum", ("var", "accum"), "lr grad momentum", _momentum, _NESTEROV),
    Optimizer("Adagrad", ("var", "accum"), "lr grad", _adagrad, ({}, {"update_slots": False})),
    Optimizer("Adadelta", ("var", "accum", "accum_update"), "lr rho epsilon grad", _adadelta),
    Optimizer("Adam", ("var", "m", "v"), "beta1_power beta2_power lr beta1 beta2 epsilon grad", _adam, _NESTEROV, False),
    Optimizer("AdaMax", ("var", "m", "v"), "beta1_power lr beta1 beta2 epsilon grad", _adamax, has_sparse=False),
    Optimizer("RMSProp", ("var", "ms", "mom"), "lr rho momentum epsilon grad", _rmsprop),
    Optimizer("CenteredRMSProp", ("var", "mg", "ms", "mom"), "lr rho momentum epsilon grad", _centered_rmsprop),
    Optimizer("Ftrl", ("var", "accum", "linear"), "grad lr l1 l2 lr_power", _ftrl),
    Optimizer("FtrlV2", ("var", "accum", "linear"), "grad lr l1 l2 l2_shrinkage lr_power", _ftrl_v2),
    Optimizer("AdagradV2", ("var", "accum"), "lr epsilon grad", _adagrad_v2, ({}, {"update_slots": False})),
    Optimizer("AdagradDA", ("var", "gradient_accumulator", "gradient_squared_accumulator"), "grad lr l1 l2 global_step", _adagrad_da),
    Optimizer("ProximalAdagrad", ("var", "accum"), "lr l1 l2 grad", _proximal_adagrad),
    Optimizer("ProximalGradientDescent", ("var",), "alpha l1 l2 delta", _proximal_descent),
    Optimizer("AddSign", ("var", "m"), "lr alpha sign_decay beta grad", _add_sign, has_sparse=False),
    Optimizer("PowerSign", ("var", "m"), "lr logbase sign_decay beta grad", _power_sign, has_sparse=False),
    Optimizer(
        "AdamWithAmsgrad", ("var", "m", "v", "vhat"), "beta1_power beta2_power lr beta1 beta2 epsilon grad", _amsgrad, has_sparse=False, by_reference=False
    ),
    Optimizer("KerasMomentum", ("var", "accum"), "lr grad momentum", _keras_momentum, _NESTEROV, by_reference=False),
)


def _drawn(d: Draw, name: str, shape: tuple[int, ...]) -> np.ndarray:
    if name in _SCALARS:
        return np.array(_SCALARS[name])
    return d.uniform(shape, 1, 2) if name in _POSITIVE else d.uniform(shape, -0.5, 0.5)


def dense(optimizer: Optimizer) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in SHAPES:
            for attrs in optimizer.variants:
                names = [*optimizer.held, *optimizer.inputs.split()]
                yield Case([_drawn(d, name, shape) for name in names], attrs)

    return cases


def _dense(optimizer: Optimizer) -> Callable[..., Held]:
    def oracle(*inputs: np.ndarray, **attrs: Any) -> Held:
        return optimizer.step({**dict(zip([*optimizer.held, *optimizer.inputs.split()], inputs)), **attrs})

    return oracle


def _sparse_names(optimizer: Optimizer) -> list[str]:
    return [*optimizer.held, *optimizer.inputs.replace("delta", "grad").replace("grad", "grad indices").split()]


def sparse(optimizer: Optimizer) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape, count in (((1, 1), 1), ((5, 3), 2), ((17, 16), 17), ((4,), 3), ((5, 33), 0), ((3, 2, 2), 2)):
            for attrs in optimizer.variants:
                drawn = {name: _drawn(d, name, (count, *shape[1:]) if name == "grad" else shape) for name in _sparse_names(optimizer)}
                drawn["indices"] = d.rng.permutation(shape[0])[:count]
                yield Case(list(drawn.values()), attrs)

    return cases


def _sparse(optimizer: Optimizer) -> Callable[..., Held]:
    def oracle(*inputs: np.ndarray, **attrs: Any) -> Held:
        given = dict(zip(_sparse_names(optimizer), inputs))
        rows = given.pop("indices")
        at = {name: value[rows] if name in optimizer.held else value for name, value in given.items()}
        out = [given[name].copy() for name in optimizer.held]
        for whole, part in zip(out, optimizer.step({**at, **attrs})):
            whole[rows] = part
        return tuple(out)

    return oracle


def add_to(table: Table) -> None:
    for optimizer in OPTIMIZERS:
        for prefix in ("", "Resource") if optimizer.by_reference else ("Resource",):
            table.add(f"{prefix}Apply{optimizer.name}", dense(optimizer), _dense(optimizer), mutates=True, tolerance=16)
            if optimizer.has_sparse:
                table.add(f"{prefix}SparseApply{optimizer.name}", sparse(optimizer), _sparse(optimizer), mutates=True, tolerance=16, main="T")
