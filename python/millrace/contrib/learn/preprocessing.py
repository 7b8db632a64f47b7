# SPDX-License-Identifier: Apache-2.0
"""Words to numbers."""

from __future__ import annotations

import pickle
import re
from typing import Any, Dict, Iterator, List, Optional

import numpy as np

from millrace import gfile

_WORDS = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)


def tokenizer(iterator: Any) -> Iterator[List[str]]:
    """The words of each text."""
    for value in iterator:
        yield _WORDS.findall(value)


class CategoricalVocabulary:
    """Numbers of words; 0 is for unknown ones."""

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        del support_reverse  # both directions are kept
        self._unknown, self._mapping, self._reverse, self._freq, self._frozen = unknown_token, {unknown_token: 0}, [unknown_token], {}, False

    _mapping: Dict[str, int]
    _freq: Dict[str, int]

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """No new words from here on."""
        self._frozen = freeze

    def get(self, category: str) -> int:
        """The number of a word."""
        if category not in self._mapping:
            if self._frozen:
                return 0
            self._mapping[category] = len(self._mapping)
            self._reverse.append(category)
        return self._mapping[category]

    def add(self, category: str, count: int = 1) -> None:
        """Counts a word."""
        if self.get(category) > 0:
            self._freq[category] = self._freq.get(category, 0) + count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Drops rare words, and too frequent ones."""
        kept = sorted(sorted(self._freq.items(), key=lambda x: (isinstance(x[0], str), x[0])), key=lambda x: x[1], reverse=True)
        self._mapping, self._reverse = {self._unknown: 0}, [self._unknown]
        for word, count in kept:
            if count > min_frequency and (max_frequency <= 0 or count < max_frequency):
                self._mapping[word] = len(self._mapping)
                self._reverse.append(word)
        self._freq = {w: c for w, c in kept if w in self._mapping}

    def reverse(self, class_id: int) -> str:
        """The word of a number."""
        return self._reverse[class_id]


class VocabularyProcessor:
    """Texts as rows of word numbers, all of one length."""

    def __init__(self, max_document_length: int, min_frequency: int = 0, vocabulary: Optional[CategoricalVocabulary] = None, tokenizer_fn: Any = None) -> None:
        self.max_document_length, self.min_frequency = max_document_length, min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Any, unused_y: Any = None) -> "VocabularyProcessor":
        """Learns the words."""
        for tokens in self._tokenizer(raw_documents):
            for token in tokens:
                self.vocabulary_.add(token)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Any, unused_y: Any = None) -> Iterator[np.ndarray]:
        """Learns the words; the rows."""
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents: Any) -> Iterator[np.ndarray]:
        """The rows."""
        for tokens in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            for i, token in enumerate(tokens[: self.max_document_length]):
                row[i] = self.vocabulary_.get(token)
            yield row

    def reverse(self, documents: Any) -> Iterator[str]:
        """The texts of rows."""
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(i) for i in row)

    def save(self, filename: str) -> None:
        """Writes it to a file."""
        with gfile.GFile(filename, "wb") as file:
            pickle.dump((self.max_document_length, self.min_frequency, self.vocabulary_.__dict__), file)

    @classmethod
    def restore(cls, filename: str) -> "VocabularyProcessor":
        """What save() wrote. Reads only plain values, no code."""
        with gfile.GFile(filename, "rb") as file:
            length, frequency, state = _Plain(file).load()
        made = cls(length, frequency)
        made.vocabulary_.__dict__.update(state)
        return made


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError("a vocabulary file holds plain values only")


class ByteProcessor:
    """Texts as rows of their bytes, cut or filled with zeros to one length."""

    def __init__(self, max_document_length: int) -> None:
        self.max_document_length = max_document_length

    def fit(self, x: Any) -> "ByteProcessor":
        """Learns nothing."""
        del x  # bytes are what they are
        return self

    def fit_transform(self, x: Any) -> Iterator[Any]:
        """The rows."""
        return self.fit(x).transform(x)

    def reverse(self, x: Any) -> Iterator[str]:
        """The texts of rows."""
        for row in x:
            yield bytes(bytearray(int(b) for b in row if b)).decode("utf-8", "ignore")

    def transform(self, x: Any) -> Iterator[Any]:
        """The rows."""
        for text in x:
            data = (text.encode("utf-8") if isinstance(text, str) else bytes(text))[: self.max_document_length]
            row = np.zeros(self.max_document_length, np.uint8)
            row[: len(data)] = np.frombuffer(data, np.uint8)
            yield row


class CategoricalProcessor:
    """Rows of words as rows of numbers, with a vocabulary for each column, or one for all with share=True."""

    def __init__(self, min_frequency: int = 0, share: bool = False, vocabularies: Optional[List[Any]] = None) -> None:
        self.min_frequency, self.share, self.vocabularies_ = min_frequency, share, vocabularies

    def freeze(self, freeze: bool = True) -> None:
        """No new words from here on."""
        for vocabulary in self.vocabularies_ or []:
            vocabulary.freeze(freeze)

    def fit(self, x: Any, unused_y: Any = None) -> "CategoricalProcessor":
        """Learns the words."""
        rows = [list(row) for row in np.asarray(x, object)]
        if self.vocabularies_ is None:
            count = len(rows[0]) if rows else 0
            self.vocabularies_ = [CategoricalVocabulary()] * count if self.share else [CategoricalVocabulary() for _ in range(count)]
        for row in rows:
            for vocabulary, value in zip(self.vocabularies_, row):
                if not isinstance(value, float) or value == value:  # NaN is no word
                    vocabulary.add(value)
        if self.min_frequency > 0:
            for vocabulary in self.vocabularies_:
                vocabulary.trim(self.min_frequency)
        self.freeze()
        return self

    def fit_transform(self, x: Any, unused_y: Any = None) -> Any:
        """Learns the words, and gives their numbers."""
        return self.fit(x).transform(x)

    def transform(self, x: Any) -> Iterator[Any]:
        """The numbers of the words."""
        self.freeze()
        for row in np.asarray(x, object):
            yield np.array([v.get(value) for v, value in zip(self.vocabularies_ or [], row)], np.int64)
