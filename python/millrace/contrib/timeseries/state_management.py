# SPDX-License-Identifier: Apache-2.0
"""Where the state that a window of a series begins in comes from."""

from __future__ import annotations

from typing import Any, Dict

from millrace.contrib.timeseries.feature_keys import FilteringFeatures, TrainEvalFeatures
from millrace.contrib.timeseries.model import ModelOutputs, TimeSeriesModel
from millrace.contrib.timeseries.state_tables import TupleOfTensorsLookup, replicate_state
from millrace.estimator.spec import ModeKeys
from millrace.framework import dtypes, nest
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies
from millrace.ops import array_ops, gen_ops, math_ops


class PassthroughStateManager:
    """Each window begins in the model's start state."""

    def __init__(self) -> None:
        self._input_statistics: Any = None
        self._graph_initialized = False

    def initialize_graph(self, model: TimeSeriesModel, input_statistics: Any = None) -> None:
        """Makes what it needs in the default graph."""
        del model  # whose state it does not keep
        self._graph_initialized, self._input_statistics = True, input_statistics

    def define_loss(self, model: TimeSeriesModel, features: Dict[str, Any], mode: str) -> ModelOutputs:
        """What the model makes of times [batch, window] and values [batch, window, features]. ValueError where features hold a state."""
        if FilteringFeatures.STATE_TUPLE in features:
            raise at_user_line(ValueError("Overriding start state is not supported for this model."))
        return model.define_loss(features, mode)


class _OverridableStateManager(PassthroughStateManager):
    """Where features hold a state the windows begin there, otherwise in what the manager knows."""

    def _define_loss_with_saved_state(self, model: Any, features: Dict[str, Any], mode: str) -> ModelOutputs:
        raise NotImplementedError

    def define_loss(self, model: Any, features: Dict[str, Any], mode: str) -> ModelOutputs:
        """What the model makes of windows. ValueError where a model that trains is given a state."""
        if FilteringFeatures.STATE_TUPLE not in features:
            return self._define_loss_with_saved_state(model, features, mode)
        if mode == ModeKeys.TRAIN:
            raise at_user_line(
                ValueError("Overriding saved state for training is not supported (but a value for feature %s was specified)." % FilteringFeatures.STATE_TUPLE)
            )
        windows = dict(features)
        return model.get_batch_loss(features=windows, mode=mode, state=windows.pop(FilteringFeatures.STATE_TUPLE))


class FilteringOnlyStateManager(_OverridableStateManager):
    """For models that train on windows of one size, as ARModel does, and look at a state only where one is given."""

    def _define_loss_with_saved_state(self, model: Any, features: Dict[str, Any], mode: str) -> ModelOutputs:
        return model.define_loss(features, mode)


class ChainingStateManager(_OverridableStateManager):
    """For models that go over a series step by step: a batch holds chunks of one series, each of which begins where a chunk before it ended when it was last
    looked at. That is less than a pass over the whole series, but much faster.

    States are kept by the number of the chunk of state_saving_interval times that they lie in; longer intervals need less memory, and leave gaps over which
    the model has to find its way. checkpoint_state says whether checkpoints hold them.
    """

    def __init__(self, state_saving_interval: int = 20, checkpoint_state: bool = False) -> None:
        super().__init__()
        self._checkpoint_state, self._interval = checkpoint_state, state_saving_interval
        self._start_state: Any = None
        self._cached_states: Any = None

    def initialize_graph(self, model: TimeSeriesModel, input_statistics: Any = None) -> None:
        """Makes tables of states in the default graph."""
        super().initialize_graph(model, input_statistics)
        self._start_state = model.get_start_state()
        self._cached_states = TupleOfTensorsLookup(
            dtypes.int64, self._start_state, empty_key=-1, deleted_key=-2, name="cached_states", checkpoint=self._checkpoint_state
        )

    def _define_loss_with_saved_state(self, model: Any, features: Dict[str, Any], mode: str) -> ModelOutputs:
        if not self._graph_initialized:
            raise at_user_line(ValueError("ChainingStateManager requires initialize_graph() to be called before use."))
        times = features[TrainEvalFeatures.TIMES]
        loss, states, predictions = model.per_step_batch_loss(features=features, mode=mode, state=self._states_at(times[:, 0]))
        with control_dependencies([self._cached_states.insert(self._chunks_behind(times), states)]):
            loss = array_ops.identity(loss)
        predictions["observed"] = features[TrainEvalFeatures.VALUES]
        last = nest.map_structure(lambda part: part[-1:, -1], states)  # of the last chunk, as a batch of one
        return ModelOutputs(loss, last, predictions, times)

    def _chunk(self, times: Any) -> Any:
        return times // self._interval

    def _states_at(self, times: Any) -> Any:
        """What is kept of a vector of times. The first chunk begins in the start state itself, so that gradients reach it."""
        chunks = self._chunk(times)
        kept = self._cached_states.lookup(math_ops.cast(chunks, dtypes.int64))
        first = self._chunk(0 if self._input_statistics is None else self._input_statistics.start_time)
        is_first = gen_ops.equal(chunks, math_ops.cast(first, chunks.dtype))
        start = replicate_state(self._start_state, array_ops.shape(times)[0])
        return nest.map_structure(lambda begun, known: array_ops.where(is_first, begun, known), start, kept)

    def _chunks_behind(self, times: Any) -> Any:
        """For the state behind each step the chunk of the step after it, and at least the next one: that is where a window would look for it."""
        following = array_ops.concat([times[:, 1:], times[:, -1:] + 1], 1)
        return math_ops.maximum(self._chunk(following), self._chunk(times) + 1)
