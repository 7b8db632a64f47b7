# SPDX-License-Identifier: Apache-2.0
"""Copies of operations, in which handlers decide what becomes of each part."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from millrace.contrib.graph_editor import reroute, select, util
from millrace.contrib.graph_editor.subgraph import SubGraphView, make_view
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Operation, Tensor


class _Progress:
    """What handlers see of a transformation; names with a line behind them are those of the graph that is built."""

    def __init__(self, sgv: SubGraphView, dst_graph: Graph, dst_scope: str, src_scope: str) -> None:
        self.sgv, self.ops, self.sgv_inputs_set = sgv, frozenset(sgv.ops), frozenset(sgv.inputs)
        self.graph, self.scope, self.graph_, self.scope_ = sgv.graph, src_scope, dst_graph, dst_scope
        self.transformed_ops: Dict[Operation, Operation] = {}
        self.transformed_ts: Dict[Tensor, Tensor] = {}
        self.new_inputs: List[Tensor] = []  # of the copy that is made now
        self.collections = {key: self.graph.get_collection(key) for key in self.graph.get_all_collection_keys()}
        self.tmp_cyclic_ts: List[Tuple[Tensor, Tensor, Operation]] = []  # (what is not there yet, what stands for it, who reads it)

    def new_name(self, name: str) -> str:
        """A name in the scope of the copies."""
        if not name.startswith(self.scope):
            raise at_user_line(ValueError("%s does not belong to source scope: %s." % (name, self.scope)))
        return self.scope_ + name[len(self.scope) :]


# ---- handlers ----


def replace_t_with_placeholder_handler(info: Any, t: Tensor) -> Tensor:
    """A placeholder for a tensor."""
    with info.graph_.as_default():
        return util.make_placeholder_from_tensor(t, scope=info.scope_)


def keep_t_if_possible_handler(info: Any, t: Tensor) -> Tensor:
    """The tensor itself in its own graph, else a placeholder for it."""
    return t if info.graph is info.graph_ else replace_t_with_placeholder_handler(info, t)


def assign_renamed_collections_handler(info: Any, elem: Any, elem_: Any) -> None:
    """Puts a copy into the collections of what it is a copy of; those that not all graphs have are named in the scope of the copies."""
    known = util.get_predefined_collection_names()
    for name, collection in info.collections.items():
        if any(member is elem for member in collection):
            info.graph_.add_to_collection(name if name in known else info.new_name(name), elem_)


def transform_op_if_inside_handler(info: Any, op: Operation, keep_if_possible: bool = True) -> Optional[Operation]:
    """The copy of an operation; of one that is not copied itself in its own graph, else None."""
    if op in info.ops:
        return info.transformed_ops[op]
    return op if keep_if_possible and info.graph is info.graph_ else None


def copy_op_handler(
    info: Any, op: Operation, new_inputs: Optional[Sequence[Tensor]] = None, copy_shape: bool = False, nodedef_fn: Optional[Callable[[Any], Any]] = None
) -> Tuple[Operation, List[Tensor]]:
    """A copy of an operation that reads new_inputs and waits for nothing, and its outputs. nodedef_fn may change its NodeDef. Handlers of 1.2 do not know
    new_inputs: without them it reads those that the transformer has found."""
    new_inputs = info.new_inputs if new_inputs is None else new_inputs
    if isinstance(new_inputs, bool):
        raise at_user_line(TypeError("the `new_inputs` argument must be an iterable."))
    node = op.node_def
    node.name = info.graph_.unique_name(info.new_name(op.name))
    node = node if nodedef_fn is None else nodedef_fn(node)
    attributes = {key: value for key, value in node.attr.items() if key not in ("_class", "_output_shapes")}
    with info.graph_.as_default(), info.graph_.control_dependencies(None), info.graph_.device(None), info.graph_.device(node.device):
        made = info.graph_.create_op(node.op, list(new_inputs), name=node.name + "/", attrs=attributes)
    for t, t_ in zip(op.outputs, made.outputs):
        if copy_shape:
            t_.set_shape(t.get_shape())
    return made, made.outputs


# ---- the transformation ----


class TransformerInfo:
    """Which copy is whose."""

    def __init__(self, info: Any) -> None:
        self._graph, self._scope, self._graph_, self._scope_ = info.graph, info.scope, info.graph_, info.scope_
        self._transformed_ops, self._transformed_ts = info.transformed_ops, info.transformed_ts

    def _copies_of(self, top: Any) -> Dict[Any, Any]:
        if not isinstance(top, (Operation, Tensor)):
            raise at_user_line(TypeError("Expected a tf.Tensor or a tf.Operation, got a %s" % type(top)))
        return self._transformed_ops if isinstance(top, Operation) else self._transformed_ts

    def transformed(self, original: Any, missing_fn: Optional[Callable[[Any], Any]] = None) -> Any:
        """The copies of operations and tensors, in a like structure; None, or missing_fn of it, for what has none."""

        def one(top: Any) -> Any:
            copies = self._copies_of(top)
            return copies[top] if top in copies else None if missing_fn is None else missing_fn(top)

        return util.transform_tree(original, one)

    def original(self, transformed: Any, missing_fn: Optional[Callable[[Any], Any]] = None) -> Any:
        """What operations and tensors are copies of."""

        def one(top: Any) -> Any:
            found = [a for a, b in self._copies_of(top).items() if b is top]
            return found[0] if found else None if missing_fn is None else missing_fn(top)

        return util.transform_tree(transformed, one)

    def __str__(self) -> str:
        within = "Within graph[%d]%s" % (id(self._graph), "" if self._scope_ else " IN-PLACE")
        lines = [within if self._graph is self._graph_ else "graph[%d] => graph[%d]" % (id(self._graph), id(self._graph_))]
        lines += ["Relative to source scope: %s" % self._scope] if self._scope else []
        lines += ["Scope destination: %s" % self._scope_] if self._scope_ else []
        made = ["%s => %s" % (a.name, b.name) for a, b in self._transformed_ops.items()]
        return "\n".join(["Transform result info:", *("  " + line for line in lines), "Operations mapping:", *("  " + line for line in made), ""])


def _takes_two(handler: Callable[..., Any]) -> bool:
    """Whether it is a handler of 1.2, of the progress and an operation."""
    taken = inspect.signature(handler).parameters.values()
    return len(taken) == 2 and all(p.kind is p.POSITIONAL_OR_KEYWORD for p in taken)


class Transformer:
    """Copies subgraphs. Its handlers may be replaced: of operations, of what they wait for, of collections, of inputs of the view, of inputs
    that the view does not list, and of the operations whose gradients they are."""

    def __init__(self) -> None:
        self.transform_op_handler: Callable[..., Any] = copy_op_handler
        self.transform_control_input_handler: Callable[..., Any] = transform_op_if_inside_handler
        self.assign_collections_handler: Callable[..., Any] = assign_renamed_collections_handler
        self.transform_external_input_handler: Callable[..., Any] = replace_t_with_placeholder_handler
        self.transform_external_hidden_input_handler: Callable[..., Any] = keep_t_if_possible_handler
        self.transform_original_op_handler: Callable[..., Any] = transform_op_if_inside_handler

    def __call__(self, sgv: Any, dst_graph: Graph, dst_scope: str, src_scope: str = "", reuse_dst_scope: bool = False) -> Tuple[SubGraphView, TransformerInfo]:
        """The copy of a subgraph in a graph and scope, and which copy is whose; names are taken relative to src_scope."""
        view = make_view(sgv)
        if not isinstance(dst_graph, Graph):
            raise at_user_line(TypeError("Expected a tf.Graph, got: %s" % type(dst_graph)))
        if view.graph is None:
            raise at_user_line(ValueError("there is nothing to copy"))
        scope = util.scope_finalize(dst_scope)
        if scope and not reuse_dst_scope:
            scope = util.scope_finalize(dst_graph.unique_name(scope[:-1]))
        info = _Progress(view, dst_graph, scope, util.scope_finalize(src_scope))
        self._copy_ops(info)
        for t, stand_in, reader in info.tmp_cyclic_ts:
            copy_ = info.transformed_ops[reader]
            copy_._update_input([*copy_.inputs].index(stand_in), info.transformed_ts[t])
        self._connect(info)
        return _like(view, info), TransformerInfo(info)

    def _copy_ops(self, info: _Progress) -> None:
        for op in sorted(info.sgv.ops, key=lambda op: op._id):
            info.new_inputs = [self._transformed_t(info, t, op) for t in op.inputs]
            made, outputs = self.transform_op_handler(info, op, *([] if _takes_two(self.transform_op_handler) else [info.new_inputs]))
            if made is op:
                raise at_user_line(ValueError("In-place transformation not allowed."))
            info.transformed_ops[op] = made
            self.assign_collections_handler(info, op, made)
            for t, t_ in zip(op.outputs, outputs):
                info.transformed_ts[t] = t_
                self.assign_collections_handler(info, t, t_)

    def _connect(self, info: _Progress) -> None:
        for op in info.sgv.ops:
            made = info.transformed_ops[op]
            if op._original_op is not None:
                original = self.transform_original_op_handler(info, op._original_op)
                if original is not None:
                    made._original_op = original
            waits = [self.transform_control_input_handler(info, o) for o in op.control_inputs]
            reroute.add_control_inputs(made, [o for o in waits if o is not None])

    def _transformed_t(self, info: _Progress, t: Tensor, reader: Operation) -> Tensor:
        """What a copy reads instead of a tensor."""
        if t in info.transformed_ts:
            return info.transformed_ts[t]
        if t in info.sgv_inputs_set:
            return self.transform_external_input_handler(info, t)
        if t.op not in info.ops:
            return self.transform_external_hidden_input_handler(info, t)
        if reader.type in ("Merge", "RefMerge"):  # the way back of a loop, which is not there yet: what enters the loop stands for it
            stand_in = self._transformed_t(info, reader.inputs[0], reader)
        else:
            with info.graph_.as_default():
                stand_in = util.make_placeholder_from_tensor(t, scope=info.scope_, prefix="geph_tmp")
        info.tmp_cyclic_ts.append((t, stand_in, reader))
        return stand_in


def _like(view: SubGraphView, info: _Progress) -> SubGraphView:
    """A view of the copies, with the inputs and outputs in the order of a view of the originals."""
    made = SubGraphView(list(info.transformed_ops.values()))
    inputs, outputs = list(made.inputs), list(made.outputs)
    entering = [info.transformed_ts[t] for t in view.inputs if t in info.transformed_ts and info.transformed_ts[t] in inputs]
    leaving = [info.transformed_ts[t] for t in view.outputs if t in info.transformed_ts and info.transformed_ts[t] in outputs]
    return made.remap(entering, leaving)


def copy(
    sgv: Any, dst_graph: Optional[Graph] = None, dst_scope: str = "", src_scope: str = "", reuse_dst_scope: bool = False
) -> Tuple[SubGraphView, TransformerInfo]:
    """Copies of operations, which read placeholders for what enters them."""
    view = make_view(sgv)
    return Transformer()(view, view.graph if dst_graph is None else dst_graph, dst_scope, src_scope, reuse_dst_scope)


def copy_with_input_replacements(
    sgv: Any, replacement_ts: Dict[Tensor, Tensor], dst_graph: Optional[Graph] = None, dst_scope: str = "", src_scope: str = "", reuse_dst_scope: bool = False
) -> Tuple[SubGraphView, TransformerInfo]:
    """Copies of operations that read replacements of some inputs; of others they read these themselves, in another graph placeholders."""
    view = make_view(sgv)
    copier = Transformer()
    copier.transform_external_input_handler = lambda info, t: replacement_ts[t] if t in replacement_ts else keep_t_if_possible_handler(info, t)
    return copier(view, view.graph if dst_graph is None else dst_graph, dst_scope, src_scope, reuse_dst_scope)


def _with_whole_loops(ops: List[Operation], control_ios: util.ControlOutputs) -> List[Operation]:
    """Operations, with all of the loops that they are in."""
    contexts = {op._get_control_flow_context() for op in ops}
    loops = [c for c in contexts if c is not None and c.IsWhileContext()]
    missing = [select.get_walks_intersection_ops([t.op for t in c.loop_enters], [t.op for t in c.loop_exits], control_ios=control_ios) for c in loops]
    return util.concatenate_unique(list(ops), [o for found in missing for o in found])


def graph_replace(target_ts: Any, replacement_ts: Dict[Tensor, Tensor], dst_scope: str = "", src_scope: str = "", reuse_dst_scope: bool = False) -> Any:
    """Copies of tensors, in a like structure, in which some others are replaced: of all operations between these and those. A tensor that
    does not depend on them is answered itself."""
    targets = util.flatten_tree(target_ts)
    graph = util.get_unique_graph(targets, check_types=Tensor)
    assert graph is not None
    control_ios = util.ControlOutputs(graph)
    between = select.get_walks_intersection_ops(list(replacement_ts), targets, control_ios=control_ios)
    if not between:
        raise at_user_line(ValueError("Targets and replacements are not connected!"))
    _, info = copy_with_input_replacements(_with_whole_loops(between, control_ios), replacement_ts, None, dst_scope, src_scope, reuse_dst_scope)
    return info.transformed(target_ts, lambda t: t)
