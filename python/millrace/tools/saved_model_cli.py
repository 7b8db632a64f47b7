# SPDX-License-Identifier: Apache-2.0
"""saved_model_cli: shows what is in a SavedModel, and runs its signatures on arrays. `python -m millrace.tools.saved_model_cli show --dir FOLDER --all`"""

from __future__ import annotations

import argparse
import ast
import os
import re
import warnings
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from millrace import debug
from millrace.framework.graph import Graph
from millrace.framework.session import Session
from millrace.protos import definitions
from millrace.saved_model import loader, signature_def_utils
from millrace.saved_model.utils import get_meta_graph_def, get_saved_model_tag_sets, read_saved_model


# ---- showing ----


def _show_tag_sets(saved_model_dir: str) -> None:
    print("The given SavedModel contains the following tag-sets:")
    for tags in sorted(get_saved_model_tag_sets(saved_model_dir)):
        print(", ".join(sorted(tags)))


def get_signature_def_map(saved_model_dir: str, tag_set: str) -> Any:
    """The signatures of a MetaGraphDef by name."""
    return get_meta_graph_def(saved_model_dir, tag_set).signature_def


def _show_signature_def_map_keys(saved_model_dir: str, tag_set: str) -> None:
    print("The given SavedModel MetaGraphDef contains SignatureDefs with the following keys:")
    for key in sorted(get_signature_def_map(saved_model_dir, tag_set)):
        print('SignatureDef key: "%s"' % key)


def _print_tensor_info(info: Any, indent: int = 0) -> None:
    shape, space = info.tensor_shape, "  " * indent + "    "
    print(space + "dtype: " + definitions.DataType.Name(info.dtype))
    print(space + "shape: " + ("unknown_rank" if shape.unknown_rank else "(%s)" % ", ".join(str(dim.size) for dim in shape.dim)))
    print(space + "name: " + info.name)


def _show_inputs_outputs(saved_model_dir: str, tag_set: str, signature_def_key: str, indent: int = 0) -> None:
    signature = signature_def_utils.get_signature_def_by_key(get_meta_graph_def(saved_model_dir, tag_set), signature_def_key)
    space = "  " * indent
    for what, infos in (("input", signature.inputs), ("output", signature.outputs)):
        print(space + "The given SavedModel SignatureDef contains the following %s(s):" % what)
        for key in sorted(infos):
            print(space + "  %ss['%s'] tensor_info:" % (what, key))
            _print_tensor_info(infos[key], indent + 1)
    print(space + "Method name is: %s" % signature.method_name)


def _show_all(saved_model_dir: str) -> None:
    for tags in sorted(get_saved_model_tag_sets(saved_model_dir)):
        print("\nMetaGraphDef with tag-set: '%s' contains the following SignatureDefs:" % ", ".join(tags))
        for key in sorted(get_signature_def_map(saved_model_dir, ",".join(tags))):
            print("\nsignature_def['%s']:" % key)
            _show_inputs_outputs(saved_model_dir, ",".join(tags), key, indent=1)


# ---- what a graph might do to the machine ----

_OP_BLACKLIST = {"WriteFile", "ReadFile", "PrintV2"}


def scan_meta_graph_def(meta_graph_def: Any) -> None:
    """Prints which operations of a graph and its functions read or write files, or print."""
    graph = meta_graph_def.graph_def
    used = {node.op for nodes in (graph.node, *(f.node_def for f in graph.library.function)) for node in nodes}
    tags = list(meta_graph_def.meta_info_def.tags)
    found = sorted(_OP_BLACKLIST & used)
    if found:
        print("MetaGraph with tag set %s contains the following blacklisted ops: {%s}" % (tags, ", ".join(map(repr, found))))
    else:
        print("MetaGraph with tag set %s does not contain blacklisted ops." % tags)


# ---- inputs ----


def preprocess_inputs_arg_string(inputs_str: str) -> Dict[str, Tuple[str, Optional[str]]]:
    """{input: (file, name of the array in it or None)} of "input=file[name];input=file"."""
    found = {}
    for entry in filter(bool, inputs_str.split(";")):
        match = re.match(r"([^=]+)=([^\[\]]+)(?:\[([^\[\]]+)\])?$", entry)
        if not match:
            raise RuntimeError(
                '--inputs "%s" format is incorrect. Please follow "<input_key>=<filename>", or "<input_key>=<filename>[<variable_name>]"' % entry
            )
        found[match.group(1)] = (match.group(2), match.group(3))
    return found


def _assignments(text: str, option: str) -> Dict[str, str]:
    """{input: the text of its value} of "input=value;input=value"."""
    found = {}
    for entry in filter(bool, text.split(";")):
        key, separator, expression = entry.partition("=")
        if not separator:
            raise RuntimeError('--%s "%s" format is incorrect. Please follow "<input_key>=<python expression>"' % (option, entry))
        found[key] = expression
    return found


def _literal(option: str, expression: str) -> Any:
    try:
        return ast.literal_eval(expression)
    except (SyntaxError, ValueError):
        raise RuntimeError('--%s: "%s" is not a valid python literal.' % (option, expression)) from None


def preprocess_input_exprs_arg_string(input_exprs_str: str, safe: bool = False) -> Dict[str, Any]:
    """{input: value} of "input=expression;input=expression", in which np is NumPy; where it is to be safe, of literals alone."""
    found = _assignments(input_exprs_str, "input_exprs")
    return {key: _literal("input_exprs", text) if safe else eval(text, {"np": np}) for key, text in found.items()}


def preprocess_input_examples_arg_string(input_examples_str: str) -> Dict[str, List[bytes]]:
    """{input: tf.train.Examples as bytes} of "input=[{feature: [values], ...}, ...];...", of literals."""
    found = {}
    for key, text in _assignments(input_examples_str, "input_examples").items():
        listed = _literal("input_examples", text)
        if not isinstance(listed, list):
            raise ValueError('tf.Example input must be a list of dictionaries, but "%s" is %s' % (listed, type(listed)))
        found[key] = [_example(features) for features in listed]
    return found


def _example(features: Dict[str, Any]) -> bytes:
    made = definitions.Example()
    for name, values in features.items():
        if not isinstance(values, list):
            raise ValueError('feature value must be a list, but %s: "%s" is %s' % (name, values, type(values)))
        kind = next(
            (field for t, field in ((float, "float_list"), (int, "int64_list"), (str, "bytes_list"), (bytes, "bytes_list")) if isinstance(values[0], t)), None
        )
        if kind is None:
            raise ValueError("Type %s for value %s is not supported for tf.train.Feature." % (type(values[0]), values[0]))
        getattr(made.features.feature[name], kind).value.extend([v.encode() if isinstance(v, str) else v for v in values])
    return made.SerializeToString()  # type: ignore[no-any-return]


def _array(path: str, name: Optional[str]) -> Any:
    """An array of a file that NumPy or pickle wrote. Pickles run code: they are the user's own."""
    data = np.load(path, allow_pickle=True)
    if isinstance(data, np.ndarray):
        if name:
            warnings.warn('Input file %s contains a single ndarray. Name key "%s" ignored.' % (path, name), stacklevel=3)
        return data
    if name:
        if name not in data:
            raise RuntimeError('Input file %s does not contain variable with name "%s".' % (path, name))
        return data[name]
    if not isinstance(data, np.lib.npyio.NpzFile):
        return data
    if len(data.files) != 1:
        raise RuntimeError("Input file %s contains more than one ndarrays. Please specify the name of ndarray to use." % path)
    return data[data.files[0]]


def load_inputs_from_input_arg_string(inputs_str: str, input_exprs_str: str, input_examples_str: str = "") -> Dict[str, Any]:
    """The inputs by name: arrays of files, values of expressions, in which np is NumPy, and Examples."""
    feeds: Dict[str, Any] = {key: _array(path, name) for key, (path, name) in preprocess_inputs_arg_string(inputs_str).items()}
    later = {"input_exprs": preprocess_input_exprs_arg_string(input_exprs_str), "input_examples": preprocess_input_examples_arg_string(input_examples_str)}
    for option, values in later.items():
        for key in feeds.keys() & values.keys():
            warnings.warn("input_key %s has been specified more than once. Value in --%s will be used." % (key, option), stacklevel=2)
        feeds.update(values)
    return feeds


# ---- running ----


def run_saved_model_with_feed_dict(
    saved_model_dir: str,
    tag_set: str,
    signature_def_key: str,
    input_tensor_key_feed_dict: Dict[str, Any],
    outdir: Optional[str],
    overwrite_flag: bool,
    tf_debug: bool = False,
) -> None:
    """Prints what a signature answers, and writes an array for each output into a folder."""
    signature = signature_def_utils.get_signature_def_by_key(get_meta_graph_def(saved_model_dir, tag_set), signature_def_key)
    for key in input_tensor_key_feed_dict:
        if key not in signature.inputs:
            raise ValueError(
                '"%s" is not a valid input key. Please choose from %s, or use --show option.' % (key, ", ".join('"%s"' % k for k in sorted(signature.inputs)))
            )
    keys = sorted(signature.outputs)
    with Session(graph=Graph()) as session:
        loader.load(session, tag_set.split(","), saved_model_dir)
        runner = debug.LocalCLIDebugWrapperSession(session) if tf_debug else session
        made = runner.run(
            [signature.outputs[key].name for key in keys], feed_dict={signature.inputs[key].name: value for key, value in input_tensor_key_feed_dict.items()}
        )
    for key, value in zip(keys, made):
        print("Result for output key %s:\n%s" % (key, value))
        if outdir:
            _write(os.path.join(outdir, key + ".npy"), key, value, overwrite_flag)


def _write(path: str, key: str, value: Any, overwrite: bool) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not overwrite and os.path.exists(path):
        raise RuntimeError('Output file %s already exists. Add "--overwrite" to overwrite the existing output files.' % path)
    np.save(path, value)
    print("Output %s is saved to %s" % (key, path))


# ---- the command line ----


def show(args: Any) -> None:
    """The command show."""
    if args.all:
        _show_all(args.dir)
    elif args.tag_set is None:
        _show_tag_sets(args.dir)
    elif args.signature_def is None:
        _show_signature_def_map_keys(args.dir, args.tag_set)
    else:
        _show_inputs_outputs(args.dir, args.tag_set, args.signature_def)


def run(args: Any) -> None:
    """The command run."""
    if not args.inputs and not args.input_exprs and not args.input_examples:
        raise AttributeError("At least one of --inputs, --input_exprs or --input_examples must be required")
    feeds = load_inputs_from_input_arg_string(args.inputs, args.input_exprs, args.input_examples)
    run_saved_model_with_feed_dict(args.dir, args.tag_set, args.signature_def, feeds, args.outdir, args.overwrite, tf_debug=args.tf_debug)


def scan(args: Any) -> None:
    """The command scan."""
    graphs = [get_meta_graph_def(args.dir, args.tag_set)] if args.tag_set else read_saved_model(args.dir).meta_graphs
    for graph in graphs:
        scan_meta_graph_def(graph)


def create_parser() -> argparse.ArgumentParser:
    """What reads the command line."""
    parser = argparse.ArgumentParser(description="saved_model_cli: Command-line interface for SavedModel")
    parser.add_argument("-v", "--version", action="version", version="0.1.0")
    commands = parser.add_subparsers(title="commands", description="valid commands")
    shows = commands.add_parser("show", help="tags, signatures, inputs and outputs")
    shows.add_argument("--dir", required=True, help="directory containing the SavedModel to inspect")
    shows.add_argument("--all", action="store_true", help="all information in the SavedModel")
    shows.add_argument("--tag_set", help="tag-set of the graph to show, separated by ','")
    shows.add_argument("--signature_def", metavar="SIGNATURE_DEF_KEY", help="key of the SignatureDef to show")
    shows.set_defaults(func=show)
    runs = commands.add_parser("run", help="a signature on arrays")
    runs.add_argument("--dir", required=True, help="directory containing the SavedModel to execute")
    runs.add_argument("--tag_set", required=True, help="tag-set of the graph to load, separated by ','")
    runs.add_argument("--signature_def", required=True, metavar="SIGNATURE_DEF_KEY", help="key of the SignatureDef to run")
    runs.add_argument(
        "--inputs", default="", help="'<input_key>=<filename>' or '<input_key>=<filename>[<variable_name>]', separated by ';', of .npy, .npz or pickle"
    )
    runs.add_argument("--input_exprs", default="", help="'<input_key>=<python expression>', separated by ';', in which np is NumPy; they replace --inputs")
    runs.add_argument("--input_examples", default="", help="'<input_key>=[{\"<feature>\":[<value>, ...], ...}, ...]', separated by ';': tf.train.Examples")
    runs.add_argument("--outdir", help="where the outputs are saved")
    runs.add_argument("--overwrite", action="store_true", help="existing output files are replaced")
    runs.add_argument("--tf_debug", action="store_true", help="run in the debugger, which is not provided")
    runs.set_defaults(func=run)
    scans = commands.add_parser("scan", help="operations that read or write files, or print")
    scans.add_argument("--dir", required=True, help="directory containing the SavedModel to scan")
    scans.add_argument("--tag_set", help="tag-set of the graph to scan, separated by ','; all graphs without it")
    scans.set_defaults(func=scan)
    return parser


def main() -> None:
    """The command line."""
    parser = create_parser()
    args = parser.parse_args()
    if not hasattr(args, "func"):
        parser.error("too few arguments")
    args.func(args)


if __name__ == "__main__":
    main()
