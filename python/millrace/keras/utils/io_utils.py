# SPDX-License-Identifier: Apache-2.0
"""Arrays in HDF5 files."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

import numpy as np

from millrace.keras.engine.saving import ask_to_proceed_with_overwrite, h5py  # noqa: F401


class HDF5Matrix:
    """A part of an array in an HDF5 file, read as it is used."""

    refs: Dict[str, Any] = {}

    def __init__(self, datapath: str, dataset: str, start: int = 0, end: Optional[int] = None, normalizer: Optional[Callable[[Any], Any]] = None) -> None:
        if datapath not in self.refs:
            self.refs[datapath] = h5py().File(datapath, "r")
        self.data = self.refs[datapath][dataset]
        self.start, self.end, self.normalizer = start, self.data.shape[0] if end is None else end, normalizer

    def __len__(self) -> int:
        return int(self.end - self.start)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            start, stop = key.start or 0, len(self) if key.stop is None else key.stop
            if stop + self.start > self.end:
                if start >= len(self):
                    raise IndexError
                stop = len(self)
            found = self.data[slice(start + self.start, stop + self.start)]
        elif isinstance(key, (int, np.integer)):
            if key + self.start >= self.end:
                raise IndexError
            found = self.data[int(key) + self.start]
        else:
            places = np.asarray(key) + self.start
            if len(places) and places.max() >= self.end:
                raise IndexError
            order = np.unique(places)  # files are read in rising order
            found = self.data[order.tolist()][np.searchsorted(order, places)]
        return self.normalizer(found) if self.normalizer is not None else found

    @property
    def shape(self) -> Any:
        """Its shape."""
        return (len(self), *self.data.shape[1:]) if self.normalizer is None else (len(self), *self.normalizer(self.data[0:1]).shape[1:])

    @property
    def dtype(self) -> Any:
        """The type of its elements."""
        return self.data.dtype if self.normalizer is None else self.normalizer(self.data[0:1]).dtype

    @property
    def ndim(self) -> int:
        """Its rank."""
        return int(self.data.ndim)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return int(np.prod(self.shape))
