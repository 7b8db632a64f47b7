# SPDX-License-Identifier: Apache-2.0
"""How exported models of series are run: a past makes a state, more of it brings a state up to date, and predictions go on from a state."""

from __future__ import annotations

from typing import Any, Dict, Optional

from millrace.contrib.timeseries.continuing import canonicalize_numpy_data, canonicalize_times_or_steps_from_output
from millrace.contrib.timeseries.feature_keys import FilteringResults, SavedModelLabels, TrainEvalFeatures
from millrace.contrib.timeseries.head import state_to_dictionary

__all__ = ["cold_start_filter", "filter_continuation", "predict_continuation"]
_Results = Dict[str, Any]


def _run(label: str, signatures: Any, session: Any, features: Dict[str, Any], continue_from: Optional[_Results] = None) -> _Results:
    """What a signature of a loaded MetaGraphDef gives for features, from the state of results, and the features' times."""
    state: Dict[str, Any] = continue_from or {}
    if FilteringResults.STATE_TUPLE in state:  # of Estimator.evaluate
        state = state_to_dictionary(state[FilteringResults.STATE_TUPLE])
    elif state:  # of a signature, with the times that have been added
        state = {name: value for name, value in state.items() if name != FilteringResults.TIMES}
    signature = signatures.signature_def[label]
    tensors = {name: session.graph.as_graph_element(info.name) for name, info in signature.outputs.items()}
    feeds = {session.graph.as_graph_element(signature.inputs[name].name): value for name, value in {**state, **features}.items()}
    return {**session.run(tensors, feed_dict=feeds), FilteringResults.TIMES: features[TrainEvalFeatures.TIMES]}


def predict_continuation(
    continue_from: _Results, signatures: Any, session: Any, steps: Optional[int] = None, times: Any = None, exogenous_features: Any = None
) -> _Results:
    """Predictions of a loaded model, [batch, steps, ...] by name, and their times [batch, steps].

    They go on from continue_from, the results of Estimator.evaluate or of the functions here: for so many steps, or for times [n] or [batch, n]. `signatures`
    is the MetaGraphDef that tf.saved_model.loader.load gave, `session` what it was loaded into. Exogenous features are arrays [batch, steps, ...]. ValueError
    where not just one of steps and times is given, or times are not behind those of continue_from.
    """
    wanted = canonicalize_times_or_steps_from_output(times, steps, continue_from)
    return _run(SavedModelLabels.PREDICT, signatures, session, {TrainEvalFeatures.TIMES: wanted, **(exogenous_features or {})}, continue_from)


def cold_start_filter(signatures: Any, session: Any, features: Dict[str, Any]) -> _Results:
    """The state of a loaded model behind features, and their times; before them it knows nothing.

    Features are arrays by name: times as a number, [length] or [batch, length]; the others' shapes begin with that, values may have [features] behind it.
    """
    return _run(SavedModelLabels.COLD_START_FILTER, signatures, session, canonicalize_numpy_data(features, require_single_batch=False))


def filter_continuation(continue_from: _Results, signatures: Any, session: Any, features: Dict[str, Any]) -> _Results:
    """The state of a loaded model behind features, and their times, going on from the state of continue_from (see cold_start_filter)."""
    return _run(SavedModelLabels.FILTER, signatures, session, canonicalize_numpy_data(features, require_single_batch=False), continue_from)
