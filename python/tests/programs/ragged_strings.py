# SPDX-License-Identifier: Apache-2.0
"""Characters, bytes, words and runs of words of strings."""
import tensorflow as tf

texts = [u"G\xf6\xf6dnight", u"\U0001f60a", u"", u"abc"]
encoded = [t.encode("utf-8") for t in texts]
nested = tf.ragged.constant([[b"ab", b"c"], [], [b"def"]])
words = tf.ragged.constant([["aa", "bb", "cc", "dd"], [], ["ee", "ff"]])
shown = [
    ("decode", tf.strings.unicode_decode(encoded, "UTF-8")),
    ("decode one", tf.strings.unicode_decode(encoded[0], "UTF-8")),
    ("decode nested", tf.strings.unicode_decode(nested, "UTF-8")),
    ("decode matrix", tf.strings.unicode_decode([["a", "bc"], ["", "d"]], "UTF-8")),
    ("wrong bytes", tf.strings.unicode_decode([b"a\xffb"], "UTF-8", replacement_char=42)),
    ("left out", tf.strings.unicode_decode([b"a\xffb"], "UTF-8", errors="ignore")),
    ("offsets", tf.strings.unicode_decode_with_offsets(encoded, "UTF-8")[1]),
    ("split", tf.strings.unicode_split(encoded, "UTF-8")),
    ("split one", tf.strings.unicode_split(encoded[0], "UTF-8")),
    ("split offsets", tf.strings.unicode_split_with_offsets(encoded, "UTF-8")[1]),
    ("encode", tf.strings.unicode_encode(tf.ragged.constant([[72, 246], [], [128522]]), "UTF-8")),
    ("encode vector", tf.strings.unicode_encode([72, 105], "UTF-16-BE")),
    ("encode matrix", tf.strings.unicode_encode([[72, 105], [97, 98]], "UTF-8")),
    ("encode cube", tf.strings.unicode_encode([[[72, 105], [97, 98]]], "UTF-8")),
    ("bytes", tf.strings.bytes_split(encoded)),
    ("bytes of one", tf.strings.bytes_split("abc")),
    ("bytes nested", tf.strings.bytes_split(nested)),
    ("words", tf.strings.split(["a b  c", "", "d"], result_type="RaggedTensor")),
    ("words by comma", tf.strings.split(["a,b,,c", "d"], ",", result_type="RaggedTensor")),
    ("at most one", tf.strings.split(["a b c"], maxsplit=1, result_type="RaggedTensor")),
    ("sparse words", tf.strings.split(["a b", "c"]).values),
    ("string_split", tf.string_split(["a b", "c"], result_type="RaggedTensor")),
    ("pairs", tf.strings.ngrams(words, 2)),
    ("pairs and threes", tf.strings.ngrams(words, [2, 3], separator="|")),
    ("padded", tf.strings.ngrams(words, 3, pad_values=("<", ">"), padding_width=1)),
    ("fully padded", tf.strings.ngrams(words, 3, pad_values="*")),
    ("short rows", tf.strings.ngrams(words, 3, preserve_short_sequences=True)),
    ("of a vector", tf.strings.ngrams(["a", "b", "c"], 2)),
    ("of a matrix", tf.strings.ngrams([["a", "b", "c"], ["d", "e", "f"]], 2)),
]
with tf.Session() as session:
    for (name, _), value in zip(shown, session.run([made for _, made in shown])):
        print(name, "|", value.to_list() if hasattr(value, "to_list") else value.tolist() if hasattr(value, "tolist") else value)
for wrong in [lambda: tf.strings.ngrams(words, 0), lambda: tf.strings.ngrams(words, 2, padding_width=1), lambda: tf.strings.split(["a"], result_type="x"),
              lambda: tf.strings.unicode_encode(7, "UTF-8")]:
    try:
        wrong()
    except ValueError:
        print("refused")
