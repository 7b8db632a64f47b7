# SPDX-License-Identifier: Apache-2.0
"""Queues: what they keep, in which order they give it, and what they refuse."""

import threading
import time

import numpy as np
import pytest

import millrace as tf


@pytest.fixture
def sess():
    with tf.Session() as session:
        yield session


def put(session, queue, *elements):
    for element in elements:
        session.run(queue.enqueue(element))


def in_thread(function):
    """Runs a function in a thread; a function that waits for it and gives what it returned or raises what it raised."""
    outcome = []

    def work():
        try:
            outcome.append((function(), None))
        except Exception as error:  # pylint: disable=broad-except
            outcome.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()

    def wait():
        thread.join(20)
        assert outcome, "the thread still waits"
        value, error = outcome[0]
        if error is not None:
            raise error
        return value

    wait.still = lambda: thread.is_alive()
    return wait


def test_in_the_order_of_coming(sess):
    queue = tf.FIFOQueue(10, [tf.int32, tf.float32], shapes=[[], [2]])
    put(sess, queue, [1, [1.0, 2.0]], [2, [3.0, 4.0]])
    sess.run(queue.enqueue_many([[3, 4], [[5.0, 6.0], [7.0, 8.0]]]))
    assert sess.run(queue.size()) == 4
    number, pair = sess.run(queue.dequeue())
    assert number == 1 and pair.tolist() == [1, 2]
    numbers, pairs = sess.run(queue.dequeue_many(3))
    assert numbers.tolist() == [2, 3, 4] and pairs.tolist() == [[3, 4], [5, 6], [7, 8]]
    assert sess.run(queue.size()) == 0


def test_what_is_known_of_it():
    queue = tf.FIFOQueue(10, [tf.int32, tf.float32], shapes=[[], [2]], name="pairs")
    assert queue.name == "pairs" and queue.names is None
    assert queue.dtypes == [tf.int32, tf.float32]
    assert [s.as_list() for s in queue.shapes] == [[], [2]]
    assert queue.queue_ref.dtype == tf.resource
    assert [t.get_shape().as_list() for t in queue.dequeue()] == [[], [2]]
    assert [t.get_shape().as_list() for t in queue.dequeue_many(5)] == [[5], [5, 2]]
    assert [t.get_shape().as_list() for t in queue.dequeue_up_to(5)] == [[None], [None, 2]]
    assert queue.dequeue_many(tf.placeholder(tf.int32, []))[0].get_shape().as_list() == [None]


def test_names_of_its_operations():
    queue = tf.FIFOQueue(10, tf.float32, shapes=[[]])
    made = [
        queue.enqueue(1.0),
        queue.enqueue_many([[1.0]]),
        queue.dequeue(),
        queue.dequeue_many(2),
        queue.dequeue_up_to(2),
        queue.size(),
        queue.close(),
        queue.close(True),
        queue.is_closed(),
    ]
    assert [getattr(m, "op", m).name for m in made] == [
        "fifo_queue_enqueue",
        "fifo_queue_EnqueueMany",
        "fifo_queue_Dequeue",
        "fifo_queue_DequeueMany",
        "fifo_queue_DequeueUpTo",
        "fifo_queue_Size",
        "fifo_queue_Close",
        "fifo_queue_Close_1",
        "fifo_queue_Is_Closed",
    ]
    assert queue.enqueue(1.0, name="mine").name == "mine"


def test_one_component_is_a_tensor_and_not_a_list(sess):
    queue = tf.FIFOQueue(3, tf.string, shapes=tf.TensorShape([]))
    put(sess, queue, "a")
    assert sess.run(queue.dequeue()) == b"a"


def test_names_make_elements_dicts(sess):
    queue = tf.FIFOQueue(5, [tf.int32, tf.float32], shapes=[[], []], names=["count", "weight"])
    sess.run(queue.enqueue({"weight": 1.5, "count": 3}))
    sess.run(queue.enqueue_many({"weight": [2.5, 3.5], "count": [4, 5]}))
    assert sess.run(queue.dequeue()) == {"count": 3, "weight": 1.5}
    found = sess.run(queue.dequeue_many(2))
    assert found["count"].tolist() == [4, 5] and found["weight"].tolist() == [2.5, 3.5]
    with pytest.raises(ValueError, match="must enqueue a dictionary"):
        queue.enqueue([1, 1.0])
    with pytest.raises(ValueError, match="do not match names"):
        queue.enqueue({"weight": 1.0})
    with pytest.raises(ValueError, match="must have names"):
        tf.FIFOQueue(5, tf.int32).enqueue({"a": 1})
    with pytest.raises(ValueError, match="same length"):
        tf.FIFOQueue(5, [tf.int32], names=["a", "b"])


def test_elements_without_shapes_may_differ(sess):
    queue = tf.FIFOQueue(5, tf.float32)
    put(sess, queue, [[1.0]], [[[2.0, 3.0]]])
    element = queue.dequeue()
    assert sess.run(element).tolist() == [1] and sess.run(element).tolist() == [[2, 3]]
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match="shape"):
        sess.run(queue.dequeue_many(1))


def test_wrong_elements_are_refused():
    queue = tf.FIFOQueue(5, [tf.float32, tf.int32], shapes=[[2], []])
    with pytest.raises(ValueError):
        queue.enqueue([[1.0, 2.0, 3.0], 1])
    with pytest.raises(ValueError, match="2 components, got 1"):
        queue.enqueue([[1.0, 2.0]])
    with pytest.raises((ValueError, TypeError)):
        queue.enqueue([[1.0, 2.0], "text"])
    with pytest.raises(ValueError):
        queue.enqueue_many([[[1.0, 2.0]], [1, 2]])
    with pytest.raises(ValueError, match="fully defined"):
        tf.FIFOQueue(5, tf.float32, shapes=[[None]])
    with pytest.raises(ValueError, match="same length"):
        tf.FIFOQueue(5, [tf.float32, tf.int32], shapes=[[2]])
    with pytest.raises(ValueError, match="list of shapes"):
        tf.PaddingFIFOQueue(5, tf.float32, shapes=None)
    with pytest.raises(ValueError, match="defined rank"):
        tf.PaddingFIFOQueue(5, tf.float32, shapes=[tf.TensorShape(None)])


def test_who_takes_waits_for_who_puts(sess):
    queue = tf.FIFOQueue(5, tf.int32, shapes=[[]])
    element, enqueue = queue.dequeue(), queue.enqueue(7)
    waiting = in_thread(lambda: sess.run(element))
    time.sleep(0.1)
    assert waiting.still()
    sess.run(enqueue)
    assert waiting() == 7


def test_who_puts_waits_while_it_is_full(sess):
    queue = tf.FIFOQueue(2, tf.int32, shapes=[[]])
    fill, element = queue.enqueue_many([[1, 2, 3]]), queue.dequeue()
    waiting = in_thread(lambda: sess.run(fill))
    time.sleep(0.1)
    assert waiting.still()
    assert sess.run(element) == 1
    waiting()
    assert [sess.run(element) for _ in range(2)] == [2, 3]


def test_a_closed_queue_gives_what_it_has(sess):
    queue = tf.FIFOQueue(5, tf.int32, shapes=[[]])
    sess.run(queue.enqueue_many([[1, 2, 3]]))
    assert not sess.run(queue.is_closed())
    sess.run(queue.close())
    assert sess.run(queue.is_closed())
    assert sess.run(queue.dequeue_many(2)).tolist() == [1, 2]
    with pytest.raises(tf.errors.OutOfRangeError, match="closed"):
        sess.run(queue.dequeue_many(2))
    assert sess.run(queue.dequeue_up_to(2)).tolist() == [3]
    with pytest.raises(tf.errors.OutOfRangeError):
        sess.run(queue.dequeue())
    with pytest.raises(tf.errors.CancelledError):
        sess.run(queue.enqueue(4))


def test_closing_ends_the_waiting(sess):
    queue = tf.FIFOQueue(1, tf.int32, shapes=[[]])
    element, close = queue.dequeue(), queue.close()
    waiting = in_thread(lambda: sess.run(element))
    time.sleep(0.1)
    sess.run(close)
    with pytest.raises(tf.errors.OutOfRangeError):
        waiting()


def test_closing_with_cancelling_ends_the_waiting_of_who_puts(sess):
    queue = tf.FIFOQueue(1, tf.int32, shapes=[[]])
    enqueue, close = queue.enqueue(1), queue.close(cancel_pending_enqueues=True)
    sess.run(enqueue)
    waiting = in_thread(lambda: sess.run(enqueue))
    time.sleep(0.1)
    assert waiting.still()
    sess.run(close)
    with pytest.raises(tf.errors.CancelledError):
        waiting()


def test_closing_the_session_ends_the_waiting():
    queue = tf.FIFOQueue(1, tf.int32, shapes=[[]])
    element = queue.dequeue()
    session = tf.Session()
    waiting = in_thread(lambda: session.run(element))
    time.sleep(0.1)
    session.close()
    with pytest.raises(tf.errors.CancelledError):
        waiting()


def test_a_step_with_a_deadline(sess):
    queue = tf.FIFOQueue(1, tf.int32, shapes=[[]])
    with pytest.raises(tf.errors.DeadlineExceededError):
        sess.run(queue.dequeue(), options=tf.RunOptions(timeout_in_ms=50))
    sess.run(queue.enqueue(3))
    assert sess.run(queue.size()) == 1


def test_padding(sess):
    queue = tf.PaddingFIFOQueue(5, [tf.int32, tf.string], shapes=[[None], [2, None]])
    put(sess, queue, [[1, 2, 3], [["a"], ["b"]]], [[4], [["c", "d"], ["e", "f"]]])
    numbers, texts = sess.run(queue.dequeue_many(2))
    assert numbers.tolist() == [[1, 2, 3], [4, 0, 0]]
    assert texts.tolist() == [[[b"a", b""], [b"b", b""]], [[b"c", b"d"], [b"e", b"f"]]]
    assert [t.get_shape().as_list() for t in queue.dequeue_many(2)] == [[2, None], [2, 2, None]]


def test_shuffling_gives_each_element_once_and_keeps_some_to_choose_from(sess):
    queue = tf.RandomShuffleQueue(200, 50, tf.int32, shapes=[[]], seed=3)
    sess.run(queue.enqueue_many([np.arange(150)]))
    ten, close = queue.dequeue_many(10), queue.close()
    found = [n for _ in range(10) for n in sess.run(ten)]
    assert found != sorted(found)
    waiting = in_thread(lambda: sess.run(ten))
    time.sleep(0.1)
    assert waiting.still()
    sess.run(close)
    found += list(waiting())
    found += [n for _ in range(4) for n in sess.run(ten)]
    assert sorted(found) == list(range(150))


def test_seeds_of_a_shuffling_queue():
    def seeds(**keywords):
        op = tf.RandomShuffleQueue(10, 2, tf.float32, **keywords).queue_ref.op
        return op.get_attr("seed"), op.get_attr("seed2")

    assert seeds() == (0, 0)
    assert seeds(seed=5) == (87654321, 5)
    tf.set_random_seed(4)
    assert seeds(seed=3, shared_name="a") == (4, 3)
    assert seeds(shared_name="a") == (4, 568450265)  # as TensorFlow


def test_priorities(sess):
    queue = tf.PriorityQueue(10, tf.string, shapes=[[]])
    sess.run(queue.enqueue_many([[5, -1, 5, 2], ["five", "first", "five again", "two"]]))
    assert queue.dtypes == [tf.int64, tf.string]
    priorities, texts = sess.run(queue.dequeue_many(4))
    assert priorities.tolist() == [-1, 2, 5, 5]
    assert texts.tolist() == [b"first", b"two", b"five", b"five again"]


def test_one_of_several_queues(sess):
    first, second = (tf.FIFOQueue(5, tf.int32, shapes=[[]]) for _ in range(2))
    sess.run([first.enqueue(10), second.enqueue(20)])
    which = tf.placeholder(tf.int32, [])
    chosen = tf.QueueBase.from_list(which, [first, second])
    element = chosen.dequeue()
    assert sess.run(element, {which: 1}) == 20
    assert sess.run(element, {which: 0}) == 10
    with pytest.raises(TypeError, match="matching component dtypes"):
        tf.QueueBase.from_list(0, [first, tf.FIFOQueue(5, tf.float32)])
    with pytest.raises(TypeError, match="list of queues"):
        tf.QueueBase.from_list(0, [])


def test_a_name_that_is_shared(sess):
    one, two = (tf.FIFOQueue(5, tf.int32, shapes=[[]], shared_name="both", name=name) for name in ("one", "two"))
    sess.run(one.enqueue(3))
    assert sess.run(two.dequeue()) == 3


def test_many_threads_lose_and_double_nothing(sess):
    queue = tf.FIFOQueue(7, tf.int32, shapes=[[]])
    value = tf.placeholder(tf.int32, [])
    enqueue, element = queue.enqueue(value), queue.dequeue()
    takers = [in_thread(lambda: [int(sess.run(element)) for _ in range(50)]) for _ in range(4)]
    putters = [in_thread(lambda base=base: [sess.run(enqueue, {value: base + i}) for i in range(50)]) for base in (0, 50, 100, 150)]
    for wait in putters:
        wait()
    assert sorted(n for wait in takers for n in wait()) == list(range(200))


def test_a_closed_barrier_gives_the_small_batch_that_is_ready():
    from millrace import names

    flow = names.find("python.ops.data_flow_ops")
    with tf.Graph().as_default(), tf.Session() as session:
        barrier = flow.Barrier((tf.float32, tf.float32), shapes=((), ()))
        first = barrier.insert_many(0, ["a", "b", "c"], [1.0, 2.0, 3.0])
        second = barrier.insert_many(1, ["a", "b"], [10.0, 20.0])
        third = barrier.insert_many(1, ["c"], [30.0])
        close, taken = barrier.close(), barrier.take_many(3, allow_small_batch=True)
        for op in (first, second, close):
            session.run(op)
        assert list(session.run(taken[1])) == [b"a", b"b"], "one more element is begun, and nobody waits for it"
        session.run(third)
        assert list(session.run(taken[1])) == [b"c"]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(taken[1])


def test_shared_shuffles_have_one_seed(sess):
    with pytest.raises(tf.errors.InvalidArgumentError, match="has random seeds"):
        for seed in (12, 21):
            sess.run(tf.RandomShuffleQueue(10, 5, tf.float32, seed=seed, shared_name="shuffled").size())


def test_a_shuffle_without_seeds_shares_any(sess):
    first = tf.RandomShuffleQueue(10, 5, tf.float32, seed=12, shared_name="shuffled")
    second = tf.RandomShuffleQueue(10, 5, tf.float32, shared_name="shuffled")
    assert sess.run([first.size(), second.size()]) == [0, 0]
