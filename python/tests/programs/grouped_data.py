# SPDX-License-Identifier: Apache-2.0
"""Data sets that group, scan, choose and leave out elements."""
import numpy as np
import tensorflow as tf

experimental = tf.data.experimental


def show(name, dataset, most=12):
    element = dataset.make_initializable_iterator()
    following = element.get_next()
    with tf.Session() as session:
        session.run(element.initializer)
        made = []
        try:
            for _ in range(most):
                value = session.run(following)
                made.append([np.asarray(v).tolist() for v in value] if isinstance(value, tuple) else np.asarray(value).tolist())
        except tf.errors.OutOfRangeError:
            made.append("end")
        except tf.errors.InvalidArgumentError:
            made.append("refused")
        print(name, made)


numbers = tf.data.Dataset.range(10)
show("windows", numbers.apply(experimental.group_by_window(lambda x: x % 3, lambda key, window: window.batch(2), window_size=2)))
show("sized windows", numbers.apply(experimental.group_by_window(
    lambda x: x % 2, lambda key, window: window.map(lambda x: x * 10 + key).batch(4), window_size_func=lambda key: key + 2)))
show("no size", numbers.apply(experimental.group_by_window(lambda x: x, lambda key, window: window, window_size_func=lambda key: key)))
words = tf.data.Dataset.from_generator(lambda: iter([[1], [2, 2], [3, 3, 3], [4] * 4, [5] * 5, [6], [7, 7]]), tf.int32, [None])
show("buckets", words.apply(experimental.bucket_by_sequence_length(lambda x: tf.size(x), [3, 5], [2, 2, 1])))
show("to the boundary", words.filter(lambda x: tf.size(x) < 5).apply(experimental.bucket_by_sequence_length(
    lambda x: tf.size(x), [3, 5], [2, 2, 2], pad_to_bucket_boundary=True, padding_values=-1)))
show("whole batches", words.apply(experimental.bucket_by_sequence_length(lambda x: tf.size(x), [3, 5], [2, 2, 2], drop_remainder=True)))
show("sums", numbers.apply(experimental.scan(np.int64(0), lambda state, x: (state + x, (x, state + x)))))
show("longer state", numbers.take(4).apply(experimental.scan(tf.constant([0], tf.int64), lambda state, x: (tf.concat([state, [x]], 0), tf.reduce_sum(state)))))
show("while", numbers.apply(experimental.take_while(lambda x: x < 4)))
show("unique", tf.data.Dataset.from_tensor_slices([1, 2, 1, 3, 2, 1]).apply(experimental.unique()))
show("unique words", tf.data.Dataset.from_tensor_slices(["a", "b", "a"]).apply(experimental.unique()))
bad = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 0.0, 4.0]).map(lambda x: tf.check_numerics(1.0 / x, "not finite"))
show("errors", bad)
show("without errors", bad.apply(experimental.ignore_errors()))
letters = [tf.data.Dataset.from_tensors(c).repeat(n) for c, n in [("a", 3), ("b", 2), ("c", 5)]]
show("chosen", experimental.choose_from_datasets(letters, tf.data.Dataset.range(3).repeat(4)), 20)
show("out of range", experimental.choose_from_datasets(letters, tf.data.Dataset.range(5)))
show("sampled", experimental.sample_from_datasets(letters, [0.0, 1.0, 0.0], seed=1))
show("unbatched", tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4]]).apply(experimental.unbatch()))
show("options", numbers.take(2).with_options(tf.data.Options()))
print(experimental.get_structure(tf.data.Dataset.from_tensors((1, [2.0, 3.0]))) == (tf.TensorSpec([], tf.int32), tf.TensorSpec([2], tf.float32)))
for wrong in [lambda: numbers.apply(experimental.group_by_window(lambda x: x, lambda k, w: w)), lambda: experimental.choose_from_datasets(letters, letters[0]),
              lambda: numbers.apply(experimental.bucket_by_sequence_length(lambda x: x, [3], [2])), lambda: setattr(tf.data.Options(), "no_such_option", 1)]:
    try:
        print(wrong())
    except (AttributeError, TypeError, ValueError) as error:
        print(type(error).__name__)
classes = tf.data.Dataset.from_tensor_slices(np.array([0, 1] * 500, np.int64)).repeat().apply(
    experimental.rejection_resample(lambda x: tf.cast(x, tf.int32), [0.9, 0.1], [0.5, 0.5], seed=3)).batch(1000)
with tf.Session() as session:
    share = session.run(classes.make_one_shot_iterator().get_next())[0].mean()
    print("resampled", 0.06 < share < 0.14)
