# SPDX-License-Identifier: Apache-2.0
"""Sequences made ready."""

from __future__ import annotations

import json
import random
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from millrace.keras.utils.data_utils import Sequence


def pad_sequences(sequences: Any, maxlen: Optional[int] = None, dtype: Any = "int32", padding: str = "pre", truncating: str = "pre", value: Any = 0.0) -> Any:
    """Lists of several lengths as an array."""
    for given, what in ((padding, "Padding"), (truncating, "Truncating")):
        if given not in ("pre", "post"):
            raise ValueError('%s type "%s" not understood' % (what, given))
    length = maxlen if maxlen is not None else max((len(s) for s in sequences), default=0)
    inner = next((np.asarray(s).shape[1:] for s in sequences if len(s)), ())
    made = np.full([len(sequences), length, *inner], value, dtype)
    for i, s in enumerate(sequences):
        kept = np.asarray(s[-length:] if truncating == "pre" else s[:length], dtype)
        if len(kept):
            made[i, slice(-len(kept), None) if padding == "pre" else slice(0, len(kept))] = kept
    return made


def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> Any:
    """How likely the word of each rank is to be taken, by Zipf's law (Mikolov and others 2013)."""
    rank = np.arange(size)
    rank[:1] = 1
    inverse = rank * (np.log(rank) + 0.577) + 0.5 - 1.0 / (12.0 * rank)
    share = sampling_factor * inverse
    return np.minimum(1.0, share / np.sqrt(share))


def skipgrams(
    sequence: Any,
    vocabulary_size: int,
    window_size: int = 4,
    negative_samples: float = 1.0,
    shuffle: bool = True,
    categorical: bool = False,
    sampling_table: Any = None,
    seed: Any = None,
) -> Tuple[List[Any], List[Any]]:
    """(pairs of words, whether the second is near the first)."""
    draw = random.Random(seed if seed is not None else random.randint(0, 10**7))
    yes, no = ([0, 1], [1, 0]) if categorical else (1, 0)
    couples: List[Any] = []
    labels: List[Any] = []
    for i, word in enumerate(sequence):
        if not word or sampling_table is not None and sampling_table[word] < draw.random():
            continue
        for j in range(max(0, i - window_size), min(len(sequence), i + window_size + 1)):
            if j != i and sequence[j]:
                couples.append([word, sequence[j]])
                labels.append(yes)
    if negative_samples > 0:
        words = [c[0] for c in couples]
        draw.shuffle(words)
        count = int(len(labels) * negative_samples)
        couples += [[words[i % len(words)], draw.randint(1, vocabulary_size - 1)] for i in range(count)]
        labels += [no] * count
    if shuffle:
        both = list(zip(couples, labels))
        draw.shuffle(both)
        couples, labels = [c for c, _ in both], [v for _, v in both]
    return couples, labels


class TimeseriesGenerator(Sequence):
    """Batches of windows of a series, each with the target of the step behind it."""

    def __init__(
        self,
        data: Any,
        targets: Any,
        length: int,
        sampling_rate: int = 1,
        stride: int = 1,
        start_index: int = 0,
        end_index: Optional[int] = None,
        shuffle: bool = False,
        reverse: bool = False,
        batch_size: int = 128,
    ) -> None:
        if len(data) != len(targets):
            raise ValueError("Data and targets have to be of same length. Data length is %d while target length is %d" % (len(data), len(targets)))
        self.data, self.targets, self.length, self.sampling_rate, self.stride = data, targets, length, sampling_rate, stride
        self.start_index, self.end_index = start_index + length, len(data) - 1 if end_index is None else end_index
        self.shuffle, self.reverse, self.batch_size = shuffle, reverse, batch_size
        if self.start_index > self.end_index:
            raise ValueError(
                "`start_index+length=%i > end_index=%i` is disallowed, as no part of the sequence would be left to be used as current step."
                % (self.start_index, self.end_index)
            )

    def __len__(self) -> int:
        covered = self.batch_size * self.stride
        return max(0, (self.end_index - self.start_index + covered) // covered)

    def __getitem__(self, index: int) -> Tuple[Any, Any]:
        if self.shuffle:
            ends = np.random.randint(self.start_index, self.end_index + 1, size=self.batch_size)
        else:
            first, covered = self.start_index + self.batch_size * self.stride * index, self.batch_size * self.stride
            ends = np.arange(first, min(first + covered, self.end_index + 1), self.stride)
        windows = np.array([self.data[end - self.length : end : self.sampling_rate] for end in ends])
        return windows[:, ::-1] if self.reverse else windows, np.array([self.targets[end] for end in ends])

    def get_config(self) -> Dict[str, Any]:
        """Its settings, and its data as JSON."""
        names = ("length", "sampling_rate", "stride", "start_index", "end_index", "shuffle", "reverse", "batch_size")
        return {**{name: json.dumps(np.asarray(getattr(self, name)).tolist()) for name in ("data", "targets")}, **{name: getattr(self, name) for name in names}}

    def to_json(self, **kwargs: Any) -> str:
        """Its class and settings as JSON; further arguments go to json.dumps."""
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)


def _remove_long_seq(maxlen: int, seq: Any, label: Any) -> Any:
    """The sequences shorter than maxlen, and their labels."""
    kept = [(s, y) for s, y in zip(seq, label) if len(s) < maxlen]
    return [s for s, _ in kept], [y for _, y in kept]
