# SPDX-License-Identifier: Apache-2.0
"""Training, evaluation and prediction with what gives batches by itself: generators, Sequences, data sets, tensors."""

from __future__ import annotations

import itertools
import random
from typing import Any, Callable, Iterator, List, Optional


from millrace import tf_logging
from millrace.data import cardinality
from millrace.framework.errors import OutOfRangeError, at_user_line
from millrace.keras import backend as K
from millrace.keras.engine.composites import is_composite, joined
from millrace.keras.engine.training_data import SymbolicBatches
from millrace.layers.nodes import listed, one_or_all


def is_stream(x: Any) -> bool:
    """Whether it gives batches by itself: a data set, an iterator, a generator, a Sequence."""
    return (
        hasattr(x, "make_one_shot_iterator")
        or hasattr(x, "__next__")
        or hasattr(x, "get_next")
        or (hasattr(x, "__getitem__") and hasattr(x, "__len__") and hasattr(x, "on_epoch_end"))
    )


def is_data_set(x: Any) -> bool:
    """Whether it is a tf.data.Dataset."""
    return hasattr(x, "make_one_shot_iterator")


def print_what_is_trained(count: Any, validated: Any, unit: str) -> None:
    """Prints how much there is to train on, and to validate on."""
    print("Train on %s %s" % (count, unit) + (", validate on %s %s" % (validated, unit) if validated else ""))


class StreamLoops:
    """fit_generator, evaluate_generator and predict_generator."""

    def _stream(self: Any, source: Any, shuffle: bool = False) -> Callable[..., Iterator[Any]]:
        """A function of a number of batches, and for a warning (which argument said it, of how many in all), that gives them, one after the other, going on
        where it stopped.

        Those of a Sequence come in a new order each time that it was gone through, if `shuffle` says so.
        """
        if hasattr(source, "make_one_shot_iterator") or hasattr(source, "get_next"):
            return self._tensors_stream(source)
        if hasattr(source, "__getitem__"):
            left: List[int] = []

            def sequence(count: Optional[int], of: Any = None) -> Iterator[Any]:
                del of  # it does not end
                for _ in range(len(source) if count is None else count):
                    if not left:
                        left.extend(reversed(range(len(source))))
                        if not left:
                            raise at_user_line(ValueError("the Sequence has no batches, but %d are wanted" % (count or 0)))
                        if shuffle:
                            random.shuffle(left)
                    yield source[left.pop()]
                    if not left:
                        source.on_epoch_end()

            return sequence
        it = iter(source)

        def generated(count: Optional[int], of: Any = None) -> Iterator[Any]:
            del of  # its end is an error
            taken = 0
            while count is None or taken < count:
                try:
                    item = next(it)
                except StopIteration:
                    if count is not None:
                        raise at_user_line(ValueError("The generator ended after %d of %d batches" % (taken, count))) from None
                    return
                taken += 1
                yield item

        return generated

    def _tensors_stream(self: Any, source: Any) -> Callable[..., Iterator[Any]]:
        known = self.__dict__.setdefault("_iterators", {})
        if id(source) not in known:
            made = source.make_initializable_iterator() if hasattr(source, "make_initializable_iterator") else source
            known[id(source)] = (source, made, made.get_next())
        _, iterator, following = known[id(source)]
        own = iterator is not source

        def run(count: Optional[int], of: Any = ("steps", 0)) -> Iterator[Any]:
            of = of if of[1] else (of[0], count or 0)
            session, taken = K.get_session(), 0
            if own and count is None:
                session.run(iterator.initializer)
            while count is None or taken < count:
                try:
                    item = session.run(following)
                except OutOfRangeError:
                    if count is not None:
                        tf_logging.warning(
                            "Your dataset ran out of data; interrupting training. Make sure that your dataset can generate at least `%s * epochs` "
                            "batches (in this case, %d batches). You may need to use the repeat() function when building your dataset." % of
                        )
                        self.stop_training = True
                    return
                taken += 1
                yield item

        if own:
            K.get_session().run(iterator.initializer)
        return run

    def _taken_apart(self: Any, item: Any) -> Any:
        if (is_composite(item) or not isinstance(item, tuple)) and not self.loss:  # what it loses comes from layers alone
            return item, None, None
        if isinstance(item, tuple) and len(item) in (1, 2, 3) and not is_composite(item):
            return (*item, None, None)[:3]
        raise at_user_line(
            ValueError(
                "Output of generator should be a tuple of 1 or 2 or 3 elements: (input,) or (input, target) or (input, target, sample_weights). Received %s"
                % str(item)[:200]
            )
        )

    def _steps_of(self: Any, source: Any, steps: Optional[int], what: str) -> Optional[int]:
        """How many batches are taken: `steps`, or as many as a data set tells that it has; None where it does not tell. ValueError where it has no end, and
        of what is no data set where nobody says how many."""
        if steps is None and isinstance(source, SymbolicBatches):
            return 1
        if steps is not None or not is_data_set(source):
            if steps is None and hasattr(source, "__getitem__"):
                return len(source)
            if steps is None and hasattr(source, "__next__"):
                raise at_user_line(ValueError("Please specify the number of steps via the `%s` argument." % what))
            return steps
        known = self.__dict__.setdefault("_cardinalities", {})
        if id(source) not in known:
            known[id(source)] = source, int(K.get_session().run(cardinality.count_of(source._variant.op)))
        count = known[id(source)][1]
        if count == cardinality.INFINITE:
            raise at_user_line(ValueError("When passing an infinitely repeating dataset, you must specify the `%s` argument." % what))
        return count if count >= 0 else None

    def fit_generator(
        self: Any,
        generator: Any,
        steps_per_epoch: Optional[int] = None,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Any = None,
        validation_data: Any = None,
        validation_steps: Optional[int] = None,
        validation_freq: Any = 1,
        class_weight: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        shuffle: bool = True,
        initial_epoch: int = 0,
        **legacy: Any,
    ) -> Any:
        """Trains on what a generator, a Sequence or a data set gives; batches are taken one by one."""
        del workers  # batches come one by one
        del use_multiprocessing  # threads, as docs/compatibility.md says
        del max_queue_size  # batches are made as they are asked for
        if isinstance(validation_freq, dict):  # the eighth one by place: class weights until 1.13
            validation_freq, class_weight = 1, validation_freq
        epochs = legacy.pop("nb_epoch", epochs)
        unknown = set(legacy) - {"max_q_size", "pickle_safe", "nb_val_samples", "samples_per_epoch", "nb_worker"}
        if unknown:
            raise at_user_line(TypeError("Unrecognized keyword arguments: %s" % sorted(unknown)))
        steps = self._steps_of(generator, steps_per_epoch, "steps_per_epoch")
        stream = self._stream(generator, shuffle)
        validate: Any = None
        if validation_data is not None:
            if not is_stream(validation_data) and (not isinstance(validation_data, (tuple, list)) or len(validation_data) not in (2, 3)):
                raise at_user_line(
                    ValueError("validation_data should be a tuple `(val_x, val_y, val_sample_weight)` or `(val_x, val_y)`. Found: %s" % (validation_data,))
                )
            if hasattr(validation_data, "__next__") and not hasattr(validation_data, "get_next") and not validation_steps:
                raise at_user_line(ValueError("Please specify the `validation_steps` argument."))
            validate = self._validation(validation_data, 32 if is_data_set(generator) or hasattr(generator, "get_next") else None, validation_steps)
        if verbose and (is_data_set(generator) or hasattr(generator, "get_next")):
            held = self._steps_of(validation_data, validation_steps, "validation_steps") if is_data_set(validation_data) else validation_steps
            print_what_is_trained(steps, held, "steps" if is_data_set(generator) else "samples")
        seen: List[Any] = []  # taken out of the stream, and not trained on yet
        told = None if steps_per_epoch is None and is_data_set(generator) else steps  # without a number of steps a data set begins anew

        def batches() -> Iterator[Any]:
            first = [seen.pop()] if seen else []
            for item in itertools.chain(first, stream(None if told is None else told - len(first), ("steps_per_epoch", (told or 0) * epochs))):
                x, y, weights = self._taken_apart(item)
                yield self._standardize_user_data(x, y, weights, class_weight, of_data_set=is_data_set(generator))

        if not hasattr(self, "_measures"):
            example = generator[0] if hasattr(generator, "__getitem__") else next(iter(stream(1)))
            if told is not None and not hasattr(generator, "__getitem__"):
                seen.append(example)
            self._build_for(self._taken_apart(example)[0])
        equal = is_data_set(generator) or hasattr(generator, "get_next")
        return self._loop(batches, epochs, verbose, callbacks, validate, initial_epoch, None, steps, None, validation_freq, equal)

    def evaluate_generator(
        self: Any,
        generator: Any,
        steps: Optional[int] = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        verbose: int = 0,
        **legacy: Any,
    ) -> Any:
        """The loss and metrics of what a generator gives: their means over batches, each of which counts the same."""
        del workers  # batches come one by one
        del use_multiprocessing  # threads, as docs/compatibility.md says
        del max_queue_size  # batches are made as they are asked for
        del legacy  # names that such arguments had before
        callbacks = None if isinstance(callbacks, int) else callbacks  # the third one by place: max_queue_size until 1.13
        return one_or_all(self._watched_by(callbacks, "test", lambda: self._evaluate_stream(generator, steps, "steps", verbose)))

    def _evaluate_stream(self: Any, generator: Any, steps: Optional[int], what: str, verbose: int = 0) -> List[float]:
        count = self._steps_of(generator, steps, what)
        items = self._stream(generator)(None if steps is None and is_data_set(generator) else count)
        first = list(itertools.islice(items, 1))
        if first:
            self._build_for(self._taken_apart(first[0])[0])

        def sized() -> Iterator[Any]:
            for item in itertools.chain(first, items):
                x, y, weights = self._standardize_user_data(*self._taken_apart(item), of_data_set=is_data_set(generator))
                yield (x, y, weights), 1

        means: List[Any] = self._measured(sized(), verbose, steps=count)
        return means

    def predict_generator(
        self: Any,
        generator: Any,
        steps: Optional[int] = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        verbose: int = 0,
        **legacy: Any,
    ) -> Any:
        """The outputs for what a generator gives; of tuples the first part is taken."""
        del workers  # batches come one by one
        del use_multiprocessing  # threads, as docs/compatibility.md says
        del max_queue_size  # batches are made as they are asked for
        del legacy  # names that such arguments had before
        callbacks = None if isinstance(callbacks, int) else callbacks  # the third one by place: max_queue_size until 1.13
        count = self._steps_of(generator, steps, "steps")
        items = self._stream(generator)(None if steps is None and is_data_set(generator) else count)

        def run() -> List[Any]:
            bar = self._progress("steps", self._parameters_of(None, count, "predict"), verbose) if verbose else None
            inputs = ((self._taken_apart(item)[0] if isinstance(item, tuple) and not is_composite(item) else item, 1) for item in items)
            made = [outputs for outputs, _ in self._each("predict", inputs, lambda x: listed(self.predict_on_batch(x)), bar)]
            if bar is not None:
                bar.on_epoch_end(0, {})
            return made

        made = self._watched_by(callbacks, "predict", run)
        return one_or_all([joined([m[k] for m in made]) for k in range(len(made[0]))])
