# SPDX-License-Identifier: Apache-2.0
"""What errors of running carry: the class, .op, .node_def, .message, .error_code, the line that made the node, and its inputs."""

import os
import pickle
import tempfile

import numpy as np
import pytest

import millrace as tf

CODES = {
    "CancelledError": 1,
    "UnknownError": 2,
    "InvalidArgumentError": 3,
    "DeadlineExceededError": 4,
    "NotFoundError": 5,
    "AlreadyExistsError": 6,
    "PermissionDeniedError": 7,
    "ResourceExhaustedError": 8,
    "FailedPreconditionError": 9,
    "AbortedError": 10,
    "OutOfRangeError": 11,
    "UnimplementedError": 12,
    "InternalError": 13,
    "UnavailableError": 14,
    "DataLossError": 15,
    "UnauthenticatedError": 16,
}


@pytest.mark.parametrize("name", CODES)
def test_class(name):
    cls, op = getattr(tf.errors, name), tf.constant(1.0).op
    error = cls(op.node_def, op, "what went wrong")
    assert isinstance(error, tf.errors.OpError) and isinstance(error, tf.OpError)
    assert (error.message, str(error), error.error_code, error.op) == ("what went wrong", "what went wrong", CODES[name], op)
    assert error.node_def.name == op.name and cls(None, None, "").node_def is None
    assert tf.errors.exception_type_from_error_code(CODES[name]) is cls
    assert tf.errors.error_code_from_exception_type(cls) == CODES[name]


def _never_fed():
    return tf.placeholder(tf.float32, [2], name="culprit")


def _timeout(session):
    loop = tf.while_loop(lambda i: i < 2**62, lambda i: i + 1, [tf.constant(0, tf.int64)], name="culprit")
    session.run(loop, options=tf.RunOptions(timeout_in_ms=50))


def _counted(session):
    counter = tf.Variable(0, name="v")
    session.run(counter.initializer)
    count = tf.count_up_to(counter, 1, name="culprit")
    for _ in range(2):
        session.run(count)


def _missing_key(session):
    tf.Variable(1.0, name="v")
    session.run(tf.global_variables_initializer())
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Saver().save(session, os.path.join(folder, "model"))
        tf.Variable(1.0, name="absent")
        tf.train.Saver().restore(session, path)


AT_RUN = {
    "a wrong argument": (tf.errors.InvalidArgumentError, "culprit", lambda s: s.run(tf.gather([1.0, 2.0], 7, name="culprit"))),
    "a placeholder": (tf.errors.InvalidArgumentError, "culprit", lambda s: s.run(tf.identity(_never_fed()))),
    "no value": (tf.errors.FailedPreconditionError, "v/read", lambda s: s.run(tf.Variable(1.0, name="v") + 1)),
    "a counter": (tf.errors.OutOfRangeError, "culprit", _counted),
    "a limit": (tf.errors.DeadlineExceededError, None, _timeout),
    "a key": (tf.errors.NotFoundError, None, _missing_key),
    "memory": (tf.errors.ResourceExhaustedError, "culprit", lambda s: s.run(tf.fill([2**50], tf.zeros([]), name="culprit"))),
}


@pytest.mark.parametrize("kind", AT_RUN)
def test_error_of_a_step(kind):
    cls, op, function = AT_RUN[kind]
    # The session's graph is not the default one when the step fails.
    with tf.Graph().as_default() as graph:
        session = tf.Session(graph=graph)
        with pytest.raises(cls) as caught:
            function(session)
    error = caught.value
    assert type(error) is cls and error.error_code == CODES[cls.__name__] and error.message == str(error)
    assert len(error.message.splitlines()) <= 12 and __file__ in error.message, error.message
    if op is None:
        return
    assert error.op is graph.get_operation_by_name(op) and error.node_def.name == op
    assert "[[node %s (%s) defined at %s:" % (op, error.op.type, __file__) in error.message
    for i, x in enumerate(error.op.inputs):
        assert "input %d: %s, made at %s" % (i, x, __file__) in error.message


@pytest.mark.parametrize("loop", [False, True], ids=["straight", "in a loop"])
def test_what_a_node_was_given(loop):
    x, y = tf.placeholder(tf.float32, name="x"), tf.placeholder(tf.float32, name="y")
    z = (
        tf.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, tf.matmul(x, y)), [0, x], shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)])[1]
        if loop
        else tf.matmul(x, y)
    )
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=r"\n\t given float \[2,3\], float \[4,2\]\n"):
        session.run(z, {x: np.ones([2, 3]), y: np.ones([4, 2])})


def test_a_traceback_ends_where_the_library_was_called():
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError) as failure:
            session.run(tf.Assert(False, ["no"]))
    assert os.path.basename(str(failure.traceback[-1].path)) == "session.py"


def test_the_operation_is_found_in_the_graph_of_the_session():
    with tf.Graph().as_default() as graph:
        wrong = tf.gather(tf.placeholder(tf.float32, [None], name="table"), 7, name="wrong")
    session = tf.Session(graph=graph)
    run = session.make_callable(wrong, ["table:0"])
    for step in (lambda: session.run(wrong, {"table:0": [1.0]}), lambda: run([1.0])):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            step()
        assert caught.value.op is wrong.op


def test_long_lists_of_inputs_are_cut():
    parts = [tf.placeholder(tf.float32, name="part") for _ in range(40)]
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(tf.add_n(parts), {p: np.ones(i + 1) for i, p in enumerate(parts)})
    assert "given float [1], float [2]" in str(caught.value) and "float [8] and 32 more\n" in str(caught.value)
    assert "and 34 more" in str(caught.value) and len(str(caught.value).splitlines()) <= 12
    with pytest.raises(ValueError) as built:
        tf.add_n([tf.placeholder(tf.float32, [1])] + [tf.placeholder(tf.float32, [2]) for _ in range(39)])
    assert len(str(built.value).splitlines()) <= 12, built.value


def test_a_line_is_not_taken_for_its_beginning():
    """The message names line 1 although it names line 12 already."""
    program = "\n" * 11 + "x = tf.placeholder(tf.float32, [2, 3])\n"
    names = {"tf": tf}
    exec(compile(program, "program.py", "exec"), names)
    with pytest.raises(ValueError, match=r"At program\.py:1\n.*made at program\.py:12"):
        exec(compile("tf.matmul(x, x)", "program.py", "exec"), names)


def test_sizes_beyond_32_bits():
    assert tf.fill([2**40, 2], 1.0).get_shape().as_list() == [2**40, 2]


def test_errors_cross_processes():
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(tf.reshape(tf.placeholder_with_default(tf.zeros([3]), None), [2, 2]))
    there = pickle.loads(pickle.dumps(caught.value))
    assert type(there) is tf.errors.InvalidArgumentError and there.message == caught.value.message and there.op is None
    assert pickle.loads(pickle.dumps(tf.errors.OpError(None, None, "x", 7))).error_code == 7
    with pytest.warns(UserWarning, match="Unknown class"):
        assert isinstance(tf.errors.error_code_from_exception_type(ValueError), tf.errors.UnknownError)
