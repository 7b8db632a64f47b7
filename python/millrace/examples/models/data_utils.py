# SPDX-License-Identifier: Apache-2.0
"""tensorflow.models.rnn.translate.data_utils: vocabularies, and text as numbers of words."""

from __future__ import annotations

import collections
import gzip
import os
import re
from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace.framework.errors import at_user_line

_PAD, _GO, _EOS, _UNK = b"_PAD", b"_GO", b"_EOS", b"_UNK"
_START_VOCAB = [_PAD, _GO, _EOS, _UNK]
PAD_ID, GO_ID, EOS_ID, UNK_ID = 0, 1, 2, 3
_WORD_SPLIT = re.compile(b"([.,!?\"':;)(])")
_DIGIT_RE = re.compile(rb"\d")


def _bytes(text: Any) -> bytes:
    return text.encode("utf-8") if isinstance(text, str) else bytes(text)


def gunzip_file(gz_path: str, new_path: str) -> None:
    """Writes what a compressed file holds."""
    with gzip.open(gz_path, "rb") as packed, open(new_path, "wb") as plain:
        plain.writelines(packed)


def basic_tokenizer(sentence: Any) -> List[bytes]:
    """The words and marks of a sentence."""
    parts: List[bytes] = []
    for word in _bytes(sentence).strip().split():
        parts.extend(_WORD_SPLIT.split(word))
    return [part for part in parts if part]


def create_vocabulary(
    vocabulary_path: str, data_path: str, max_vocabulary_size: int, tokenizer: Optional[Callable[..., Any]] = None, normalize_digits: bool = True
) -> None:
    """Writes the most frequent words of a text, one to a line, where the file is not there yet."""
    if os.path.exists(vocabulary_path):
        return
    counts: Any = collections.Counter()
    with open(data_path, "rb") as text:
        for line in text:
            for word in tokenizer(line) if tokenizer else basic_tokenizer(line):
                counts[_DIGIT_RE.sub(b"0", _bytes(word)) if normalize_digits else _bytes(word)] += 1
    words = _START_VOCAB + sorted(counts, key=counts.get, reverse=True)
    with open(vocabulary_path, "wb") as file:
        file.writelines(word + b"\n" for word in words[:max_vocabulary_size])


def initialize_vocabulary(vocabulary_path: str) -> Tuple[Dict[bytes, int], List[bytes]]:
    """(words to numbers, numbers to words) of a file that create_vocabulary wrote."""
    if not os.path.exists(vocabulary_path):
        raise at_user_line(ValueError("Vocabulary file %s not found." % vocabulary_path))
    with open(vocabulary_path, "rb") as file:
        words = [line.strip() for line in file]
    return {word: i for i, word in enumerate(words)}, words


def sentence_to_token_ids(
    sentence: Any, vocabulary: Dict[Any, int], tokenizer: Optional[Callable[..., Any]] = None, normalize_digits: bool = True
) -> List[int]:
    """The numbers of a sentence's words."""
    words = [_bytes(word) for word in (tokenizer(sentence) if tokenizer else basic_tokenizer(sentence))]
    return [vocabulary.get(_DIGIT_RE.sub(b"0", word) if normalize_digits else word, UNK_ID) for word in words]


def data_to_token_ids(
    data_path: str, target_path: str, vocabulary_path: str, tokenizer: Optional[Callable[..., Any]] = None, normalize_digits: bool = True
) -> None:
    """Writes a text as numbers of words, where the file is not there yet."""
    if os.path.exists(target_path):
        return
    vocabulary, _ = initialize_vocabulary(vocabulary_path)
    with open(data_path, "rb") as text, open(target_path, "w", encoding="ascii") as out:
        for line in text:
            out.write(" ".join(str(i) for i in sentence_to_token_ids(line, vocabulary, tokenizer, normalize_digits)) + "\n")


def prepare_data(
    data_dir: str,
    from_train_path: str,
    to_train_path: str,
    from_dev_path: str,
    to_dev_path: str,
    from_vocabulary_size: int,
    to_vocabulary_size: int,
    tokenizer: Optional[Callable[..., Any]] = None,
) -> Tuple[str, ...]:
    """The files of numbers and the vocabularies of a pair of texts, made where they are not there."""
    to_vocabulary = os.path.join(data_dir, "vocab%d.to" % to_vocabulary_size)
    from_vocabulary = os.path.join(data_dir, "vocab%d.from" % from_vocabulary_size)
    create_vocabulary(to_vocabulary, to_train_path, to_vocabulary_size, tokenizer)
    create_vocabulary(from_vocabulary, from_train_path, from_vocabulary_size, tokenizer)
    made = []
    for path, size, vocabulary in (
        (from_train_path, from_vocabulary_size, from_vocabulary),
        (to_train_path, to_vocabulary_size, to_vocabulary),
        (from_dev_path, from_vocabulary_size, from_vocabulary),
        (to_dev_path, to_vocabulary_size, to_vocabulary),
    ):
        made.append("%s.ids%d" % (path, size))
        data_to_token_ids(path, made[-1], vocabulary, tokenizer)
    return (*made, from_vocabulary, to_vocabulary)


def prepare_wmt_data(data_dir: str, en_vocabulary_size: int, fr_vocabulary_size: int, tokenizer: Optional[Callable[..., Any]] = None) -> Tuple[str, ...]:
    """prepare_data of giga-fren.release2.fixed and newstest2013 in a folder; nothing is fetched."""
    train, dev = (os.path.join(data_dir, name) for name in ("giga-fren.release2.fixed", os.path.join("dev", "newstest2013")))
    for path in (train + ".en", train + ".fr", dev + ".en", dev + ".fr"):
        if not os.path.exists(path):
            raise at_user_line(FileNotFoundError("%s is not there, and nothing is fetched" % path))
    return prepare_data(data_dir, train + ".en", train + ".fr", dev + ".en", dev + ".fr", en_vocabulary_size, fr_vocabulary_size, tokenizer)
