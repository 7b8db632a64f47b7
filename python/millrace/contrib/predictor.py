# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.predictor: a model that answers dicts of arrays with dicts of arrays."""

from __future__ import annotations

from typing import Any, Dict, Optional

from millrace.contrib.learn import export_utils
from millrace.contrib.learn.estimators import BaseEstimator as LearnEstimator
from millrace.estimator.estimator import Estimator
from millrace.estimator.spec import ModeKeys
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph
from millrace.framework.session import Session
from millrace.saved_model import loader, signature_constants, tag_constants
from millrace.train.checkpoint_management import latest_checkpoint
from millrace.train.global_step import get_or_create_global_step
from millrace.train.monitored_session import ChiefSessionCreator, MonitoredSession


class Predictor:
    """Calls run the model: predictor({"x": array}) gives {"y": array}. Its session is open until it is closed or the object goes."""

    def __init__(self, session: Any, feed_tensors: Dict[str, Any], fetch_tensors: Dict[str, Any]) -> None:
        self._session, self._feed_tensors, self._fetch_tensors = session, dict(feed_tensors), dict(fetch_tensors)

    graph = property(lambda self: self._session.graph, doc="The graph of the model.")
    session = property(lambda self: self._session, doc="The session that it runs in.")
    feed_tensors = property(lambda self: self._feed_tensors, doc="The tensors that are fed, by name.")
    fetch_tensors = property(lambda self: self._fetch_tensors, doc="The tensors that are fetched, by name.")

    def __repr__(self) -> str:
        return "Predictor with feed tensors %s and fetch_tensors %s" % (self._feed_tensors, self._fetch_tensors)

    def __call__(self, input_dict: Dict[str, Any]) -> Dict[str, Any]:
        unknown = sorted(set(input_dict) - set(self._feed_tensors))
        if unknown:
            raise at_user_line(ValueError("Got unexpected keys in input_dict: %s\nexpected: %s" % (unknown, sorted(self._feed_tensors))))
        answer: Dict[str, Any] = self._session.run(self._fetch_tensors, {self._feed_tensors[key]: value for key, value in input_dict.items()})
        return answer


def _by_name(graph: Any, infos: Any) -> Dict[str, Any]:
    return {key: graph.get_tensor_by_name(getattr(info, "name", info)) for key, info in infos.items()}


class SavedModelPredictor(Predictor):
    """The model of a SavedModel with some tags ("serve"), by one of its signatures, by a signature, or by names of tensors."""

    def __init__(
        self,
        export_dir: str,
        signature_def_key: Optional[str] = None,
        signature_def: Any = None,
        input_names: Optional[Dict[str, str]] = None,
        output_names: Optional[Dict[str, str]] = None,
        tags: Optional[str] = None,
        graph: Any = None,
        config: Any = None,
    ) -> None:
        given = [
            key
            for key, value in (("signature_def_key", signature_def_key), ("signature_def", signature_def), ("input_names", input_names))
            if value is not None
        ]
        if len(given) > 1:
            raise at_user_line(ValueError("You may not specify both %s and %s." % (given[0], given[1])))
        if (input_names is None) != (output_names is None):
            raise at_user_line(ValueError("input_names and output_names must both be specified or both be unspecified."))
        session = Session(graph=graph or Graph(), config=config)
        with session.graph.as_default():
            meta = loader.load(session, (tags or tag_constants.SERVING).split(","), export_dir)
        if input_names is not None:
            super().__init__(session, _by_name(session.graph, input_names), _by_name(session.graph, output_names))
            return
        key = signature_def_key or signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        if signature_def is None and key not in meta.signature_def:
            raise at_user_line(ValueError('Got signature_def_key "%s". Available signatures are %s.' % (key, sorted(meta.signature_def))))
        chosen = signature_def if signature_def is not None else meta.signature_def[key]
        super().__init__(session, _by_name(session.graph, chosen.inputs), _by_name(session.graph, chosen.outputs))


def _started(graph: Any, checkpoint: Optional[str], config: Any) -> MonitoredSession:
    """A session of the graph with the variables of a checkpoint, or their first values where there is none, and with its tables."""
    with graph.as_default():
        return MonitoredSession(ChiefSessionCreator(config=config, checkpoint_filename_with_path=checkpoint))


class CoreEstimatorPredictor(Predictor):
    """The model of an Estimator's newest checkpoint, or before its first training; output_key names one of its export_outputs, the only one
    or the default one where it is not given."""

    def __init__(self, estimator: Any, serving_input_receiver_fn: Any, output_key: Optional[str] = None, graph: Any = None, config: Any = None) -> None:
        graph = graph or Graph()
        with graph.as_default():
            get_or_create_global_step()
            receiver = serving_input_receiver_fn()
            spec = estimator._call_model_fn(receiver.features, None, ModeKeys.PREDICT, estimator.config)
            outputs = spec.export_outputs or {}
            if output_key is None and len(outputs) == 1:
                output_key = next(iter(outputs))
            key = output_key or signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
            if key not in outputs:
                raise at_user_line(ValueError("output_key must be one of %s, got %r" % (sorted(outputs), output_key)))
            signature = outputs[key].as_signature_def(receiver.receiver_tensors)
        session = _started(graph, estimator.latest_checkpoint(), config)
        super().__init__(session, receiver.receiver_tensors, _by_name(graph, signature.outputs))


class ContribEstimatorPredictor(Predictor):
    """The model of an Estimator of tf.contrib.learn; where it has several alternatives of inputs or outputs, keys name those that are meant."""

    def __init__(
        self,
        estimator: Any,
        prediction_input_fn: Any,
        input_alternative_key: Optional[str] = None,
        output_alternative_key: Optional[str] = None,
        graph: Any = None,
        config: Any = None,
    ) -> None:
        graph = graph or Graph()
        with graph.as_default():
            get_or_create_global_step()
            given = prediction_input_fn()
            made = estimator._get_predict_ops(given.features)
            inputs, _ = export_utils.get_input_alternatives(given)
            outputs, output_key = export_utils.get_output_alternatives(made, output_alternative_key)
        session = _started(graph, latest_checkpoint(estimator.model_dir), config)
        super().__init__(session, inputs[input_alternative_key or export_utils.DEFAULT_INPUT_ALTERNATIVE_KEY], outputs[output_key][1])


def from_saved_model(
    export_dir: str,
    signature_def_key: Optional[str] = None,
    signature_def: Any = None,
    input_names: Optional[Dict[str, str]] = None,
    output_names: Optional[Dict[str, str]] = None,
    tags: Optional[str] = None,
    graph: Any = None,
    config: Any = None,
) -> Predictor:
    """A function for the model in a folder: from a dict of arrays, by the names of its signature's inputs, to a dict of its outputs."""
    return SavedModelPredictor(export_dir, signature_def_key, signature_def, input_names, output_names, tags, graph, config)


def from_estimator(estimator: Any, serving_input_receiver_fn: Any, output_key: Optional[str] = None, graph: Any = None, config: Any = None) -> Predictor:
    """Such a function for the newest checkpoint of a tf.estimator.Estimator, with the inputs of `serving_input_receiver_fn`."""
    if isinstance(estimator, LearnEstimator):
        raise at_user_line(TypeError("Expected estimator to be of type tf.estimator.Estimator, but got type %s: use from_contrib_estimator" % type(estimator)))
    return CoreEstimatorPredictor(estimator, serving_input_receiver_fn, output_key, graph, config)


def from_contrib_estimator(
    estimator: Any,
    prediction_input_fn: Any,
    input_alternative_key: Optional[str] = None,
    output_alternative_key: Optional[str] = None,
    graph: Any = None,
    config: Any = None,
) -> Predictor:
    """Such a function for the newest checkpoint of a tf.contrib.learn.Estimator, with the inputs of `prediction_input_fn`."""
    if isinstance(estimator, Estimator):
        raise at_user_line(TypeError("Expected estimator to be of type tf.contrib.learn.Estimator, but got type %s: use from_estimator" % type(estimator)))
    return ContribEstimatorPredictor(estimator, prediction_input_fn, input_alternative_key, output_alternative_key, graph, config)
