# SPDX-License-Identifier: Apache-2.0
"""The step in PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from nets import RATE, Conv, Lstm, Net, Pool


def _turned(weights: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Rows of a dense layer in the order of a flattened [channels, height, width]."""
    if len(shape) != 3:
        return weights
    return weights.reshape(*shape, -1).transpose(2, 0, 1, 3).reshape(weights.shape)


class _Outputs(torch.nn.Module):
    """An LSTM layer. Its second bias stays zero: the other libraries have one."""

    def __init__(self, weights: np.ndarray, units: int) -> None:
        super().__init__()
        inputs = weights.shape[0] - units
        self.lstm = torch.nn.LSTM(inputs, units, batch_first=True)
        rows = np.concatenate([np.split(weights.T, 4)[k] for k in (0, 2, 1, 3)])  # input, forget, candidate, output
        bias = np.zeros(4 * units, np.float32)
        bias[units : 2 * units] = 1
        with torch.no_grad():
            self.lstm.weight_ih_l0.copy_(torch.from_numpy(np.ascontiguousarray(rows[:, :inputs])))
            self.lstm.weight_hh_l0.copy_(torch.from_numpy(np.ascontiguousarray(rows[:, inputs:])))
            self.lstm.bias_ih_l0.copy_(torch.from_numpy(bias))
            self.lstm.bias_hh_l0.zero_()
        self.lstm.bias_hh_l0.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]  # type: ignore[no-any-return]


def make(net: Net, dtype: str, threads: int) -> Callable[[], float]:
    torch.set_num_threads(threads)
    kind = getattr(torch, dtype)
    modules: list[torch.nn.Module] = []
    shape = net.image
    for layer, weights, out in net.weights():
        if isinstance(layer, Pool):
            modules.append(torch.nn.MaxPool2d(layer.size, layer.stride))
        elif isinstance(layer, Lstm):
            assert weights is not None
            modules.append(_Outputs(weights, layer.units))
        else:
            assert weights is not None
            if isinstance(layer, Conv):
                padding = layer.kernel // 2 if layer.same else 0
                module: torch.nn.Module = torch.nn.Conv2d(shape[2], layer.filters, layer.kernel, layer.stride, padding)
                values = weights.transpose(3, 2, 0, 1)
                relu = True
            else:
                if len(shape) > 1:
                    modules.append(torch.nn.Flatten())
                module = torch.nn.Linear(weights.shape[0], layer.units)
                values = _turned(weights, shape).T
                relu = layer.relu
            with torch.no_grad():
                module.weight.copy_(torch.from_numpy(np.ascontiguousarray(values)))
                module.bias.zero_()
            modules += [module, torch.nn.ReLU()] if relu else [module]
        shape = out
    model = torch.nn.Sequential(*modules).to(kind)
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    x, labels = net.data()
    fed = torch.from_numpy(x if x.ndim < 4 else np.ascontiguousarray(x.transpose(0, 3, 1, 2))).to(kind)
    wanted = torch.from_numpy(labels)
    entropy = torch.nn.CrossEntropyLoss()

    def step() -> float:
        optimizer.zero_grad()
        loss = entropy(model(fed), wanted)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step
