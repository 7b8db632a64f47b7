# SPDX-License-Identifier: Apache-2.0
"""The names of features and results that every model of a time series knows."""

from __future__ import annotations

from millrace.saved_model import signature_constants


class State:
    """How the state of a model is handed over."""

    STATE_TUPLE = "start_tuple"  # as one nested tuple
    STATE_PREFIX = "model_state"  # flat: model_state_00, model_state_01 and so on, which exported models take


class Times:
    """When something was observed, or is to be predicted: whole numbers that increase, [batch, window]."""

    TIMES = "times"


class Values:
    """What was observed: [batch, window, features]."""

    VALUES = "values"


class TrainEvalFeatures(Times, Values):
    """What models are trained and evaluated with."""


class PredictionFeatures(Times, State):
    """What predictions are made from."""


class FilteringFeatures(Times, Values, State):
    """What a state is brought up to date with."""


class PredictionResults(Times):
    """What predictions hold, beside what depends on the model."""


class FilteringResults(Times, State):
    """What evaluations hold, beside what depends on the model."""


class SavedModelLabels:
    """The signatures of an exported model."""

    PREDICT = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    FILTER = "filter"
    COLD_START_FILTER = "cold_start_filter"
