# SPDX-License-Identifier: Apache-2.0
"""Reads tables and records by queues and threads, as programs did before tf.data."""
import numpy as np
import tensorflow as tf


def table():
    for part in range(2):
        with open("table%d.csv" % part, "w") as file:
            for row in range(5):
                file.write("%d,%d.5,%s\n" % (part * 5 + row, row, "even" if row % 2 == 0 else "odd"))
    names = tf.train.string_input_producer(["table0.csv", "table1.csv"], num_epochs=1, shuffle=False)
    key, line = tf.TextLineReader().read(names)
    number, value, kind = tf.decode_csv(line, [[0], [0.0], [""]])
    return tf.train.batch({"key": key, "number": number, "value": value, "kind": kind}, 4, allow_smaller_final_batch=True)


def records():
    with tf.python_io.TFRecordWriter("records") as writer:
        for i in range(6):
            example = tf.train.Example(features=tf.train.Features(feature={
                "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
                "words": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"w%d" % j for j in range(i % 3)]))}))
            writer.write(example.SerializeToString())
    _, serialized = tf.TFRecordReader().read(tf.train.string_input_producer(["records"], num_epochs=2))
    features = tf.parse_single_example(serialized, {"id": tf.FixedLenFeature([], tf.int64), "words": tf.VarLenFeature(tf.string)})
    return tf.train.batch([features["id"], features["words"]], 3)


def lengths():
    number = tf.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    return tf.train.batch([tf.range(number + 1)], 3, dynamic_pad=True)


def kept():
    number = tf.train.range_input_producer(12, num_epochs=1, shuffle=False).dequeue()
    return tf.train.maybe_batch([number], tf.equal(number % 3, 0), 2)


def shuffled():
    rows = tf.train.slice_input_producer([np.arange(40), np.arange(40) * 2], num_epochs=1)
    return tf.train.shuffle_batch(rows, 8, capacity=30, min_after_dequeue=10, num_threads=2)


def by_hand():
    queue = tf.FIFOQueue(3, [tf.int64], shapes=[[]], name="squares")
    count = tf.Variable(0, dtype=tf.int64)
    fill = queue.enqueue(tf.square(count.count_up_to(7)))
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [fill]))
    return queue.dequeue()


def run(make, show):
    print(make.__name__)
    with tf.Graph().as_default():
        batch = make()
        print(" ", ", ".join(r.name for r in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)))
        with tf.Session() as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coord)
            seen = []
            try:
                while not coord.should_stop():
                    seen.append(sess.run(batch))
            except tf.errors.OutOfRangeError:
                print("  the end after %d" % len(seen))
            finally:
                coord.request_stop()
            coord.join(threads)
        show(seen)


def main():
    def rows(seen):
        for b in seen:
            print("  ", b["number"].tolist(), b["value"].tolist(), b["kind"].tolist(), b["key"].tolist())

    def sparse(seen):
        for ids, words in seen:
            print("  ", ids.tolist(), words.indices.tolist(), words.values.tolist(), words.dense_shape.tolist())

    def arrays(seen):
        for b in seen:
            print("  ", b.tolist())

    def together(seen):
        print("  ", sorted(int(n) for b, _ in seen for n in b), all((b * 2 == c).all() for b, c in seen))

    run(table, rows)
    run(records, sparse)
    run(lengths, arrays)
    run(kept, arrays)
    run(shuffled, together)
    run(by_hand, lambda seen: print("  ", [int(n) for n in seen]))


main()
