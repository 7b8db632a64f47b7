// SPDX-License-Identifier: Apache-2.0
#include "client/saver_nodes.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "op/device_name.h"

namespace millrace {
namespace {

constexpr char kRestoreDevice[] = "/device:CPU:0";  // files are read by hosts

bool IsHandle(const Node& n) { return n.op_name() == "VarHandleOp"; }

// A table that changes is saved as two tensors, its keys and its values.
bool IsTable(const Node& n) {
  return absl::StartsWith(n.op_name(), "Mutable") && absl::StrContains(n.op_name(), "HashTable");
}

std::string TableOp(const char* what, const Node& table) {
  return absl::StrCat("LookupTable", what, table.output_type(0) == DType::kResource ? "V2" : "");
}

Status CheckVariable(const SavedVariable& v, std::set<std::pair<std::string, std::string>>* seen) {
  if (v.variable == nullptr || v.variable->num_outputs() != 1) return InvalidArgument("'", v.key, "' is no variable");
  if (!IsHandle(*v.variable) && !IsTable(*v.variable) && !IsRef(v.variable->output_type(0))) {
    return InvalidArgument(v.variable->Describe(), " is no variable");
  }
  if (v.key.empty()) return InvalidArgument(v.variable->Describe(), " needs a name in the checkpoint");
  if (!seen->insert({v.key, v.slice}).second) return InvalidArgument("'", v.key, "' is saved twice");
  return absl::OkStatus();
}

StatusOr<DType> TypeOf(const Node& variable) {
  if (IsHandle(variable)) return variable.Attr<DType>("dtype");
  return BaseType(variable.output_type(0));
}

// The value to save: the reference itself, or a read of the resource, that of the client if there is one.
Output ValueOf(const GraphBuilder& b, Node* variable, DType dtype) {
  if (!IsHandle(*variable)) return variable->output(0);
  Node* read = b.graph().Find(variable->name() + "/Read/ReadVariableOp");
  if (read != nullptr && read->op_name() == "ReadVariableOp" && read->input(0) == variable->output(0)) {
    return read->output(0);
  }
  return b.Op("ReadVariableOp", {variable->output(0)}, {{"dtype", dtype}});
}

// What a checkpoint holds, tensor by tensor.
struct SavedTensors {
  std::vector<TString> names, slices;
  std::vector<DType> dtypes;
  std::vector<Output> values;

  void Add(const std::string& name, const std::string& slice, DType dtype) {
    names.emplace_back(name);
    slices.emplace_back(slice);
    dtypes.push_back(dtype);
  }
};

// Without `with_values` the values stay empty, and nothing is added to the graph.
StatusOr<SavedTensors> TensorsOf(const GraphBuilder& b, const std::vector<SavedVariable>& variables, bool with_values) {
  SavedTensors saved;
  for (const SavedVariable& v : variables) {
    if (!IsTable(*v.variable)) {
      MR_ASSIGN_OR_RETURN(const DType dtype, TypeOf(*v.variable));
      saved.Add(v.key, v.slice, dtype);
      if (with_values) saved.values.push_back(ValueOf(b, v.variable, dtype));
      continue;
    }
    MR_ASSIGN_OR_RETURN(const DType key, v.variable->Attr<DType>("key_dtype"));
    MR_ASSIGN_OR_RETURN(const DType value, v.variable->Attr<DType>("value_dtype"));
    saved.Add(v.key + "-keys", "", key);
    saved.Add(v.key + "-values", "", value);
    if (!with_values) continue;
    Node* pairs =
        b.OpNode(TableOp("Export", *v.variable), {v.variable->output(0)}, {{"Tkeys", key}, {"Tvalues", value}});
    MR_RETURN_IF_ERROR(b.status());
    saved.values.insert(saved.values.end(), {pairs->output(0), pairs->output(1)});
  }
  return saved;
}

// What a variable takes: what was read, in its own shape where that is wanted and differs.
Output InShapeOf(const GraphBuilder& b, Node* variable, DType dtype, Output value) {
  PartialShape shape =
      IsHandle(*variable) ? variable->Attr<PartialShape>("shape").value_or(PartialShape()) : variable->shape(0);
  if (!shape.IsFullyDefined()) return b.Reshape(value, b.Shape(ValueOf(b, variable, dtype)));
  return b.Reshape(value, b.Const(Tensor::Vector<int64_t>(absl::MakeConstSpan(shape.dims()))));
}

// The op that gives a variable or table what was read.
StatusOr<Node*> Assignment(const GraphBuilder& b, Node* variable, absl::Span<const Output> values, bool reshape) {
  const GraphBuilder beside = b.ColocateWith(variable);
  const Output target = variable->output(0);
  if (IsTable(*variable)) return beside.OpNode(TableOp("Import", *variable), {target, values[0], values[1]});
  Output value = values[0];
  if (reshape) {
    MR_ASSIGN_OR_RETURN(const DType dtype, TypeOf(*variable));
    value = InShapeOf(beside, variable, dtype, value);
  }
  if (IsHandle(*variable)) return beside.OpNode("AssignVariableOp", {target, beside.Identity(value)});
  return beside.OpNode("Assign", {target, value});
}

Output StringVector(const GraphBuilder& b, const std::vector<TString>& strings) {
  return b.Const(Tensor::Vector<TString>(absl::MakeConstSpan(strings)));
}

// What the saving and the restoring op of these tensors have in common.
std::vector<Arg> FileNamesAndSlices(const GraphBuilder& inner, Output file, const SavedTensors& saved) {
  return {file, StringVector(inner.WithName("tensor_names"), saved.names),
          StringVector(inner.WithName("shape_and_slices"), saved.slices)};
}

Node* SaveTo(const GraphBuilder& b, Output file, const SavedTensors& saved) {
  std::vector<Arg> inputs = FileNamesAndSlices(b.ScopeExact("SaveV2"), file, saved);
  inputs.emplace_back(saved.values);
  return b.WithName("SaveV2").OpNode("SaveV2", std::move(inputs), AttrMap{{"dtypes", saved.dtypes}});
}

StatusOr<std::vector<Output>> ReadFrom(const GraphBuilder& b, Output file, const SavedTensors& saved) {
  Node* const read =
      b.WithName("RestoreV2")
          .OpNode("RestoreV2", FileNamesAndSlices(b.ScopeExact("RestoreV2"), file, saved),
                  AttrMap{{"dtypes", saved.dtypes}});
  MR_RETURN_IF_ERROR(b.status());
  std::vector<Output> values;
  for (int i = 0; i < read->num_outputs(); ++i) values.push_back(read->output(i));
  return values;
}

// All at once, or (sequentially) one variable after the other, so that only one is in memory beside the variables.
StatusOr<std::vector<Node*>> RestoreFrom(const GraphBuilder& b, const std::string& host, Output file,
                                         const std::vector<SavedVariable>& variables, const SaverOptions& options) {
  std::vector<Node*> assigned;
  const GraphBuilder on_host = b.WithDevice(host);
  std::vector<Output> values;
  if (!options.restore_sequentially) {
    MR_ASSIGN_OR_RETURN(const SavedTensors saved, TensorsOf(b, variables, false));
    MR_ASSIGN_OR_RETURN(values, ReadFrom(on_host, file, saved));
  }
  for (const SavedVariable& v : variables) {
    GraphBuilder in_turn = b;
    if (options.restore_sequentially) {
      MR_ASSIGN_OR_RETURN(const SavedTensors saved, TensorsOf(b, {v}, false));
      const std::vector<Node*> before(assigned.empty() ? assigned.end() : assigned.end() - 1, assigned.end());
      MR_ASSIGN_OR_RETURN(values, ReadFrom(on_host.WithControl(before), file, saved));
      in_turn = b.WithControl(before);
    }
    MR_ASSIGN_OR_RETURN(Node * assign, Assignment(in_turn, v.variable, values, options.reshape));
    MR_RETURN_IF_ERROR(b.status());
    assigned.push_back(assign);
    values.erase(values.begin(), values.begin() + (IsTable(*v.variable) ? 2 : 1));
  }
  return assigned;
}

// The processor beside a device.
StatusOr<std::string> HostOf(const std::string& device) {
  MR_ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(device));
  name.type = "CPU";
  name.id = 0;
  return name.ToString();
}

// A shard for each device that variables ask for. Their files become one checkpoint at the end.
Status BuildShards(const GraphBuilder& b, const std::vector<SavedVariable>& variables, const SaverOptions& options,
                   uint64_t number, SaverNodes* nodes) {
  std::map<std::string, std::vector<SavedVariable>> by_host;
  for (const SavedVariable& v : variables) {
    MR_ASSIGN_OR_RETURN(const std::string host, HostOf(v.variable->device()));
    by_host[host].push_back(v);
  }
  const std::string part = absl::StrFormat("_temp_%016x/part", number);
  const GraphBuilder in_join = b.ScopeExact("StringJoin");
  const Output base =
      b.WithName("StringJoin")
          .Op("StringJoin", {std::vector<Output>{
                                nodes->filename, in_join.WithName("inputs_1").Const(Tensor::Scalar<TString>(part))}});
  const auto shards = static_cast<int32_t>(by_host.size());
  const Output count = b.WithName("num_shards").Scalar<int32_t>(shards);
  std::vector<Output> files;
  std::vector<Node*> saved_all, restored;
  int32_t shard = 0;
  for (const auto& [host, of_host] : by_host) {
    const GraphBuilder there = b.WithDevice(host);
    const GraphBuilder in_name = there.ScopeExact("ShardedFilename");
    files.push_back(there.WithName("ShardedFilename")
                        .Op("ShardedFilename", {base, in_name.WithName("shard").Scalar<int32_t>(shard++), count}));
    MR_ASSIGN_OR_RETURN(const SavedTensors saved, TensorsOf(there, of_host, true));
    saved_all.push_back(SaveTo(there, files.back(), saved));
    MR_ASSIGN_OR_RETURN(const std::vector<Node*> assigned, RestoreFrom(there, host, nodes->filename, of_host, options));
    restored.push_back(there.WithName("restore_shard").WithControl(assigned).OpNode("NoOp", {}));
  }
  const GraphBuilder last = b.WithDevice(by_host.rbegin()->first);
  const GraphBuilder in_merge = last.ScopeExact("MergeV2Checkpoints").WithControl(saved_all);
  const Output prefixes = in_merge.WithName("checkpoint_prefixes").Op("Pack", {files}, {{"N", int64_t{shards}}});
  Node* const merge = last.WithName("MergeV2Checkpoints")
                          .OpNode("MergeV2Checkpoints", {prefixes, nodes->filename}, {{"delete_old_dirs", true}});
  MR_RETURN_IF_ERROR(b.status());
  nodes->save = last.WithName("Identity").WithControl({merge}).Identity(nodes->filename);
  nodes->restore = b.WithName("restore_all").WithControl(restored).OpNode("NoOp", {});
  return b.status();
}

Status BuildWhole(const GraphBuilder& b, const std::vector<SavedVariable>& variables, const SaverOptions& options,
                  SaverNodes* nodes) {
  MR_ASSIGN_OR_RETURN(const SavedTensors saved, TensorsOf(b, variables, true));
  Node* const save = SaveTo(b, nodes->filename, saved);
  MR_RETURN_IF_ERROR(b.status());
  nodes->save =
      b.WithName("control_dependency").WithControl({save}).ColocateWith(nodes->filename.node).Identity(nodes->filename);
  MR_ASSIGN_OR_RETURN(
      const std::vector<Node*> assigned, RestoreFrom(b, kRestoreDevice, nodes->filename, variables, options));
  nodes->restore = b.WithName("restore_all").WithControl(assigned).OpNode("NoOp", {});
  return b.status();
}

}  // namespace

Status CheckSaved(const std::vector<SavedVariable>& variables) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const SavedVariable& v : variables) MR_RETURN_IF_ERROR(CheckVariable(v, &seen));
  return absl::OkStatus();
}

StatusOr<SaverNodes> BuildSaver(const GraphBuilder& b, const std::vector<SavedVariable>& variables,
                                const SaverOptions& options, uint64_t number) {
  SaverNodes nodes;
  const std::pair<const char*, AttrValue> is_string{"dtype", DType::kString};
  const std::pair<const char*, AttrValue> is_scalar{"shape", PartialShape::Scalar()};
  const Output model = b.WithName("filename/input").Const(Tensor::Scalar<TString>("model"));
  const Output filename = b.WithName("filename").Op("PlaceholderWithDefault", {model}, {is_string, is_scalar});
  nodes.filename = b.WithName("Const").Op("PlaceholderWithDefault", {filename}, {is_string, is_scalar});
  MR_RETURN_IF_ERROR(
      options.sharded ? BuildShards(b, variables, options, number, &nodes) : BuildWhole(b, variables, options, &nodes));
  return nodes;
}

}  // namespace millrace
