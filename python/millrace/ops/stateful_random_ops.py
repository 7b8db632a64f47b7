# SPDX-License-Identifier: Apache-2.0
"""tf.random.experimental: generators of random numbers whose state is a variable."""

from __future__ import annotations

from typing import Any, List, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor, shape_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, get_default_graph, name_scope
from millrace.ops import gen_ops
from millrace.ops.resource_variables import ResourceVariable
from millrace.train.tracking import AutoTrackable

STATE_TYPE = SEED_TYPE = ALGORITHM_TYPE = "int64"
RNG_ALG_PHILOX, RNG_ALG_THREEFRY = 1, 2
DEFAULT_ALGORITHM = RNG_ALG_PHILOX
PHILOX_STATE_SIZE, THREEFRY_STATE_SIZE = 3, 2
_WORD = 1 << 64


def non_deterministic_ints(shape: Any, dtype: Any = dtypes.int64) -> Tensor:
    """Whole numbers of which every bit is random, other ones in each run."""
    return gen_ops.non_deterministic_ints(shape_tensor(shape), dtype=dtype)


def _uint_to_int(n: Any) -> Any:
    """A word of 64 bits as int64 has it."""
    return n - _WORD if n >= _WORD // 2 else n


def _state_size(alg: Any) -> int:
    if alg not in (RNG_ALG_PHILOX, RNG_ALG_THREEFRY):
        raise at_user_line(ValueError("Unsupported algorithm id: %s" % alg))
    return PHILOX_STATE_SIZE if alg == RNG_ALG_PHILOX else THREEFRY_STATE_SIZE


def create_rng_state(seed: Any, algorithm: int) -> np.ndarray:
    """The state that a seed stands for, an integer of any size or a list of some. Zeros come before a short one.

    Raises: ValueError for an unknown algorithm, or a seed of more than one dimension.
    """
    size = _state_size(algorithm)
    words = np.asarray([seed >> 64 * i & _WORD - 1 for i in range(size)] if isinstance(seed, int) else seed, object)
    if words.ndim != 1:
        raise at_user_line(ValueError("seed should only have one dimension; got shape: %s" % (words.shape,)))
    state = [_uint_to_int(int(w)) for w in words[:size]]
    return np.asarray([0] * (size - len(state)) + state, STATE_TYPE)


def _state_tensor(value: Any) -> Tensor:
    return convert_to_tensor([_uint_to_int(n) for n in value] if isinstance(value, list) else value, STATE_TYPE)


def _joined(key: Any, counter: Any, alg: int) -> Tensor:
    counter, key = _state_tensor(counter), _state_tensor(key)
    counter.shape.assert_is_compatible_with([_state_size(alg) - 1])
    key.shape.assert_is_compatible_with([])
    return gen_ops.concat_v2([counter, gen_ops.reshape(key, [1])], 0)


class Generator(AutoTrackable):
    """Random numbers of a stream. Its position is a variable, which goes on in each run; the numbers are those that TensorFlow makes.

    Millrace has the algorithm Philox (RNG_ALG_PHILOX) alone: another is refused when numbers are made.
    """

    def __init__(self, copy_from: Optional["Generator"] = None, state: Any = None, alg: Any = None) -> None:
        if copy_from is not None:
            if state is not None or alg is not None:
                raise at_user_line(AssertionError("a copy of a generator takes no state and no alg"))
            first, alg = copy_from.state.initialized_value(), copy_from.algorithm
        elif state is None or alg is None:
            raise at_user_line(AssertionError("a generator needs a state and an alg, or a generator to copy"))
        else:
            first = _state_tensor(state)
            first.shape.assert_is_compatible_with([_state_size(alg)])
        self._state_var: Any = ResourceVariable(first, dtype=STATE_TYPE, trainable=False)
        self._alg_var = alg

    @classmethod
    def from_state(cls, state: Any, alg: int) -> "Generator":
        """A generator with a state: counter, then key."""
        return cls(alg=alg, state=state)

    @classmethod
    def from_seed(cls, seed: Any, alg: Optional[int] = None) -> "Generator":
        """A generator with the state that a seed stands for, an integer of any size or a list of some."""
        alg = DEFAULT_ALGORITHM if alg is None else alg
        return cls(state=create_rng_state(seed, alg), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Optional[int] = None) -> "Generator":
        """A generator with a state that nobody can tell beforehand."""
        alg = DEFAULT_ALGORITHM if alg is None else alg
        return cls(state=non_deterministic_ints([_state_size(alg)], SEED_TYPE), alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: int) -> "Generator":
        """A generator with a key and a counter of two elements."""
        return cls(state=_joined(key, counter, alg), alg=alg)

    def reset(self, state: Any) -> Operation:
        """An operation that sets the state."""
        state = _state_tensor(state)
        state.shape.assert_is_compatible_with([_state_size(self.algorithm)])
        return self._state_var.assign(state).op

    def reset_from_seed(self, seed: Any) -> Operation:
        """An operation that sets the state to what a seed stands for."""
        return self.reset(create_rng_state(seed, self.algorithm))

    def reset_from_key_counter(self, key: Any, counter: Any) -> Operation:
        """An operation that sets key and counter."""
        return self.reset(_joined(key, counter, self.algorithm))

    def skip(self, delta: Any) -> Operation:
        """An operation that moves the stream on, as making delta numbers does."""
        return gen_ops.rng_skip(self.state.handle, self.algorithm, delta)

    @property
    def state(self) -> Any:
        """The variable."""
        return self._state_var

    @property
    def algorithm(self) -> Any:
        """The number of the algorithm."""
        return self._alg_var

    @property
    def key(self) -> Tensor:
        """The last element of the state."""
        _state_size(self.algorithm)
        return self._state_var[-1]

    def _draw(self, op: Any, shape: Any, **options: Any) -> Tensor:
        return op(self.state.handle, self.algorithm, shape_tensor(shape), **options)

    def _standard_normal(self, shape: Any, dtype: Any) -> Tensor:
        return self._draw(gen_ops.stateful_standard_normal_v2, shape, dtype=dtype)

    def _truncated_normal(self, shape: Any, dtype: Any) -> Tensor:
        return self._draw(gen_ops.stateful_truncated_normal, shape, dtype=dtype)

    def _uniform(self, shape: Any, dtype: Any) -> Tensor:
        return self._draw(gen_ops.stateful_uniform, shape, dtype=dtype)

    def normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: Optional[str] = None) -> Tensor:
        """Normally distributed about a mean."""
        with name_scope(name, "stateful_normal", [shape, mean, stddev]) as scope:
            return self._scaled(self._standard_normal, shape, mean, stddev, dtype, scope)

    def truncated_normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: Optional[str] = None) -> Tensor:
        """Normally distributed about a mean, and less than twice the deviation from it: others are drawn again."""
        with name_scope(name, "truncated_normal", [shape, mean, stddev]) as scope:
            return self._scaled(self._truncated_normal, shape, mean, stddev, dtype, scope)

    def _scaled(self, draw: Any, shape: Any, mean: Any, stddev: Any, dtype: Any, scope: str) -> Tensor:
        middle, spread = convert_to_tensor(mean, dtype, "mean"), convert_to_tensor(stddev, dtype, "stddev")
        return gen_ops.add(gen_ops.mul(draw(shape, dtype), spread), middle, name=scope)

    def uniform(self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, name: Optional[str] = None) -> Tensor:
        """Evenly distributed in [minval, maxval); maxval is 1 unless given, and must be given for integers."""
        dtype = dtypes.as_dtype(dtype)
        if maxval is None:
            if dtype.is_integer:
                raise at_user_line(ValueError("Must specify maxval for integer dtype %r" % dtype))
            maxval = 1
        with name_scope(name, "stateful_uniform", [shape, minval, maxval]) as scope:
            low, high = convert_to_tensor(minval, dtype, "min"), convert_to_tensor(maxval, dtype, "max")
            if dtype.is_integer:
                return self._draw(gen_ops.stateful_uniform_int, shape, minval=low, maxval=high, name=scope)
            return gen_ops.add(gen_ops.mul(self._uniform(shape, dtype), gen_ops.sub(high, low)), low, name=scope)

    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.uint64, name: Optional[str] = None) -> Tensor:
        """Whole numbers of which every bit is random."""
        with name_scope(name, "stateful_uniform_full_int", [shape]) as scope:
            return self._draw(gen_ops.stateful_uniform_full_int, shape, dtype=dtype, name=scope)

    def binomial(self, shape: Any, counts: Any, probs: Any, dtype: Any = dtypes.int32, name: Optional[str] = None) -> Tensor:
        """How many of `counts` trials succeed, each with a chance of `probs`; the shape ends with that of both."""
        with name_scope(name, "binomial", [shape, counts, probs]) as scope:
            return self._draw(gen_ops.stateful_random_binomial, shape, counts=counts, probs=convert_to_tensor(probs), dtype=dtype, name=scope)

    def _make_int64_keys(self, shape: Any = ()) -> Tensor:
        _state_size(self.algorithm)
        return self.uniform_full_int(shape, dtypes.int64)

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds of stateless ops: a column [2] for each of `count`."""
        keys = self._make_int64_keys([count])
        return gen_ops.pack([keys, gen_ops.zeros_like(keys)])

    def split(self, count: int = 1) -> List["Generator"]:
        """Generators with keys that this one makes. Their variables take them when they are initialized, which needs this one's to be so."""
        keys = self._make_int64_keys([count])
        return [Generator(state=gen_ops.pad(keys[i : i + 1], [[_state_size(self.algorithm) - 1, 0]]), alg=self.algorithm) for i in range(count)]


def get_global_generator() -> Generator:
    """The generator of the default graph, made if there is none, from a state that nobody can tell beforehand."""
    state = get_default_graph().__dict__
    if "_global_generator" not in state:
        state["_global_generator"] = Generator.from_non_deterministic_state()
    return state["_global_generator"]


def set_global_generator(generator: Generator) -> None:
    """Sets the generator of the default graph."""
    get_default_graph().__dict__["_global_generator"] = generator
