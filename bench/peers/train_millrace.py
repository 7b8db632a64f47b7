# SPDX-License-Identifier: Apache-2.0
"""The step in Millrace, through the C API."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/case_table"))
from capi import Graph, Library, Output
from dtypes import BY_NAME, F32, F64, I32, I64, DType, narrow
from nets import RATE, Conv, Lstm, Net, Pool


class Builder:
    def __init__(self, library: Library, dtype: DType) -> None:
        self.g, self.dtype = Graph(library), dtype
        self.variables: list[Output] = []
        self.initial: list[int] = []

    def op(self, name: str, *inputs: Output, **attrs: tuple[str, Any]) -> Output:
        return Output(self.g.node(name, inputs, attrs), 0)

    def constant(self, value: Any, dtype: DType) -> Output:
        return self.g.constant(narrow(np.asarray(value), dtype), dtype)

    def variable(self, value: np.ndarray) -> Output:
        attrs = {"dtype": ("type", self.dtype), "shape": ("shape", value.shape)}
        held = self.op("VariableV2", **attrs)
        self.initial.append(self.g.node("Assign", [held, self.constant(value, self.dtype)]))
        self.variables.append(held)
        return held

    def lstm(self, x: Output, weights: np.ndarray, steps: int, batch: int) -> Output:
        units = weights.shape[1] // 4
        turn = self.constant([1, 0, 2], I32)
        zeros, none = self.constant(np.zeros((batch, units)), self.dtype), self.constant(np.zeros(units), self.dtype)
        inputs = [self.constant(steps, I64), self.op("Transpose", x, turn), zeros, zeros, self.variable(weights)]
        inputs += [none, none, none, self.variable(np.zeros(4 * units))]
        layer = self.g.node("BlockLSTM", inputs, {"cell_clip": ("float", -1.0)})
        return self.op("Transpose", Output(layer, 6), turn)

    def layer(self, x: Output, layer: Any, weights: np.ndarray | None) -> Output:
        if isinstance(layer, Pool):
            sizes = {"ksize": ("list(int)", [1, layer.size, layer.size, 1])}
            strides = {"strides": ("list(int)", [1, layer.stride, layer.stride, 1])}
            return self.op("MaxPool", x, **sizes, **strides, padding=("string", "VALID"))
        assert weights is not None
        if isinstance(layer, Conv):
            strides = {"strides": ("list(int)", [1, layer.stride, layer.stride, 1])}
            padding = ("string", "SAME" if layer.same else "VALID")
            y = self.op("Conv2D", x, self.variable(weights), padding=padding, **strides)
            relu = True
        else:
            flat = self.op("Reshape", x, self.constant([-1, weights.shape[0]], I32))
            y = self.op("MatMul", flat, self.variable(weights))
            relu = layer.relu
        y = self.op("BiasAdd", y, self.variable(np.zeros(weights.shape[-1])))
        return self.op("Relu", y) if relu else y


def make(net: Net, dtype: str, threads: int, library: str) -> Callable[[], float]:
    os.environ["MILLRACE_NUM_THREADS"] = str(threads)
    b = Builder(Library(library), BY_NAME[dtype])
    x, labels = net.data()
    fed = b.g.placeholder(b.dtype, x.shape)
    wanted = b.g.placeholder(I64, labels.shape)
    y = fed
    for layer, weights, shape in net.weights():
        if isinstance(layer, Lstm):
            assert weights is not None
            y = b.lstm(y, weights, shape[0], net.batch)
        else:
            y = b.layer(y, layer, weights)
    loss = b.op("Mean", b.op("SparseSoftmaxCrossEntropyWithLogits", y, wanted), b.constant([0], I32))
    gradients = b.g.gradients([loss], b.variables, [b.constant(1.0, b.dtype)])
    rate = b.constant(RATE, b.dtype)
    updates = [b.op("ApplyGradientDescent", v, rate, g).oper for v, g in zip(b.variables, gradients)]
    train = b.g.node("NoOp", after=updates)
    b.g.run(targets=b.initial)
    feeds = [(fed, narrow(x, b.dtype), b.dtype), (wanted, labels, I64)]
    assert b.dtype in (F32, F64)
    return lambda: float(b.g.run(feeds, [loss], [train])[0][0])
