# SPDX-License-Identifier: Apache-2.0
"""Texts as numbers of words."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any, Dict, Iterator, List, Optional

import numpy as np

_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


def text_to_word_sequence(text: str, filters: str = _FILTERS, lower: bool = True, split: str = " ") -> List[str]:
    """The words of a text."""
    text = (text.lower() if lower else text).translate({ord(c): split for c in filters})
    return [w for w in text.split(split) if w]


def hashing_trick(text: str, n: int, hash_function: Any = None, filters: str = _FILTERS, lower: bool = True, split: str = " ") -> List[int]:
    """The words of a text as numbers from 1 to n - 1, by a hash: Python's, "md5", or a function."""
    if hash_function is None:
        hash_function = hash
    elif hash_function == "md5":
        hash_function = lambda w: int(hashlib.md5(w.encode()).hexdigest(), 16)
    return [hash_function(w) % (n - 1) + 1 for w in text_to_word_sequence(text, filters, lower, split)]


def one_hot(text: str, n: int, filters: str = _FILTERS, lower: bool = True, split: str = " ") -> List[int]:
    """hashing_trick with Python's hash."""
    return hashing_trick(text, n, hash, filters, lower, split)


class Tokenizer:
    """Words as numbers, the most frequent one first."""

    def __init__(
        self,
        num_words: Optional[int] = None,
        filters: str = _FILTERS,
        lower: bool = True,
        split: str = " ",
        char_level: bool = False,
        oov_token: Optional[str] = None,
    ) -> None:
        self.num_words, self.filters, self.lower, self.split, self.char_level, self.oov_token = num_words, filters, lower, split, char_level, oov_token
        self.word_counts: Dict[str, int] = {}
        self.word_docs: Dict[str, int] = {}
        self.index_docs: Dict[int, int] = {}
        self.word_index: Dict[str, int] = {}
        self.index_word: Dict[int, str] = {}
        self.document_count = 0

    def _words(self, text: Any) -> List[str]:
        if self.char_level or isinstance(text, list):
            return [w.lower() if self.lower else w for w in text]
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts: Any) -> None:
        """Counts the words of texts, and numbers them."""
        counts, docs = Counter(self.word_counts), Counter(self.word_docs)
        for text in texts:
            words = self._words(text)
            self.document_count += 1
            counts.update(words)
            docs.update(set(words))
        self.word_counts, self.word_docs = dict(counts), dict(docs)
        order = [w for w, _ in sorted(counts.items(), key=lambda item: -item[1])]
        order = ([self.oov_token] if self.oov_token is not None else []) + [w for w in order if w != self.oov_token]
        self.word_index = {w: i + 1 for i, w in enumerate(order)}
        self.index_word = {i: w for w, i in self.word_index.items()}
        self.index_docs = {self.word_index[w]: n for w, n in docs.items()}

    def fit_on_sequences(self, sequences: Any) -> None:
        """Counts the numbers of sequences."""
        self.document_count += len(sequences)
        docs = Counter(self.index_docs)
        for sequence in sequences:
            docs.update(set(sequence))
        self.index_docs = dict(docs)

    def texts_to_sequences_generator(self, texts: Any) -> Iterator[List[int]]:
        """The numbers of each text; words that are not known, or too rare, are left out or become oov_token's."""
        unknown = self.word_index.get(self.oov_token) if self.oov_token is not None else None
        for text in texts:
            found = [self.word_index.get(w) for w in self._words(text)]
            kept = [unknown if i is None or self.num_words and i >= self.num_words else i for i in found]
            yield [i for i in kept if i is not None]

    def texts_to_sequences(self, texts: Any) -> List[List[int]]:
        """The numbers of each text."""
        return list(self.texts_to_sequences_generator(texts))

    def sequences_to_texts_generator(self, sequences: Any) -> Iterator[str]:
        """The words of each sequence in a row; numbers that are not known, or too rare, are left out or become oov_token."""
        for sequence in sequences:
            found = [None if self.num_words and n >= self.num_words else self.index_word.get(n) for n in sequence]
            yield " ".join(w for w in (self.oov_token if w is None else w for w in found) if w is not None)

    def sequences_to_texts(self, sequences: Any) -> List[str]:
        """The words of each sequence in a row."""
        return list(self.sequences_to_texts_generator(sequences))

    def get_config(self) -> Dict[str, Any]:
        """Its settings, and what it has counted as JSON."""
        config = {name: getattr(self, name) for name in ("num_words", "filters", "lower", "split", "char_level", "oov_token", "document_count")}
        return {**config, **{name: json.dumps(getattr(self, name)) for name in ("word_counts", "word_docs", "index_docs", "index_word", "word_index")}}

    def to_json(self, **kwargs: Any) -> str:
        """Its class and settings as JSON; further arguments go to json.dumps."""
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)

    def texts_to_matrix(self, texts: Any, mode: str = "binary") -> Any:
        """A row for each text: which words it has, how often, or how telling they are."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences: Any, mode: str = "binary") -> Any:
        """A row for each sequence."""
        if not self.num_words and not self.word_index:
            raise ValueError("Specify a dimension (num_words argument), or fit on some text data first.")
        if mode == "tfidf" and not self.document_count:
            raise ValueError("Fit the Tokenizer on some data before using tfidf mode.")
        if mode not in ("count", "freq", "binary", "tfidf"):
            raise ValueError("Unknown vectorization mode: %s" % mode)
        width = self.num_words or len(self.word_index) + 1
        made = np.zeros((len(sequences), width))
        for i, sequence in enumerate(sequences):
            for j, c in Counter(n for n in sequence if n < width).items():
                made[i, j] = {
                    "count": c,
                    "freq": c / len(sequence),
                    "binary": 1,
                    "tfidf": (1 + np.log(c)) * np.log(1 + self.document_count / (1 + self.index_docs.get(j, 0))),
                }[mode]
        return made
