# SPDX-License-Identifier: Apache-2.0
"""Files of data, and batches that threads make ahead."""

from __future__ import annotations

import hashlib
import os
import queue
import random
import shutil
import tarfile
import threading
import zipfile
from typing import Any, Iterator, List, Optional
from urllib.parse import urlparse
from urllib.request import url2pathname

from millrace.framework.errors import at_user_line


def _hash_file(fpath: str, algorithm: str = "sha256", chunk_size: int = 65535) -> str:
    """The hash of a file."""
    made = hashlib.sha256() if algorithm in ("sha256", "auto") else hashlib.md5()
    with open(fpath, "rb") as file:
        for chunk in iter(lambda: file.read(chunk_size), b""):
            made.update(chunk)
    return made.hexdigest()


def validate_file(fpath: str, file_hash: str, algorithm: str = "auto", chunk_size: int = 65535) -> bool:
    """Whether a file has a hash (SHA-256, or MD5 of 32 letters)."""
    kind = "sha256" if algorithm == "sha256" or (algorithm == "auto" and len(file_hash) == 64) else "md5"
    return _hash_file(fpath, kind, chunk_size) == str(file_hash)


def _extract(path: str, folder: str, archive_format: Any) -> bool:
    if archive_format in (None, ""):
        return False
    kinds = ["tar", "zip"] if archive_format == "auto" else [archive_format] if isinstance(archive_format, str) else list(archive_format)
    for kind in kinds:
        if kind == "tar" and tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(folder)
            return True
        if kind == "zip" and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                archive.extractall(folder)
            return True
    return False


def get_file(
    fname: str,
    origin: str = "",
    untar: bool = False,
    md5_hash: Optional[str] = None,
    file_hash: Optional[str] = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: Any = "auto",
    cache_dir: Optional[str] = None,
) -> str:
    """The path of a file in ~/.keras, copied from a file:// address or there already: nothing is downloaded. Archives are taken apart if asked for."""
    folder = os.path.join(cache_dir or os.path.join(os.path.expanduser("~"), ".keras"), cache_subdir)
    name = fname + ".tar.gz" if untar else fname
    path = os.path.join(folder, name)
    wanted = file_hash or md5_hash
    kind = "md5" if md5_hash is not None and file_hash is None else hash_algorithm
    if not os.path.exists(path) or wanted is not None and not validate_file(path, wanted, kind):
        address = urlparse(origin)
        source = url2pathname(address.path) if address.scheme == "file" else None
        if source is None or not os.path.exists(source):
            raise at_user_line(FileNotFoundError("%s is missing: put the file there (nothing is downloaded), from %s" % (path, origin)))
        os.makedirs(folder, exist_ok=True)
        shutil.copyfile(source, path)
        if wanted is not None and not validate_file(path, wanted, kind):
            raise at_user_line(ValueError("Incomplete or corrupted file detected. The %s file hash does not match the provided value of %s." % (kind, wanted)))
    if untar:
        inner = os.path.join(folder, fname)
        if not os.path.exists(inner):
            _extract(path, folder, "tar")
        return inner
    if extract:
        _extract(path, folder, archive_format)
    return path


class Sequence:
    """Base of batches by number: __getitem__ and __len__."""

    def __getitem__(self, index: int) -> Any:
        """A batch."""
        raise NotImplementedError

    def __len__(self) -> int:
        """How many batches there are."""
        raise NotImplementedError

    def on_epoch_end(self) -> None:
        """Called after each epoch."""

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self)):
            yield self[i]


class SequenceEnqueuer:
    """Base of what makes batches ahead in threads: start, get, stop."""

    def __init__(self, use_multiprocessing: bool = False, wait_time: float = 0.05, **unused: Any) -> None:
        self.use_multiprocessing, self.wait_time = use_multiprocessing, wait_time  # threads serve for both
        self._threads: List[threading.Thread] = []
        self._stop = threading.Event()
        self.queue: Any = None

    def is_running(self) -> bool:
        """Whether it makes batches."""
        return bool(self._threads) and not self._stop.is_set()

    def start(self, workers: int = 1, max_queue_size: int = 10) -> None:
        """Starts the threads."""
        self.queue = queue.Queue(maxsize=max_queue_size)
        self._stop.clear()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(max(1, self._workers(workers)))]
        for thread in self._threads:
            thread.start()

    def _workers(self, wanted: int) -> int:
        return wanted

    def _work(self) -> None:
        raise NotImplementedError

    def _put(self, item: Any) -> bool:
        while not self._stop.is_set():
            try:
                self.queue.put(item, timeout=self.wait_time)
                return True
            except queue.Full:
                continue
        return False

    def get(self) -> Iterator[Any]:
        """The batches; where making one failed, its error."""
        while self.is_running():
            try:
                item = self.queue.get(timeout=self.wait_time)
            except queue.Empty:
                if not any(t.is_alive() for t in self._threads):
                    return
                continue
            if item is None or isinstance(item, Exception):
                self.stop()
                if item is None:
                    return
                raise item
            yield item[0]

    def stop(self, timeout: Optional[float] = None) -> None:
        """Stops the threads."""
        self._stop.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout if timeout is not None else 10)


class GeneratorEnqueuer(SequenceEnqueuer):
    """Makes the batches of a generator ahead."""

    def __init__(self, sequence: Any, use_multiprocessing: bool = False, random_seed: Any = None, wait_time: float = 0.05) -> None:
        del random_seed  # it is for worker processes; threads share the state of NumPy
        super().__init__(use_multiprocessing, wait_time)
        self._generator, self._lock = iter(sequence), threading.Lock()

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                with self._lock:
                    item = next(self._generator)
            except StopIteration:
                self._put(None)
                return
            except Exception as error:
                self._put(error)
                return
            if not self._put((item,)):
                return


class OrderedEnqueuer(SequenceEnqueuer):
    """Makes the batches of a Sequence ahead, in order, over and over."""

    def __init__(self, sequence: Any, use_multiprocessing: bool = False, shuffle: bool = False) -> None:
        super().__init__(use_multiprocessing)
        self.sequence, self.shuffle = sequence, shuffle

    def _workers(self, wanted: int) -> int:
        return 1

    def _work(self) -> None:
        while not self._stop.is_set():
            order = list(range(len(self.sequence)))
            if self.shuffle:
                random.shuffle(order)
            for i in order:
                try:
                    item = self.sequence[i]
                except Exception as error:
                    self._put(error)
                    return
                if not self._put((item,)):
                    return
            self.sequence.on_epoch_end()


def terminate_keras_multiprocessing_pools(grace_period: float = 0.1, use_sigkill: bool = False) -> List[str]:
    """Does nothing, and has no errors to tell: batches are made by threads, which end with their models."""
    del grace_period, use_sigkill  # there are no processes to end
    return []
