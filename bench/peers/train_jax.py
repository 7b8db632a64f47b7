# SPDX-License-Identifier: Apache-2.0
"""The step in JAX: one compiled function, whose parameters are given to it for good."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
from jax import lax

from nets import RATE, Conv, Dense, Lstm, Net, Pool

Parameters = list[tuple[jax.Array, jax.Array]]


def _lstm(x: jax.Array, kernel: jax.Array, bias: jax.Array, units: int) -> jax.Array:
    width = x.shape[-1]
    inputs = x.transpose(1, 0, 2) @ kernel[:width] + bias  # the part that needs no state, for all steps at once

    def step(state: tuple[jax.Array, jax.Array], part: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        c, h = state
        i, j, f, o = jnp.split(part + h @ kernel[width:], 4, axis=1)
        c = c * jax.nn.sigmoid(f + 1) + jax.nn.sigmoid(i) * jnp.tanh(j)
        h = jnp.tanh(c) * jax.nn.sigmoid(o)
        return (c, h), h

    zeros = jnp.zeros((x.shape[0], units), x.dtype)
    return lax.scan(step, (zeros, zeros), inputs)[1].transpose(1, 0, 2)


def _apply(net: Net, parameters: Parameters, y: jax.Array) -> jax.Array:
    each = iter(parameters)
    for layer in net.layers:
        if isinstance(layer, Pool):
            window, strides = (1, layer.size, layer.size, 1), (1, layer.stride, layer.stride, 1)
            y = lax.reduce_window(y, -jnp.inf, lax.max, window, strides, "VALID")
            continue
        kernel, bias = next(each)
        if isinstance(layer, Lstm):
            y = _lstm(y, kernel, bias, layer.units)
        elif isinstance(layer, Conv):
            padding, order = "SAME" if layer.same else "VALID", ("NHWC", "HWIO", "NHWC")
            strides = (layer.stride, layer.stride)
            y = jax.nn.relu(lax.conv_general_dilated(y, kernel, strides, padding, dimension_numbers=order) + bias)
        else:
            assert isinstance(layer, Dense)
            y = y.reshape(y.shape[0], -1) @ kernel + bias
            y = jax.nn.relu(y) if layer.relu else y
    return y


def make(net: Net, dtype: str, threads: int) -> Callable[[], float]:
    # JAX takes its threads from the processors that the process may use.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    jax.config.update("jax_enable_x64", dtype == "float64")
    x, labels = net.data()
    fed, wanted = jnp.asarray(x.astype(dtype)), jnp.asarray(labels)
    parameters: Parameters = [
        (jnp.asarray(weights.astype(dtype)), jnp.zeros(weights.shape[-1], dtype)) for _, weights, _ in net.weights() if weights is not None
    ]

    def loss_of(parameters: Parameters) -> jax.Array:
        logits = jax.nn.log_softmax(_apply(net, parameters, fed))
        return -jnp.take_along_axis(logits, wanted[:, None], axis=1).mean()

    def update(parameters: Parameters) -> tuple[Any, jax.Array]:
        loss, gradients = jax.value_and_grad(loss_of)(parameters)
        return jax.tree_util.tree_map(lambda p, g: p - RATE * g, parameters, gradients), loss

    compiled = jax.jit(update, donate_argnums=0)

    def step() -> float:
        nonlocal parameters
        parameters, loss = compiled(parameters)
        jax.block_until_ready(parameters)
        return float(loss)

    return step
