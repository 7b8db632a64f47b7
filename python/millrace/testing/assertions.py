# SPDX-License-Identifier: Apache-2.0
"""Assertions of Abseil's test case, on which that of TensorFlow stands."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any, Iterator
import unittest
import urllib.parse


def _said(text: str, msg: Any) -> str:
    return text if msg is None else "%s : %s" % (text, msg)


class Assertions(unittest.TestCase):
    """Of sizes and contents of containers, and of messages of errors to the letter."""

    def assertLen(self, container: Any, expected_len: int, msg: Any = None) -> None:
        """Fails unless a container has as many elements."""
        if len(container) != expected_len:
            self.fail(_said("%r has length of %d, expected %d." % (container, len(container), expected_len), msg))

    def assertEmpty(self, container: Any, msg: Any = None) -> None:
        """Fails unless a container has no elements."""
        if len(container):
            self.fail(_said("%r has length of %d." % (container, len(container)), msg))

    def assertNotEmpty(self, container: Any, msg: Any = None) -> None:
        """Fails unless a container has elements."""
        if not len(container):
            self.fail(_said("%r has length of 0." % (container,), msg))

    def assertItemsEqual(self, expected_seq: Any, actual_seq: Any, msg: Any = None) -> None:
        """Fails unless both have the same elements as often, in any order."""
        self.assertCountEqual(expected_seq, actual_seq, msg)

    def assertSameElements(self, expected_seq: Any, actual_seq: Any, msg: Any = None) -> None:
        """Fails unless both have the same elements, in any order and as often as they like."""
        missing = [e for e in expected_seq if e not in actual_seq]
        unexpected = [e for e in actual_seq if e not in expected_seq]
        if missing or unexpected:
            self.fail(_said("Missing entries: %r, unexpected entries: %r" % (missing, unexpected), msg))

    def assertContainsSubset(self, expected_subset: Any, actual_set: Any, msg: Any = None) -> None:
        """Fails unless all elements of the first are in the second."""
        missing = set(expected_subset) - set(actual_set)
        if missing:
            self.fail(_said("Missing elements %s\nExpected: %s\nActual: %s" % (missing, expected_subset, actual_set), msg))

    def assertNoCommonElements(self, expected_seq: Any, actual_seq: Any, msg: Any = None) -> None:
        """Fails if an element is in both."""
        common = set(expected_seq) & set(actual_seq)
        if common:
            self.fail(_said("Common elements %s\nExpected: %s\nActual: %s" % (common, expected_seq, actual_seq), msg))

    def assertSequenceAlmostEqual(self, expected_seq: Any, actual_seq: Any, places: Any = None, msg: Any = None, delta: Any = None) -> None:
        """Fails unless both are as long, and the elements at each place almost equal."""
        self.assertLen(actual_seq, len(expected_seq), msg)
        for i, (expected, actual) in enumerate(zip(expected_seq, actual_seq)):
            self.assertAlmostEqual(expected, actual, places, _said("at index %d" % i, msg), delta)

    def assertRegexMatch(self, actual_str: Any, regexes: Any, message: Any = None) -> None:
        """Fails unless one of the expressions is found."""
        if isinstance(regexes, (str, bytes)):
            raise TypeError("regexes is string or bytes; use assertRegex for a single regular expression.")
        if not any(re.search(expression, actual_str, re.MULTILINE) for expression in regexes):
            self.fail(_said("%r contains none of the expressions %r" % (actual_str, list(regexes)), message))

    def assertContainsInOrder(self, strings: Any, target: str, msg: Any = None) -> None:
        """Fails unless the strings stand in the text one behind the other."""
        at = -1
        for text in [strings] if isinstance(strings, str) else strings:
            at = target.find(text, at + 1)
            if at < 0:
                self.fail(_said("Did not find %r at its place in %r" % (text, target), msg))

    def assertNotStartsWith(self, actual: Any, unexpected_start: Any, msg: Any = None) -> None:
        """Fails if a text begins with another."""
        if actual.startswith(unexpected_start):
            self.fail(_said("%r does start with %r" % (actual, unexpected_start), msg))

    def assertEndsWith(self, actual: Any, expected_end: Any, msg: Any = None) -> None:
        """Fails unless a text ends with another."""
        if not actual.endswith(expected_end):
            self.fail(_said("%r does not end with %r" % (actual, expected_end), msg))

    def assertNotEndsWith(self, actual: Any, unexpected_end: Any, msg: Any = None) -> None:
        """Fails if a text ends with another."""
        if actual.endswith(unexpected_end):
            self.fail(_said("%r does end with %r" % (actual, unexpected_end), msg))

    def assertSequenceStartsWith(self, prefix: Any, whole: Any, msg: Any = None) -> None:
        """Fails unless a sequence begins with the elements of another."""
        if not prefix:
            self.fail(_said("Prefix length is 0.", msg))
        self.assertSequenceEqual(list(prefix), list(whole[: len(prefix)]), msg)

    def assertContainsSubsequence(self, container: Any, subsequence: Any, msg: Any = None) -> None:
        """Fails unless the elements of one are in the other in their order, others perhaps between them."""
        rest = iter(container)
        if not all(any(e == found for found in rest) for e in subsequence):
            self.fail(_said("%s not a subsequence of %s" % (list(subsequence), list(container)), msg))

    def assertContainsExactSubsequence(self, container: Any, subsequence: Any, msg: Any = None) -> None:
        """Fails unless the elements of one are in the other side by side."""
        whole, part = list(container), list(subsequence)
        if not any(whole[i : i + len(part)] == part for i in range(len(whole) - len(part) + 1)):
            self.fail(_said("%s not an exact subsequence of %s" % (part, whole), msg))

    def assertSameStructure(self, a: Any, b: Any, aname: str = "a", bname: str = "b", msg: Any = None) -> None:
        """Fails unless lists and dictionaries in each other have the same values in the same places."""
        if a != b:
            self.fail(_said("%s is not %s: %r is not %r" % (aname, bname, a, b), msg))

    def assertJsonEqual(self, first: str, second: str, msg: Any = None) -> None:
        """Fails unless two texts are the same JSON value."""
        self.assertEqual(json.loads(first), json.loads(second), msg)

    def assertUrlEqual(self, a: str, b: str, msg: Any = None) -> None:
        """Fails unless two URLs are the same, the order of what is asked for aside."""
        one, other = urllib.parse.urlparse(a), urllib.parse.urlparse(b)
        self.assertEqual(one[:3] + one[5:], other[:3] + other[5:], msg)
        self.assertEqual(sorted(one.params.split(";")), sorted(other.params.split(";")), msg)
        asked, other_asked = (urllib.parse.parse_qs(url.query, keep_blank_values=True) for url in (one, other))
        self.assertEqual(asked, other_asked, msg)

    def enter_context(self, manager: Any) -> Any:
        """What a context gives when it is entered; it is left when the test ends."""
        made = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return made

    def assertTotallyOrdered(self, *groups: Any, **kwargs: Any) -> None:
        """Fails unless the elements of each group are equal, and less than those of later ones."""
        for i, group in enumerate(groups):
            for a in group:
                for b in group:
                    self.assertTrue(a == b and a <= b and not a < b and hash(a) == hash(b), kwargs.get("msg"))
                for b in (b for later in groups[i + 1 :] for b in later):
                    self.assertTrue(a < b and b > a and a <= b and a != b, kwargs.get("msg"))

    def assertRaisesWithLiteralMatch(self, expected_exception: Any, expected_exception_message: str, *called: Any, **kwargs: Any) -> Any:
        """Fails unless the error's message is this one; where in a program an error was raised, which Millrace adds, is no part of it."""
        scope = self._raises_literally(expected_exception, expected_exception_message)
        if not called:
            return scope
        with scope:
            called[0](*called[1:], **kwargs)
        return None

    @contextlib.contextmanager
    def _raises_literally(self, kind: Any, message: str) -> Iterator[None]:
        try:
            yield
        except kind as error:
            said = re.sub(r"\.? At \S+:\d+\.?\Z", "", str(error))
            if str(error) != message and said != message.rstrip(".") and said != message:
                self.fail("Exception message does not match.\nExpected: %r\nActual: %r" % (message, str(error)))
        else:
            self.fail("%s not raised" % getattr(kind, "__name__", kind))
