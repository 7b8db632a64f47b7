// SPDX-License-Identifier: Apache-2.0
// Building operations and looking at them, but for their attributes (operation_attrs.cc, set_attrs.cc).
#include <algorithm>

#include "absl/strings/match.h"
#include "capi/internal.h"

using millrace::ArgDef;
using millrace::ArgRange;
using millrace::Consumer;
using millrace::InvalidArgument;
using millrace::Node;
using millrace::Output;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::AsNode;
using millrace::capi::AsOperation;
using millrace::capi::AsOutput;
using millrace::capi::AsTfOutput;
using millrace::capi::Describe;
using millrace::capi::GuardedOr;
using millrace::capi::Try;

namespace {

// Inputs of a fixed type, where each input is an argument: what a client sees most, in TensorFlow's words.
Status CheckFixedTypes(const millrace::OpDef& op, const millrace::NodeSpec& spec) {
  if (op.inputs.size() != spec.inputs.size()) return absl::OkStatus();
  for (const ArgDef& arg : op.inputs) {
    if (!arg.number_attr.empty() || !arg.type_list_attr.empty()) return absl::OkStatus();
  }
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const millrace::DType want = op.inputs[i].type, got = BaseType(spec.inputs[i].dtype());
    if (want == millrace::DType::kInvalid || got == millrace::DType::kInvalid || got == want) continue;
    return InvalidArgument(
        "Input '", op.inputs[i].name, "' passed ", millrace::DTypeName(got), " expected ", millrace::DTypeName(want),
        " while building NodeDef '", spec.name, "' using Op<name=", op.name, ">");
  }
  return absl::OkStatus();
}

StatusOr<TF_Operation*> Finish(TF_OperationDescription& desc) {
  MR_RETURN_IF_ERROR(desc.error);
  if (!desc.colocation.empty()) {
    desc.spec.attrs.insert_or_assign(
        millrace::capi::kColocationAttr, std::vector<std::string>(desc.colocation.begin(), desc.colocation.end()));
  }
  if (desc.has_list) desc.spec.input_arg_sizes = std::move(desc.arg_sizes);
  millrace::GraphLock lock(&desc.shared->mu);
  millrace::Graph& graph = desc.shared->graph;
  const millrace::OpDef* op = graph.FindOp(desc.spec.op);
  if (op == nullptr) {
    return InvalidArgument(
        "Op type not registered '", desc.spec.op, "' in binary running in this process. Make sure the ",
        "Op and Kernel are registered in the binary running in this process. while building NodeDef '", desc.spec.name,
        "'");
  }
  MR_RETURN_IF_ERROR(CheckFixedTypes(*op, desc.spec));
  MR_ASSIGN_OR_RETURN(Node * node, graph.AddNode(std::move(desc.spec)));
  return AsOperation(node);
}

int ListLength(const std::vector<ArgDef>* args, const std::vector<ArgRange>& ranges, const char* name) {
  if (args == nullptr) return -1;
  for (size_t i = 0; i < args->size() && i < ranges.size(); ++i) {
    if ((*args)[i].name == name) return ranges[i].end - ranges[i].begin;
  }
  return -1;
}

StatusOr<int> FoundLength(int length, const char* kind, const char* name) {
  if (length < 0) return InvalidArgument(kind, " arg '", name, "' not found");
  return length;
}

// The groups that a node lies with, or its own.
void AddGroupsOf(const Node& node, std::set<std::string>* groups) {
  bool has_any = false;
  if (const auto listed = node.Attr<std::vector<std::string>>(millrace::capi::kColocationAttr); listed.ok()) {
    for (const std::string& group : *listed) {
      if (!absl::StartsWith(group, "loc:@")) continue;
      groups->insert(group);
      has_any = true;
    }
  }
  if (!has_any) groups->insert(absl::StrCat("loc:@", node.name()));
}

int CopyOperations(const std::vector<Node*>& nodes, TF_Operation** out, int max) {
  if (out == nullptr) return 0;
  const int count = std::min(static_cast<int>(nodes.size()), std::max(max, 0));
  for (int i = 0; i < count; ++i) out[i] = AsOperation(nodes[static_cast<size_t>(i)]);
  return count;
}

}  // namespace

extern "C" {

TF_OperationDescription* TF_NewOperation(TF_Graph* graph, const char* op_type, const char* oper_name) {
  if (graph == nullptr) return nullptr;
  return Try<TF_OperationDescription*>(nullptr, [&] {
    auto desc = std::make_unique<TF_OperationDescription>();
    desc->shared = graph->shared;
    if (op_type == nullptr) desc->error = millrace::capi::NullArgument("op_type");
    if (oper_name == nullptr) desc->error = millrace::capi::NullArgument("oper_name");
    desc->spec.op = op_type ? op_type : "";
    desc->spec.name = oper_name ? oper_name : "";
    return desc.release();
  });
}

void TF_SetDevice(TF_OperationDescription* desc, const char* device) {
  Describe(desc, [&] {
    desc->spec.device = device ? device : "";
    return absl::OkStatus();
  });
}

void TF_AddInput(TF_OperationDescription* desc, TF_Output input) {
  Describe(desc, [&]() -> Status {
    MR_RETURN_IF_ERROR(millrace::capi::CheckOutput(input, "input", static_cast<int>(desc->spec.inputs.size())));
    desc->spec.inputs.push_back(AsOutput(input));
    desc->arg_sizes.push_back(1);
    return absl::OkStatus();
  });
}

void TF_AddInputList(TF_OperationDescription* desc, const TF_Output* inputs, int num_inputs) {
  Describe(desc, [&]() -> Status {
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(inputs, num_inputs, "inputs"));
    for (int i = 0; i < num_inputs; ++i) {
      MR_RETURN_IF_ERROR(millrace::capi::CheckOutput(inputs[i], "input", static_cast<int>(desc->spec.inputs.size())));
      desc->spec.inputs.push_back(AsOutput(inputs[i]));
    }
    desc->arg_sizes.push_back(num_inputs);
    desc->has_list = true;
    return absl::OkStatus();
  });
}

void TF_AddControlInput(TF_OperationDescription* desc, TF_Operation* input) {
  Describe(desc, [&]() -> Status {
    MR_CAPI_REQUIRE(input);
    desc->spec.control_inputs.push_back(AsNode(input));
    return absl::OkStatus();
  });
}

void TF_ColocateWith(TF_OperationDescription* desc, TF_Operation* op) {
  Describe(desc, [&]() -> Status {
    MR_CAPI_REQUIRE(op);
    desc->colocation.insert(absl::StrCat("loc:@", AsNode(op)->name()));
    return absl::OkStatus();
  });
}

void MR_ColocateReferences(TF_OperationDescription* desc) {
  Describe(desc, [&]() -> Status {
    millrace::GraphLock lock(&desc->shared->mu);
    const millrace::OpDef* op = desc->shared->graph.FindOp(desc->spec.op);
    if (op == nullptr) return absl::OkStatus();
    size_t at = 0;
    for (size_t i = 0; i < desc->arg_sizes.size() && i < op->inputs.size(); ++i) {
      for (int k = 0; k < desc->arg_sizes[i]; ++k, ++at) {
        if (op->inputs[i].is_ref) AddGroupsOf(*desc->spec.inputs[at].node, &desc->colocation);
      }
    }
    return absl::OkStatus();
  });
}

void MR_SetLocation(TF_OperationDescription* desc, const char* file, int line) {
  Describe(desc, [&]() -> Status {
    MR_CAPI_REQUIRE(file);
    desc->spec.location = absl::StrCat(file, ":", line);
    return absl::OkStatus();
  });
}

const char* MR_OperationLocation(TF_Operation* oper) { return oper ? AsNode(oper)->location().c_str() : ""; }

TF_Operation* TF_FinishOperation(TF_OperationDescription* desc, TF_Status* status) {
  const std::unique_ptr<TF_OperationDescription> owned(desc);
  return GuardedOr<TF_Operation*>(status, nullptr, [&]() -> StatusOr<TF_Operation*> {
    MR_CAPI_REQUIRE(desc);
    return Finish(*desc);
  });
}

const char* TF_OperationName(TF_Operation* oper) { return oper ? AsNode(oper)->name().c_str() : nullptr; }
const char* TF_OperationOpType(TF_Operation* oper) { return oper ? AsNode(oper)->op_name().c_str() : nullptr; }
const char* TF_OperationDevice(TF_Operation* oper) { return oper ? AsNode(oper)->device().c_str() : nullptr; }
int TF_OperationNumOutputs(TF_Operation* oper) { return oper ? AsNode(oper)->num_outputs() : 0; }
int TF_OperationNumInputs(TF_Operation* oper) { return oper ? AsNode(oper)->num_inputs() : 0; }

TF_DataType TF_OperationOutputType(TF_Output oper_out) {
  if (!millrace::capi::IsOutput(oper_out)) return static_cast<TF_DataType>(0);
  return static_cast<TF_DataType>(AsNode(oper_out.oper)->output_type(oper_out.index));
}

TF_DataType TF_OperationInputType(TF_Input oper_in) {
  if (oper_in.oper == nullptr) return static_cast<TF_DataType>(0);
  const auto& types = AsNode(oper_in.oper)->signature().input_types;
  if (oper_in.index < 0 || static_cast<size_t>(oper_in.index) >= types.size()) return static_cast<TF_DataType>(0);
  return static_cast<TF_DataType>(types[static_cast<size_t>(oper_in.index)]);
}

int TF_OperationOutputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status) {
  return GuardedOr<int>(status, -1, [&]() -> StatusOr<int> {
    MR_CAPI_REQUIRE(oper);
    MR_CAPI_REQUIRE(arg_name);
    const Node* node = AsNode(oper);
    const auto* args = node->op() ? &node->op()->outputs : nullptr;
    return FoundLength(ListLength(args, node->signature().output_args, arg_name), "Output", arg_name);
  });
}

int TF_OperationInputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status) {
  return GuardedOr<int>(status, -1, [&]() -> StatusOr<int> {
    MR_CAPI_REQUIRE(oper);
    MR_CAPI_REQUIRE(arg_name);
    const Node* node = AsNode(oper);
    const auto* args = node->op() ? &node->op()->inputs : nullptr;
    return FoundLength(ListLength(args, node->signature().input_args, arg_name), "Input", arg_name);
  });
}

TF_Output TF_OperationInput(TF_Input oper_in) {
  if (oper_in.oper == nullptr) return {nullptr, -1};
  const Node* node = AsNode(oper_in.oper);
  if (oper_in.index < 0 || oper_in.index >= node->num_inputs()) return {nullptr, -1};
  return AsTfOutput(node->input(oper_in.index));
}

void TF_OperationAllInputs(TF_Operation* oper, TF_Output* inputs, int max_inputs) {
  if (oper == nullptr || inputs == nullptr) return;
  const Node* node = AsNode(oper);
  for (int i = 0; i < std::min(node->num_inputs(), max_inputs); ++i) inputs[i] = AsTfOutput(node->input(i));
}

int TF_OperationOutputNumConsumers(TF_Output oper_out) {
  if (!millrace::capi::IsOutput(oper_out)) return 0;
  int count = 0;
  for (const Consumer& c : AsNode(oper_out.oper)->consumers()) {
    count += c.node->input(c.input).index == oper_out.index ? 1 : 0;
  }
  return count;
}

int TF_OperationOutputConsumers(TF_Output oper_out, TF_Input* consumers, int max_consumers) {
  if (!millrace::capi::IsOutput(oper_out) || consumers == nullptr) return 0;
  int count = 0;
  for (const Consumer& c : AsNode(oper_out.oper)->consumers()) {
    if (count >= max_consumers) break;
    if (c.node->input(c.input).index != oper_out.index) continue;
    consumers[count++] = {AsOperation(c.node), c.input};
  }
  return count;
}

int TF_OperationNumControlInputs(TF_Operation* oper) {
  return oper ? static_cast<int>(AsNode(oper)->control_inputs().size()) : 0;
}
int TF_OperationGetControlInputs(TF_Operation* oper, TF_Operation** control_inputs, int max_control_inputs) {
  return oper ? CopyOperations(AsNode(oper)->control_inputs(), control_inputs, max_control_inputs) : 0;
}
int TF_OperationNumControlOutputs(TF_Operation* oper) {
  return oper ? static_cast<int>(AsNode(oper)->control_outputs().size()) : 0;
}
int TF_OperationGetControlOutputs(TF_Operation* oper, TF_Operation** control_outputs, int max_control_outputs) {
  return oper ? CopyOperations(AsNode(oper)->control_outputs(), control_outputs, max_control_outputs) : 0;
}

void TF_OperationToNodeDef(TF_Operation* oper, TF_Buffer* output_node_def, TF_Status* status) {
  millrace::capi::Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(oper);
    MR_ASSIGN_OR_RETURN(const millrace::wire::NodeDef def, millrace::NodeToProto(*AsNode(oper)));
    return millrace::capi::FillWithMessage(output_node_def, def, "output_node_def");
  });
}

}  // extern "C"
