# SPDX-License-Identifier: Apache-2.0
"""tensorflow.models.rnn.ptb.reader: the Penn treebank's files as numbers of words."""

from __future__ import annotations

import collections
import os
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope


def _read_words(filename: str) -> List[str]:
    with open(filename, encoding="utf-8") as file:
        return file.read().replace("\n", "<eos>").split()


def _build_vocab(filename: str) -> Dict[str, int]:
    """Words by their number: the most frequent first, words of one frequency by their letters."""
    counts = collections.Counter(_read_words(filename))
    return {word: i for i, (word, _) in enumerate(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))}


def _file_to_word_ids(filename: str, word_to_id: Dict[str, int]) -> List[int]:
    return [word_to_id[word] for word in _read_words(filename) if word in word_to_id]


def ptb_raw_data(data_path: Optional[str] = None) -> Tuple[List[int], List[int], List[int], int]:
    """(training, validation and test words, how many words there are), of ptb.train.txt, ptb.valid.txt and ptb.test.txt."""
    train, valid, test = (os.path.join(data_path or "", "ptb.%s.txt" % part) for part in ("train", "valid", "test"))
    numbers = _build_vocab(train)
    return _file_to_word_ids(train, numbers), _file_to_word_ids(valid, numbers), _file_to_word_ids(test, numbers), len(numbers)


def ptb_iterator(raw_data: Any, batch_size: int, num_steps: int) -> Iterator[Tuple[Any, Any]]:
    """(words, the words after them), [batch_size, num_steps] each, through the text."""
    raw = np.array(raw_data, dtype=np.int32)
    length = len(raw) // batch_size
    rows = raw[: batch_size * length].reshape(batch_size, length)
    count = (length - 1) // num_steps
    if count == 0:
        raise at_user_line(ValueError("epoch_size == 0, decrease batch_size or num_steps"))
    for i in range(count):
        yield rows[:, i * num_steps : (i + 1) * num_steps], rows[:, i * num_steps + 1 : (i + 1) * num_steps + 1]


def ptb_producer(raw_data: Any, batch_size: int, num_steps: int, name: Optional[str] = None) -> Tuple[Any, Any]:
    """ptb_iterator by a queue of the graph."""
    import millrace as tf

    with name_scope(name, "PTBProducer", [raw_data, batch_size, num_steps]):
        raw = tf.convert_to_tensor(raw_data, name="raw_data", dtype=tf.int32)
        length = tf.size(raw) // batch_size
        rows = tf.reshape(raw[: batch_size * length], [batch_size, length])
        count = tf.identity((length - 1) // num_steps, name="epoch_size")
        i = tf.train.range_input_producer(count, shuffle=False).dequeue()
        parts = []
        for start in (0, 1):
            part = tf.strided_slice(rows, [0, i * num_steps + start], [batch_size, (i + 1) * num_steps + start])
            part.set_shape([batch_size, num_steps])
            parts.append(part)
        return parts[0], parts[1]
