# SPDX-License-Identifier: Apache-2.0
"""tf.random.experimental: generators whose state is a variable, with the numbers of TensorFlow 1.15."""

import numpy as np
import pytest

import millrace as tf
from millrace.ops import gen_ops, stateful_random_ops

R = tf.random.experimental
PHILOX = stateful_random_ops.RNG_ALG_PHILOX
INTEGERS = [tf.int32, tf.int64, tf.uint32, tf.uint64]


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _made(generator, *tensors):
    with tf.Session() as session:
        session.run(generator.state.initializer)
        return [np.asarray(session.run(t)) for t in tensors], session.run(generator.state).tolist()


# What TensorFlow 1.15.5 makes of Generator(state=[2**62, 7, -5], alg=1).
_OF_TENSORFLOW = {
    "float16": (
        [-0.7333984375, 2.08984375, 2.90234375, 0.9033203125, -0.9931640625, -3.7109375],
        [-0.297119140625, 1.7509765625, 0.65576171875, -0.9296875, 0.69580078125],
        [3.46875, 2.40234375, 3.37109375],
    ),
    "float32": (
        [-0.7332688570022583, 2.089806079864502, 2.903027057647705, 0.9031422138214111, -0.9929518699645996, -3.7102770805358887],
        [-0.29712381958961487, 1.7506674528121948, 0.6555736064910889, -0.9294494390487671, 0.6957416534423828],
        [3.1720542907714844, 3.878467082977295, 2.3029017448425293],
    ),
    "float64": (
        [1.7640408410066748, 2.361982375954007, -1.9811199135011743, 1.7974566900899327, 0.7010548609408174, -0.03152301218678],
        [0.8568910415363503, 0.34150413625949255, 0.41967907909474356, 0.5043619071091033, -1.416351202443596],
        [3.376436181140071, 2.4232154820646827, 2.8714689096446286],
    ),
}


@pytest.mark.parametrize("dtype", sorted(_OF_TENSORFLOW))
def test_numbers_of_tensorflow(dtype):
    generator = R.Generator(state=[2**62, 7, -5], alg=PHILOX)
    drawn = generator.normal([2, 3], 1.0, 2.0, dtype), generator.truncated_normal([5], dtype=dtype), generator.uniform([3], 2, 4, dtype)
    made, state = _made(generator, *drawn)
    assert state == [2**62 + 256 * (6 + 5 + 3), 7, -5]
    for have, want in zip(made, _OF_TENSORFLOW[dtype]):
        np.testing.assert_allclose(have.astype(np.float64).ravel(), want, rtol=1e-3 if dtype == "float16" else 2e-6)


def test_integers_of_tensorflow():
    seeded = R.Generator.from_seed(1234)
    for dtype, narrow, wide in (
        (tf.int32, [219, 100, 64], [1042794019, 1982800025, 1132141883]),
        (tf.int64, [349, 260, 265], [8516061262925776419, 7973657651453828411, 8993644803982707104]),
    ):
        made, state = _made(seeded, seeded.uniform([3], 2, 400, dtype), seeded.uniform_full_int([3], dtype))
        assert [m.tolist() for m in made] == [narrow, wide] and state == [1234 + 6 * 256, 0, 0]
    for dtype, wide in ((tf.uint32, [1680725959, 110001726, 2756217324]), (tf.uint64, [472453817354278855, 4059409125917362668, 18380845769304944363])):
        assert _made(seeded, seeded.uniform_full_int([3], dtype))[0][0].tolist() == wide


@pytest.mark.parametrize("dtype", INTEGERS)
def test_whole_numbers_lie_in_their_range(dtype):
    generator = R.Generator.from_seed(5)
    (made,), _state = _made(generator, generator.uniform([500], 7, 11, dtype))
    assert sorted(set(made.tolist())) == [7, 8, 9, 10]


def test_states():
    assert R.create_rng_state(0xFFFF222233334444FFAA666677778888, PHILOX).tolist() == [-24094257720096632, -243944693480380, 0]
    assert R.create_rng_state([1, 2], PHILOX).tolist() == [0, 1, 2] and R.create_rng_state([1, 2, 3, 4], PHILOX).tolist() == [1, 2, 3]
    generator = R.Generator.from_key_counter(key=9, counter=[2**64 - 1, 5], alg=PHILOX)
    copy = R.Generator(generator)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(generator.key) == 9
        session.run(generator.skip(3))  # over the end of the first word
        assert session.run(generator.state).tolist() == [767, 6, 9] and session.run(copy.state).tolist() == [-1, 5, 9]
        for reset, want in (
            (generator.reset([1, 2, 3]), [1, 2, 3]),
            (generator.reset_from_seed([7, 8]), [0, 7, 8]),
            (generator.reset_from_key_counter(1, [2, 3]), [2, 3, 1]),
        ):
            session.run(reset)
            assert session.run(generator.state).tolist() == want
        seeds = session.run(generator.make_seeds(2))
        assert seeds.shape == (2, 2) and not seeds[1].any() and seeds[0, 0] != seeds[0, 1]


def test_generators_of_a_generator_and_of_the_graph():
    one = R.Generator.from_seed(1)
    parts = one.split(2)
    assert R.get_global_generator() is R.get_global_generator()
    drawn = [g.uniform_full_int([4]) for g in (*parts, R.get_global_generator())]
    with tf.Session() as session:
        session.run(one.state.initializer)
        session.run(tf.global_variables_initializer())
        assert len({v for d in session.run(drawn) for v in d.tolist()}) == 12
    R.set_global_generator(one)
    assert R.get_global_generator() is one


def test_what_nobody_can_tell_beforehand():
    drawn = [stateful_random_ops.non_deterministic_ints([2, 50], dtype) for dtype in INTEGERS]
    with tf.Session() as session:
        for dtype, numbers in zip(INTEGERS, drawn):
            first, second = session.run(numbers), session.run(numbers)
            assert first.dtype == dtype.as_numpy_dtype and first.shape == (2, 50) and not np.array_equal(first, second)
            assert len(set(first.ravel().tolist())) > 90


def test_the_older_operation_has_the_algorithm_in_its_state():
    older = tf.Variable([1, 5, 0, 9], dtype=tf.int64, use_resource=True)
    newer = R.Generator(state=[5, 0, 9], alg=PHILOX)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        pair = session.run([gen_ops.stateful_standard_normal(older.handle, [3], dtype=tf.float64), newer.normal([3], dtype=tf.float64)])
        np.testing.assert_array_equal(*pair)
        assert session.run(older).tolist() == [1, 5 + 3 * 256, 0, 9]


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda v: gen_ops.stateful_uniform(v([0, 0, 0]), 123, [2]), "Unsupported algorithm id: 123"),
        (lambda v: gen_ops.stateful_uniform(v([[0]]), 1, [2]), "one and only one dimension"),
        (lambda v: gen_ops.stateful_uniform(v([0, 0]), 1, [2]), "must be at least 3; got 2"),
        (lambda v: gen_ops.stateful_uniform(v([0, 0, 0], tf.int32), 1, [2]), "must be int64, not int32"),
        (lambda v: gen_ops.stateful_uniform(v([0, 0, 0]), 1, [-2]), "-2"),
        (lambda v: gen_ops.stateful_uniform_int(v([0, 0, 0]), 1, [2], 5, 5), "Need minval < maxval, got 5 >= 5"),
        (lambda v: gen_ops.stateful_uniform_full_int(v([0, 0, 0]), tf.placeholder_with_default(np.int64([1]), None), [2]), r"must have shape \[\]"),
        (lambda v: gen_ops.rng_skip(v([0, 0, 0]), 1, tf.placeholder_with_default(np.int64([1]), None)), r"must have shape \[\]"),
        (lambda v: gen_ops.stateful_standard_normal(v([0, 0, 0]), [2]), "must be at least 4; got 3"),
    ],
)
def test_refusals(make, text):
    variables = []

    def variable(value, dtype=tf.int64):
        variables.append(tf.Variable(value, dtype=dtype, use_resource=True))
        return variables[-1].handle

    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=text):
        made = make(variable)
        with tf.Session() as session:
            session.run(variables[0].initializer)
            session.run(made)


def test_arguments_are_checked_where_they_are_given():
    with pytest.raises(ValueError, match="Unsupported algorithm id: 9"):
        R.Generator.from_seed(1, alg=9)
    with pytest.raises(ValueError, match="Must specify maxval"):
        R.Generator.from_seed(1).uniform([2], dtype=tf.int32)
    with pytest.raises(ValueError, match="only have one dimension"):
        R.create_rng_state([[1]], PHILOX)
