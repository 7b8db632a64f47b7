# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.grid_rnn: cells along several dimensions at once (Kalchbrenner, Danihelka and Graves, 2015)."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Set

from millrace.contrib import layers
from millrace.framework import nest
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, matrix_ops, nn_ops
from millrace.ops.rnn_cell import BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell, RNNCell
from millrace.ops.variable_scope import get_variable, get_variable_scope, variable_scope


class GridRNNCell(RNNCell):
    """One cell for each dimension of a grid.

    The input is projected to be the last state of the dimensions input_dims. Each dimension sees what all but the last hold, and goes on from the
    output of the last one; first those that have no priority, then, with what these gave, the others. Dimensions that do not recur are layers of
    non_recurrent_fn. With `tied`, all share their weights. States are tuples of the dimensions that recur, outputs of output_dims; both may be
    concatenated instead.
    """

    def __init__(
        self,
        num_units: int,
        num_dims: int = 1,
        input_dims: Any = None,
        output_dims: Any = None,
        priority_dims: Any = None,
        non_recurrent_dims: Any = None,
        tied: bool = False,
        cell_fn: Optional[Callable[[int], Any]] = None,
        non_recurrent_fn: Optional[Callable[..., Any]] = None,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        super().__init__()
        if num_dims < 1:
            raise at_user_line(ValueError("dims must be >= 1: %s" % num_dims))

        def chosen(dims: Any) -> List[int]:
            made = sorted(set(dims if isinstance(dims, (list, tuple)) else [] if dims is None else [dims]))
            if any(not 0 <= d < num_dims for d in made):
                raise at_user_line(ValueError("Invalid dims: %s. Must be in [0, %d)" % (made, num_dims)))
            return made

        self._units, self._count, self._tied = num_units, num_dims, tied
        self._inputs, self._outputs, self._priority, layered = (chosen(d) for d in (input_dims, output_dims, priority_dims, non_recurrent_dims))
        self._recurrent = [i for i in range(num_dims) if i not in layered]
        self._layer = non_recurrent_fn or nn_ops.relu
        make = cell_fn or (lambda units: LSTMCell(units))
        self._cells = [make(num_units)] * num_dims if tied else [make(num_units) for _ in range(num_dims)]
        if not isinstance(self._cells[0], RNNCell):
            raise at_user_line(TypeError("cell_fn must return an RNNCell instance, saw: %s" % type(self._cells[0])))
        self._state_is_tuple, self._output_is_tuple = state_is_tuple, output_is_tuple

    @property
    def state_size(self) -> Any:
        """Those of the cells that recur, or their sum."""
        each = self._cells[0].state_size
        return (each,) * len(self._recurrent) if self._state_is_tuple else sum(nest.flatten(each)) * len(self._recurrent)

    @property
    def output_size(self) -> Any:
        """Those of the output's dimensions, or their sum."""
        each = self._cells[0].output_size
        return (each,) * len(self._outputs) if self._output_is_tuple else each * len(self._outputs)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """(output, new state)."""
        before = self._states(state)  # of each dimension what the cell keeps to itself, or None, and its output
        outputs: List[Any] = [None] * self._count
        states: List[Any] = [None] * self._count
        with variable_scope(scope or type(self).__name__):
            self._take_in(inputs, before)
            made: Set[str] = set()
            for dims in ([i for i in range(self._count) if i not in self._priority], self._priority):
                self._step(dims, before, outputs, states, made)
        output: Any = tuple(outputs[i] for i in self._outputs)
        new = tuple(states[i] for i in self._recurrent)
        if not self._output_is_tuple:
            output = _joined(output, inputs.dtype)
        return output, new if self._state_is_tuple else _joined(nest.flatten(new), inputs.dtype)

    def _states(self, state: Any) -> List[Any]:
        sizes = nest.flatten(self._cells[0].state_size)
        if not self._state_is_tuple:
            parts = iter(array_ops.split(state, sizes * len(self._recurrent), 1) if self._recurrent else [])
            state = [nest.pack_sequence_as(self._cells[0].state_size, [next(parts) for _ in sizes]) for _ in self._recurrent]
        if len(state) != len(self._recurrent):
            raise at_user_line(ValueError("Expected state as a tuple of %d element" % len(self._recurrent)))
        found: List[Any] = [[None, None] for _ in range(self._count)]
        for i, each in zip(self._recurrent, state):
            found[i] = list(each) if len(sizes) > 1 else [None, each]
        return found

    def _take_in(self, inputs: Any, before: List[Any]) -> None:
        if inputs is None or not self._inputs or not isinstance(inputs, tuple) and not inputs.get_shape().with_rank(2)[1].value:
            return
        if isinstance(inputs, tuple) and len(inputs) != len(self._inputs):
            raise at_user_line(ValueError("Expect inputs as a tuple of %d tensors" % len(self._inputs)))
        parts = inputs if isinstance(inputs, tuple) else array_ops.split(inputs, len(self._inputs), 1)
        kinds = "mc" if len(nest.flatten(self._cells[0].state_size)) > 1 else "m"
        for x, i in zip(parts, self._inputs):
            for kind in kinds:
                weights = get_variable("project_%s_%d" % (kind, i), [x.get_shape().with_rank(2)[1].value, self._units], x.dtype.base_dtype)
                before[i]["cm".index(kind)] = matrix_ops.matmul(x, weights)

    def _step(self, dims: List[int], before: List[Any], outputs: List[Any], states: List[Any], made: Set[str]) -> None:
        """The cells of some dimensions, by what the others have at this time."""
        now = [before[i][1] if outputs[i] is None else outputs[i] for i in range(self._count)]
        seen, last = array_ops.concat(now[:-1], 1) if self._count > 1 else now[0][:, :0], now[-1]
        for i in dims:
            kind = "recurrent" if i in self._recurrent else "non_recurrent"
            with variable_scope(kind if self._tied else "%s/cell_%d" % (kind, i)):
                if self._tied and kind in made:
                    get_variable_scope().reuse_variables()
                made.add(kind)
                if kind == "recurrent":
                    outputs[i], states[i] = self._cells[i](seen, last if before[i][0] is None else (before[i][0], last))
                else:
                    outputs[i] = layers.fully_connected(
                        array_ops.concat([seen, last], 1) if self._count > 1 else last,
                        self._units,
                        activation_fn=self._layer,
                        weights_initializer=get_variable_scope().initializer or layers.xavier_initializer(),
                        weights_regularizer=get_variable_scope().regularizer,
                    )


def _joined(tensors: Any, dtype: Any) -> Tensor:
    return array_ops.concat(list(tensors), 1) if tensors else array_ops.zeros([0, 0], dtype)


def _grid(label: str, dims: int, cell: Callable[..., Any], doc: str, **options: Any) -> Any:
    """The class of a grid whose first dimension has the inputs, the outputs and the priority; options are those of its cells, with their defaults."""

    class Grid(GridRNNCell):
        __doc__ = doc

        def __init__(self, num_units: int, *args: Any, **kwargs: Any) -> None:
            shared = {"tied": False, "non_recurrent_fn": None} if dims > 1 else {}
            given = {**shared, **options, "state_is_tuple": True, "output_is_tuple": True}
            if len(args) > len(given) or set(kwargs) - set(list(given)[len(args) :]):
                raise at_user_line(TypeError("%s takes num_units, %s, got %s and %s" % (label, ", ".join(given), args, kwargs)))
            given.update(zip(given, args))
            given.update(kwargs)
            of_cells = {name: given.pop(name) for name in options}
            layered = None if given.get("non_recurrent_fn") is None else 0
            super().__init__(num_units, dims, 0, 0, 0, layered, cell_fn=lambda units: cell(units, **of_cells), **given)

    Grid.__name__ = Grid.__qualname__ = label
    return Grid


_PEEP = {"use_peepholes": False, "forget_bias": 1.0}
Grid1BasicRNNCell = _grid("Grid1BasicRNNCell", 1, BasicRNNCell, "A BasicRNNCell along the depth.")
Grid2BasicRNNCell = _grid("Grid2BasicRNNCell", 2, BasicRNNCell, "BasicRNNCells along depth and time.")
Grid1BasicLSTMCell = _grid("Grid1BasicLSTMCell", 1, BasicLSTMCell, "A BasicLSTMCell along the depth.", forget_bias=1.0)
Grid2BasicLSTMCell = _grid("Grid2BasicLSTMCell", 2, BasicLSTMCell, "BasicLSTMCells along depth and time.", forget_bias=1.0)
Grid1LSTMCell = _grid("Grid1LSTMCell", 1, LSTMCell, "An LSTMCell along the depth.", **_PEEP)
Grid2LSTMCell = _grid("Grid2LSTMCell", 2, LSTMCell, "LSTMCells along depth and time.", **_PEEP)
Grid3LSTMCell = _grid("Grid3LSTMCell", 3, LSTMCell, "LSTMCells along three dimensions.", **_PEEP)
Grid2GRUCell = _grid("Grid2GRUCell", 2, GRUCell, "GRUCells along depth and time.")
