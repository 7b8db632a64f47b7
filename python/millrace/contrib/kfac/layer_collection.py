# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.kfac.layer_collection: which layers and losses a model has, as the optimizer is told."""

from __future__ import annotations

import collections
import contextlib
import functools
import math
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from millrace.contrib.kfac import fisher_blocks as fb
from millrace.contrib.kfac import loss_functions as lf
from millrace.contrib.kfac import utils
from millrace.framework import nest
from millrace.framework.errors import at_user_line
from millrace.framework.graph import colocate_with, get_default_graph
from millrace.ops import math_ops
from millrace.ops.variable_scope import AUTO_REUSE, get_variable_scope, variable_scope

APPROX_KRONECKER_NAME = "kron"
APPROX_DIAGONAL_NAME = "diagonal"
APPROX_FULL_NAME = "full"
APPROX_KRONECKER_INDEP_NAME = "kron_indep"
APPROX_KRONECKER_SERIES_1_NAME = "kron_series_1"
APPROX_KRONECKER_SERIES_2_NAME = "kron_series_2"
VARIABLE_SCOPE = "VARIABLE_SCOPE"  # reuse as the variable scope says

_BLOCKS: Dict[str, Dict[str, Any]] = {  # by the kind of layer, by approximation
    "generic": {APPROX_FULL_NAME: fb.FullFB, APPROX_DIAGONAL_NAME: fb.NaiveDiagonalFB},
    "fully_connected": {APPROX_KRONECKER_NAME: fb.FullyConnectedKFACBasicFB, APPROX_DIAGONAL_NAME: fb.FullyConnectedDiagonalFB},
    "conv2d": {APPROX_KRONECKER_NAME: fb.ConvKFCBasicFB, APPROX_DIAGONAL_NAME: fb.ConvDiagonalFB},
    "embedding": {APPROX_KRONECKER_NAME: fb.EmbeddingKFACFB},
    "fully_connected_multi": {
        APPROX_KRONECKER_INDEP_NAME: fb.FullyConnectedMultiIndepFB,
        APPROX_KRONECKER_SERIES_1_NAME: functools.partial(fb.FullyConnectedSeriesFB, option=1),
        APPROX_KRONECKER_SERIES_2_NAME: functools.partial(fb.FullyConnectedSeriesFB, option=2),
    },
    "conv2d_multi": {APPROX_KRONECKER_INDEP_NAME: fb.ConvKFCBasicMultiIndepFB},
    "embedding_multi": {APPROX_KRONECKER_INDEP_NAME: fb.EmbeddingKFACMultiIndepFB},
}
_default: Optional[LayerCollection] = None


def get_default_layer_collection() -> LayerCollection:
    """The collection that as_default() or set_default_layer_collection() chose."""
    if _default is None:
        raise at_user_line(ValueError("Attempted to retrieve default LayerCollection when none is set. Use LayerCollection.as_default()."))
    return _default


def set_default_layer_collection(layer_collection: Optional[LayerCollection]) -> None:
    """Chooses a collection; None for none any more."""
    global _default
    if _default is not None and layer_collection is not None:
        raise at_user_line(ValueError("Default LayerCollection is already set."))
    _default = layer_collection


def _key(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


class LayerParametersDict(collections.OrderedDict):  # type: ignore[type-arg]
    """What tensors, or tuples of them, stand for; a tensor is in one key only."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._tensors: Set[Any] = set()
        super().__init__(*args, **kwargs)

    def __setitem__(self, key: Any, value: Any) -> None:
        tensors = utils.ensure_sequence(key)
        known = self._tensors.intersection(tensors)
        if known:
            raise at_user_line(ValueError("Key(s) already present: %s" % (known,)))
        self._tensors.update(tensors)
        super().__setitem__(_key(key), value)

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(_key(key))
        self._tensors.difference_update(utils.ensure_sequence(key))

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(_key(key))

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(_key(key))


class LayerCollection:
    """The layers of a model with their parameters, inputs and outputs, and its losses. Each optimizer or estimator needs one of its own."""

    def __init__(self, graph: Any = None, name: str = "LayerCollection") -> None:
        self.fisher_blocks: Any = LayerParametersDict()
        self.fisher_factors: Any = collections.OrderedDict()
        self.loss_colocation_ops: Dict[Any, Any] = {}
        self._linked_parameters: Dict[Any, Any] = {}
        self._graph = graph or get_default_graph()
        self._loss_dict: Dict[str, List[Any]] = {}
        self._subgraph: Any = None
        self._uses: Dict[Any, Any] = collections.defaultdict(int)
        self._defaults = {kind: APPROX_KRONECKER_INDEP_NAME if kind.endswith("_multi") else APPROX_KRONECKER_NAME for kind in _BLOCKS}
        self._defaults["generic"] = APPROX_FULL_NAME
        with variable_scope(None, default_name=name) as scope:
            self._var_scope = scope.name

    @property
    def losses(self) -> List[Any]:
        """All losses."""
        return nest.flatten(self.towers_by_loss)

    @property
    def towers_by_loss(self) -> Tuple[Any, ...]:
        """For each loss its parts of a batch."""
        return tuple(map(tuple, self._loss_dict.values()))

    @property
    def registered_variables(self) -> Tuple[Any, ...]:
        """The parameters of all layers."""
        return tuple(variable for key in self.fisher_blocks for variable in utils.ensure_sequence(key))

    @property
    def linked_parameters(self) -> Dict[Any, Any]:
        """Parameters that belong together, with the approximation that is wanted for them or None."""
        return self._linked_parameters

    @property
    def graph(self) -> Any:
        return self._graph

    @property
    def subgraph(self) -> Any:
        """What the losses stand on."""
        return self._subgraph

    def _set_default(self, kind: str, value: str) -> None:
        if value not in _BLOCKS[kind]:
            raise at_user_line(ValueError("%s is not a valid approximation for %s layers: %s." % (value, kind.replace("_", " "), ", ".join(_BLOCKS[kind]))))
        self._defaults[kind] = value

    default_embedding_approximation = property(lambda self: self._defaults["embedding"])
    default_generic_approximation = property(lambda self: self._defaults["generic"])
    default_fully_connected_approximation = property(lambda self: self._defaults["fully_connected"])
    default_conv2d_approximation = property(lambda self: self._defaults["conv2d"])
    default_fully_connected_multi_approximation = property(lambda self: self._defaults["fully_connected_multi"])
    default_conv2d_multi_approximation = property(lambda self: self._defaults["conv2d_multi"])
    default_embedding_multi_approximation = property(lambda self: self._defaults["embedding_multi"])

    def set_default_embedding_approximation(self, value: str) -> None:
        """The approximation of embeddings for which none is named."""
        self._set_default("embedding", value)

    def set_default_generic_approximation(self, value: str) -> None:
        """The approximation of other parameters for which none is named."""
        self._set_default("generic", value)

    def set_default_fully_connected_approximation(self, value: str) -> None:
        """The approximation of dense layers for which none is named."""
        self._set_default("fully_connected", value)

    def set_default_conv2d_approximation(self, value: str) -> None:
        """The approximation of convolutions for which none is named."""
        self._set_default("conv2d", value)

    def set_default_fully_connected_multi_approximation(self, value: str) -> None:
        """The approximation of dense layers with several uses for which none is named."""
        self._set_default("fully_connected_multi", value)

    def register_block(self, layer_key: Any, fisher_block: Any, reuse: Any = VARIABLE_SCOPE) -> Any:
        """The block of some parameters: the one given, or with reuse the one that they have, which must be of the same class."""
        if reuse is VARIABLE_SCOPE:
            reuse = get_variable_scope().reuse
        known = layer_key in self.fisher_blocks
        if reuse is True or (reuse is AUTO_REUSE and known):
            there = self.fisher_blocks[layer_key]
            if type(there) is not type(fisher_block):
                raise at_user_line(
                    ValueError("Attempted to register FisherBlock of type %s when existing FisherBlock has type %s." % (type(fisher_block), type(there)))
                )
            return there
        if known:
            raise at_user_line(ValueError("FisherBlock for %s is already in LayerCollection." % (layer_key,)))
        for key, block in self.fisher_blocks.items():
            for variable in utils.ensure_sequence(layer_key):
                if variable in utils.ensure_sequence(key):
                    raise at_user_line(
                        ValueError(
                            "Attempted to register layer_key %s with block %s, but variable %s was already registered in key %s with block %s."
                            % (layer_key, fisher_block, variable, key, block)
                        )
                    )
        self.fisher_blocks[layer_key] = fisher_block
        return fisher_block

    def register_loss_function(self, loss: Any, colocation_op: Any, base_name: str, name: Any = None, reuse: Any = VARIABLE_SCOPE) -> None:
        """A loss, or with reuse another part of the batch of the loss of that name. What it computes lies where colocation_op does."""
        name = name or self._graph.unique_name(base_name)
        if reuse == VARIABLE_SCOPE:
            reuse = get_variable_scope().reuse
        if reuse and name not in self._loss_dict:
            raise at_user_line(KeyError("Unable to find loss function named %s. Register a new loss function with reuse=False." % name))
        if not reuse and name in self._loss_dict:
            raise at_user_line(KeyError("Loss function named %s already exists. Set reuse=True to append another tower." % name))
        self._loss_dict.setdefault(name, []).append(loss)
        self.loss_colocation_ops[loss] = colocation_op

    def _get_use_count_map(self) -> Dict[Any, Any]:
        return self._uses

    def _add_uses(self, params: Any, uses: Any) -> None:
        for variable in utils.ensure_sequence(params):
            self._uses[variable] += uses

    def check_registration(self, variables: Any) -> None:
        """ValueError where variables are not those of the registered layers, or are used more or less often than registered."""
        wrong = []
        for variable in variables:
            used, said = self.subgraph.variable_uses(variable), self._uses[variable]
            if not said:
                wrong.append("Variable %s not registered." % variable)
            elif said != used and not math.isinf(said):
                wrong.append("Variable %s registered with wrong number of uses (%s registrations vs %s uses)." % (variable, said, used))
        if len(self._uses) > len(variables):
            wrong.append("%d registered variables were not included in list." % (len(self._uses) - len(variables)))
        if wrong:
            raise at_user_line(ValueError("\n\t".join(["Found the following errors with variable registration:", *wrong])))

    def get_blocks(self) -> Any:
        """All blocks."""
        return self.fisher_blocks.values()

    def get_factors(self) -> Any:
        """All factors."""
        return self.fisher_factors.values()

    def define_linked_parameters(self, params: Any, approximation: Any = None) -> None:
        """Says that parameters will be registered together, and with which approximation."""
        wanted = frozenset(utils.ensure_sequence(params))
        for key, block in self.fisher_blocks.items():
            there = set(utils.ensure_sequence(key))
            if wanted & there and wanted != there:
                raise at_user_line(ValueError("Can`t link parameters %s, some were already registered in group %s with layer %s." % (set(wanted), key, block)))
        for other in self._linked_parameters:
            if wanted & other:
                raise at_user_line(ValueError("Can`t link parameters %s, some were already linked in group %s." % (set(wanted), set(other))))
        self._linked_parameters[wanted] = approximation

    def create_subgraph(self) -> None:
        """Finds what the losses stand on."""
        if not self.losses:
            raise at_user_line(ValueError("Must have at least one registered loss."))
        self._subgraph = utils.SubGraph(nest.flatten([loss.inputs for loss in self.losses]))

    def _evaluated(self, method: str) -> List[Any]:
        made = []
        for loss in self.losses:
            with colocate_with(self.loss_colocation_ops[loss]):
                made.append(getattr(loss, method)())
        return made

    def eval_losses(self) -> List[Any]:
        """All losses of their targets."""
        return self._evaluated("evaluate")

    def eval_losses_on_samples(self) -> List[Any]:
        """All losses of targets by chance."""
        return self._evaluated("evaluate_on_sample")

    def total_loss(self) -> Any:
        """The sum of the losses of their targets."""
        return math_ops.add_n(self.eval_losses())

    def total_sampled_loss(self) -> Any:
        """The sum of the losses of targets by chance."""
        return math_ops.add_n(self.eval_losses_on_samples())

    def _get_linked_approx(self, params: Any) -> Any:
        return self._linked_parameters.get(frozenset(utils.ensure_sequence(params)))

    def _block_type(self, kind: str, params: Any, approx: Any) -> Any:
        approx = approx or self._get_linked_approx(params) or self._defaults[kind]
        if approx not in _BLOCKS[kind]:
            raise at_user_line(ValueError("Bad value %s for approx: %s." % (approx, ", ".join(_BLOCKS[kind]))))
        return _BLOCKS[kind][approx], approx

    def _register(self, params: Any, block: Any, reuse: Any, uses: Any, *tower: Any) -> None:
        self.register_block(params, block, reuse=reuse).register_additional_tower(*tower)
        self._add_uses(params, uses)

    @staticmethod
    def _no_bias(params: Any) -> int:
        if isinstance(params, (list, tuple)):
            raise at_user_line(ValueError("Bias not supported."))
        return int(params.shape[0])

    @staticmethod
    def _uses_of(inputs: Any, outputs: Any) -> int:
        if not isinstance(inputs, (list, tuple)):
            return 1
        if isinstance(outputs, (list, tuple)) and len(inputs) != len(outputs):
            raise at_user_line(ValueError("There are %d inputs and %d outputs." % (len(inputs), len(outputs))))
        return len(inputs)

    def register_embedding(self, params: Any, inputs: Any, outputs: Any, approx: Any = None, reuse: Any = VARIABLE_SCOPE) -> None:
        """An embedding: its matrix, the numbers of the rows and what is made of these."""
        block, _ = self._block_type("embedding", params, approx)
        self._register(params, block(self, self._no_bias(params)), reuse, 1, inputs, outputs)

    def register_fully_connected(self, params: Any, inputs: Any, outputs: Any, approx: Any = None, reuse: Any = VARIABLE_SCOPE) -> None:
        """A dense layer: weights, or (weights, bias), its inputs and its outputs before the activation."""
        block, _ = self._block_type("fully_connected", params, approx)
        self._register(params, block(self, has_bias=isinstance(params, (list, tuple))), reuse, 1, inputs, outputs)

    def register_conv2d(
        self,
        params: Any,
        strides: Any,
        padding: Any,
        inputs: Any,
        outputs: Any,
        data_format: Any = None,
        dilations: Any = None,
        approx: Any = None,
        reuse: Any = VARIABLE_SCOPE,
    ) -> None:
        """A call of tf.nn.conv2d."""
        block, approx = self._block_type("conv2d", params, approx)
        if approx == APPROX_KRONECKER_NAME:
            rates = {"dilation_rate": dilations, "extract_patches_fn": "extract_image_patches"}
        else:
            rates = {"dilations": dilations}
        made = block(layer_collection=self, params=params, padding=padding, strides=strides, data_format=data_format, **rates)
        self._register(params, made, reuse, 1, inputs, outputs)

    def register_convolution(
        self,
        params: Any,
        inputs: Any,
        outputs: Any,
        padding: Any,
        strides: Any = None,
        dilation_rate: Any = None,
        data_format: Any = None,
        approx: Any = None,
        reuse: Any = VARIABLE_SCOPE,
    ) -> None:
        """A call of tf.nn.convolution."""
        if approx not in (None, APPROX_KRONECKER_NAME):
            raise at_user_line(ValueError("Bad value %s for approx: %s." % (approx, APPROX_KRONECKER_NAME)))
        block = fb.ConvKFCBasicFB(self, params, padding, strides=strides, dilation_rate=dilation_rate, data_format=data_format)
        self._register(params, block, reuse, 1, inputs, outputs)

    def register_depthwise_conv2d(
        self,
        params: Any,
        inputs: Any,
        outputs: Any,
        strides: Any,
        padding: Any,
        rate: Any = None,
        data_format: Any = None,
        approx: Any = None,
        reuse: Any = VARIABLE_SCOPE,
    ) -> None:
        """A call of tf.nn.depthwise_conv2d."""
        if approx not in (None, APPROX_DIAGONAL_NAME):
            raise at_user_line(ValueError("Bad value %s for approx: %s." % (approx, APPROX_DIAGONAL_NAME)))
        block = fb.DepthwiseConvDiagonalFB(self, params, strides, padding, rate=rate, data_format=data_format)
        self._register(params, block, reuse, 1, inputs, outputs)

    def register_separable_conv2d(
        self,
        depthwise_params: Any,
        pointwise_params: Any,
        inputs: Any,
        depthwise_outputs: Any,
        pointwise_outputs: Any,
        strides: Any,
        padding: Any,
        rate: Any = None,
        data_format: Any = None,
        approx: Any = None,
        reuse: Any = VARIABLE_SCOPE,
    ) -> None:
        """A call of tf.nn.separable_conv2d, as its two convolutions; approx is of the second."""
        self.register_depthwise_conv2d(depthwise_params, inputs, depthwise_outputs, strides, padding, rate, data_format, APPROX_DIAGONAL_NAME, reuse)
        self.register_conv2d(pointwise_params, [1, 1, 1, 1], "VALID", depthwise_outputs, pointwise_outputs, data_format, approx=approx, reuse=reuse)

    def register_generic(self, params: Any, batch_size: Any, approx: Any = None, reuse: Any = VARIABLE_SCOPE) -> None:
        """Parameters of anything else."""
        block, _ = self._block_type("generic", params, approx)
        self._register(params, block(self, params), reuse, float("inf"), batch_size)

    def register_fully_connected_multi(
        self, params: Any, inputs: Any, outputs: Any, num_uses: Optional[int] = None, approx: Any = None, reuse: Any = VARIABLE_SCOPE
    ) -> None:
        """A dense layer that is used several times: lists of inputs and outputs, or tensors with num_uses uses one behind the other."""
        block, _ = self._block_type("fully_connected_multi", params, approx)
        uses = self._uses_of(inputs, outputs)
        self._register(params, block(self, has_bias=isinstance(params, (list, tuple)), num_uses=num_uses), reuse, uses, inputs, outputs)

    def register_conv2d_multi(
        self,
        params: Any,
        strides: Any,
        padding: Any,
        inputs: Any,
        outputs: Any,
        num_uses: Optional[int] = None,
        data_format: Any = None,
        dilations: Any = None,
        approx: Any = None,
        reuse: Any = VARIABLE_SCOPE,
    ) -> None:
        """Several calls of tf.nn.conv2d with the same filter."""
        kind, _ = self._block_type("conv2d_multi", params, approx)
        block = kind(self, params, padding, strides, dilations, data_format, "extract_image_patches", num_uses)
        self._register(params, block, reuse, self._uses_of(inputs, outputs), inputs, outputs)

    def register_embedding_multi(
        self, params: Any, inputs: Any, outputs: Any, num_uses: Optional[int] = None, approx: Any = None, reuse: Any = VARIABLE_SCOPE
    ) -> None:
        """An embedding that is used several times."""
        block, _ = self._block_type("embedding_multi", params, approx)
        self._register(params, block(self, self._no_bias(params), num_uses=num_uses), reuse, self._uses_of(inputs, outputs), inputs, outputs)

    def register_categorical_predictive_distribution(
        self, logits: Any, seed: Any = None, targets: Any = None, name: Any = None, reuse: Any = VARIABLE_SCOPE
    ) -> None:
        """A loss of classes by their logits."""
        loss = lf.CategoricalLogitsNegativeLogProbLoss(logits, targets=targets, seed=seed)
        self.register_loss_function(loss, logits, "categorical_predictive_distribution", name=name, reuse=reuse)

    def register_normal_predictive_distribution(
        self, mean: Any, var: Any = 0.5, seed: Any = None, targets: Any = None, name: Any = None, reuse: Any = VARIABLE_SCOPE
    ) -> None:
        """A loss of squares."""
        loss = lf.NormalMeanNegativeLogProbLoss(mean, var, targets=targets, seed=seed)
        self.register_loss_function(loss, mean, "normal_predictive_distribution", name=name, reuse=reuse)

    def register_multi_bernoulli_predictive_distribution(
        self, logits: Any, seed: Any = None, targets: Any = None, name: Any = None, reuse: Any = VARIABLE_SCOPE
    ) -> None:
        """A loss of independent yes and no by their logits."""
        loss = lf.MultiBernoulliNegativeLogProbLoss(logits, targets=targets, seed=seed)
        self.register_loss_function(loss, logits, "multi_bernoulli_predictive_distribution", name=name, reuse=reuse)

    def make_or_get_factor(self, cls: Any, args: Any) -> Any:
        """The factor of a class and arguments, made when it is first asked for."""
        try:
            key = (cls, args)
            hash(key)
        except TypeError:
            raise at_user_line(TypeError("Unable to use (cls, args) = (%s, %s) as a key in LayerCollection.fisher_factors." % (cls, args))) from None
        if key not in self.fisher_factors:
            with variable_scope(self._var_scope):
                self.fisher_factors[key] = cls(*args)
        return self.fisher_factors[key]

    @contextlib.contextmanager
    def as_default(self) -> Iterator[None]:
        """Within it get_default_layer_collection() is this one."""
        set_default_layer_collection(self)
        try:
            yield
        finally:
            set_default_layer_collection(None)
