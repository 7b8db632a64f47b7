# SPDX-License-Identifier: Apache-2.0
"""What functions of data sets do beside their results."""

import pytest

import millrace as tf


def run_through(dataset, session):
    iterator = dataset.make_initializable_iterator()
    session.run(iterator.initializer)
    element, elements = iterator.get_next(), []
    try:
        while True:
            elements.append(int(session.run(element)))
    except tf.errors.OutOfRangeError:
        return elements


@pytest.fixture
def counter():
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("counter", (), tf.int64, tf.zeros_initializer(), use_resource=True)
        session.run(variable.initializer)
        yield variable, session


def test_assignments_are_done(counter):
    variable, session = counter

    def count(x):
        variable.assign_add(1)
        return x

    numbers = tf.data.Dataset.range(4)
    assert run_through(numbers.map(count), session) == [0, 1, 2, 3] and session.run(variable) == 4
    assert run_through(numbers.filter(lambda x: count(x) > 1), session) == [2, 3] and session.run(variable) == 8
    assert run_through(numbers.map(count).cache().repeat(2), session) == [0, 1, 2, 3] * 2 and session.run(variable) == 12


def test_a_variable_is_used_in_the_order_of_the_program(counter):
    variable, session = counter

    def count(x):
        variable.assign_add(1)
        seen = variable.read_value()
        variable.assign_add(1)
        return 100 * seen + x

    assert run_through(tf.data.Dataset.range(3).map(count), session) == [100, 301, 502] and session.run(variable) == 6


def test_what_a_branch_does(counter):
    variable, session = counter

    def count(x):
        tf.cond(x < 2, lambda: variable.assign_add(1), lambda: variable.assign_add(10))
        return x

    assert run_through(tf.data.Dataset.range(3).map(count), session) == [0, 1, 2] and session.run(variable) == 12


def test_assertions_hold():
    def small(x):
        tf.assert_less(x, tf.constant(2, tf.int64))
        return x

    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="Condition x < y"):
        run_through(tf.data.Dataset.range(3).map(small), session)


def test_functions_of_python_are_called():
    with tf.Graph().as_default(), tf.Session() as session:
        seen = []

        def look(x):
            tf.py_func(lambda value: seen.append(int(value)), [x], [])
            return x

        assert run_through(tf.data.Dataset.range(3).map(look), session) == seen == [0, 1, 2]


def test_numbers_from_a_tensor_on():
    with tf.Graph().as_default(), tf.Session() as session:
        numbered = tf.data.Dataset.range(2).enumerate(tf.constant(7, tf.int64)).map(lambda number, element: number)
        assert run_through(numbered, session) == [7, 8]


@pytest.mark.parametrize("how", ["filter", "flat_map", "interleave"])
def test_a_function_that_says_out_of_range_is_no_end(how):
    def fails_at_3(x):
        if x == 3:
            raise StopIteration()
        return x

    def call(x):
        return tf.py_func(fails_at_3, [x], tf.int64)

    def one(x):
        return tf.data.Dataset.from_tensors(call(x))

    data = tf.data.Dataset.range(5)
    data = {
        "filter": lambda: data.filter(lambda x: tf.equal(call(x), x)),
        "flat_map": lambda: data.flat_map(one),
        "interleave": lambda: data.interleave(one, 1),
    }[how]()
    element = data.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [session.run(element) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(tf.errors.InternalError, match="returned `OutOfRange`"):
            session.run(element)
        assert session.run(element) == 4


def test_an_end_within_a_function_is_no_end_of_the_data():
    def ends(x):
        if x == 1:
            raise tf.errors.OutOfRangeError(None, None, "of other data")
        return x

    element = tf.data.Dataset.range(3).map(lambda x: tf.py_func(ends, [x], tf.int64)).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(element) == 0
        with pytest.raises(tf.errors.UnknownError, match="of other data"):
            session.run(element)
        assert session.run(element) == 2


def test_variables_that_are_no_resources_are_refused():
    with tf.Graph().as_default():
        variable = tf.Variable(0, use_resource=False)

        def count(x):
            variable.assign_add(1)
            return x

        with pytest.raises(NotImplementedError, match="changes the variable 'Variable:0' itself.*use_resource=True"):
            tf.data.Dataset.range(3).map(count)


def test_files_are_written_and_data_sets_are_read(counter, tmp_path):
    variable, session = counter
    name = str(tmp_path / "records")

    def count(x):
        variable.assign_add(1)
        return x

    def write(key, window):
        del key
        tf.data.experimental.TFRecordWriter(name).write(window.map(lambda x: tf.as_string(x)))
        window.map(count).reduce(tf.constant(0, tf.int64), lambda a, b: a + b)
        tf.data.experimental.get_single_element(window.take(1).map(count))
        return tf.data.Dataset.from_tensors(name)

    window = tf.data.Dataset.range(3).apply(tf.data.experimental.group_by_window(lambda x: x * 0, write, 9))
    iterator = window.make_initializable_iterator()
    session.run(iterator.initializer)
    assert session.run(iterator.get_next()) == name.encode() and session.run(variable) == 4
    assert list(tf.python_io.tf_record_iterator(name)) == [b"0", b"1", b"2"]


def test_tables_made_in_functions_are_told_of():
    def look(x):
        tf.contrib.lookup.HashTable(tf.contrib.lookup.KeyValueTensorInitializer(["a"], [1.0]), 0.0)
        return x

    with tf.Graph().as_default(), pytest.warns(UserWarning, match=r"Creating resources inside a function passed to Dataset.map\(\) is not supported."):
        tf.data.Dataset.range(3).map(look)
    with pytest.raises(TypeError, match=r"Unsupported return value from function passed to Dataset.map\(\): None."):
        tf.data.Dataset.range(3).map(lambda x: None)
