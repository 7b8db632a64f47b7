// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/data/dataset_graph.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash_map.h"
#include "tensor/tensor_proto.h"

namespace millrace {
namespace {

using Kind = wire::AttrValue::Kind;

constexpr char kReturn[] = "_Retval";

wire::AttrValue TypeValue(DType type) {
  wire::AttrValue v;
  v.kind = Kind::kType;
  v.type = static_cast<int32_t>(type);
  return v;
}

class GraphWriter {
 public:
  // The name of the node that gives `dataset`. Data sets lie at most Dataset::kMaxHeight over each other.
  StatusOr<std::string> Write(const Dataset& dataset) {
    if (const auto known = names_.find(&dataset); known != names_.end()) return known->second;
    const DatasetOrigin* origin = dataset.origin();
    if (origin == nullptr) {
      return Unimplemented(
          "a data set that is an element of another, or holds a large value that was fed, has no graph");
    }
    wire::NodeDef node;
    node.op = origin->op->name;
    for (const Tensor& t : origin->inputs) {
      MR_ASSIGN_OR_RETURN(std::string input, WriteInput(t, node.op));
      node.input.push_back(std::move(input));
    }
    std::vector<std::string> functions;
    for (const auto& [name, value] : origin->op->attrs) {
      if (name.starts_with('_')) continue;  // of the graph where it was, as its colocation
      MR_ASSIGN_OR_RETURN(node.attr[name], AttrToProto(value));
      if (const auto* f = value.get<FuncAttr>()) functions.push_back(f->name);
      if (const auto* list = value.get<std::vector<FuncAttr>>()) {
        for (const FuncAttr& f : *list) functions.push_back(f.name);
      }
    }
    if (!functions.empty()) MR_RETURN_IF_ERROR(AddFunctions(*origin, std::move(functions)));
    return names_[&dataset] = Add(std::move(node));
  }

  wire::GraphDef Finish(std::string dataset) {
    wire::NodeDef end;
    end.op = kReturn;
    end.input.push_back(std::move(dataset));
    end.attr["T"] = TypeValue(DType::kVariant);
    end.attr["index"].kind = Kind::kI;
    Add(std::move(end));
    return std::move(graph_);
  }

 private:
  static constexpr size_t kMostBytes = size_t{1} << 30;  // of a message, which holds less than 2 GiB

  StatusOr<std::string> WriteInput(const Tensor& t, const std::string& op) {
    if (t.dtype() == DType::kVariant && t.rank() == 0) {
      if (const auto* dataset = t.data<Variant>()->As<Dataset>()) return Write(*dataset);
    }
    bytes_ += t.TotalBytes();
    if (bytes_ > kMostBytes) return Unimplemented("a data set of more than ", kMostBytes, " bytes has no graph");
    StatusOr<wire::TensorProto> value = TensorToProto(t);
    if (t.dtype() == DType::kResource || t.dtype() == DType::kVariant || !value.ok()) {
      return Unimplemented(op, " takes a ", DTypeName(t.dtype()), ", which no graph can hold as a constant");
    }
    wire::NodeDef node;
    node.op = "Const";
    node.attr["dtype"] = TypeValue(t.dtype());
    node.attr["value"].kind = Kind::kTensor;
    node.attr["value"].tensor.Ensure() = *std::move(value);
    return Add(std::move(node));
  }

  Status AddFunctions(const DatasetOrigin& origin, std::vector<std::string> names) {
    if (!origin.functions) return Unimplemented("functions of ", origin.op->name, " are not known");
    MR_ASSIGN_OR_RETURN(wire::FunctionDefLibrary library, origin.functions->Definitions(std::move(names)));
    wire::FunctionDefLibrary& all = graph_.library.Ensure();
    HashSet<std::string> added;
    for (wire::FunctionDef& f : library.function) {
      const std::string name = f.signature ? f.signature->name : "", bytes = wire::Encode(f);
      const auto [known, is_new] = functions_.try_emplace(name, bytes);
      if (known->second != bytes) return Unimplemented("two functions of the data set are called '", name, "'");
      if (!is_new) continue;
      added.insert(name);
      all.function.push_back(std::move(f));
    }
    for (wire::GradientDef& g : library.gradient) {
      if (added.contains(g.function_name)) all.gradient.push_back(std::move(g));
    }
    return absl::OkStatus();
  }

  std::string Add(wire::NodeDef node) {
    node.name = absl::StrCat(node.op == kReturn ? "dataset" : node.op, "/_", graph_.node.size());
    graph_.node.push_back(std::move(node));
    return graph_.node.back().name;
  }

  wire::GraphDef graph_;
  HashMap<const Dataset*, std::string> names_;
  HashMap<std::string, std::string> functions_;  // encoded, by name
  size_t bytes_ = 0;
};

}  // namespace

StatusOr<wire::GraphDef> GraphOfDataset(const Dataset& dataset) {
  GraphWriter writer;
  MR_ASSIGN_OR_RETURN(std::string name, writer.Write(dataset));
  return writer.Finish(std::move(name));
}

StatusOr<DatasetRef> DatasetFromGraph(DataContext& ctx, wire::GraphDef graph, FunctionSource& functions) {
  if (graph.node.empty() || graph.node.back().op != kReturn || graph.node.back().input.size() != 1) {
    return InvalidArgument("the graph of a data set must end with a node _Retval of one input");
  }
  const std::string output = std::move(graph.node.back().input[0]);
  graph.node.pop_back();
  MR_ASSIGN_OR_RETURN(const RefPtr<StepFunction> function, functions.CompileImported(graph, output, ctx.cancellation));
  Element made;
  MR_RETURN_IF_ERROR(function->Run({}, {ctx.cancellation, ctx.inter_op_threads, ctx.trace}, &made));
  if (made.size() != 1) return InvalidArgument("the graph of a data set gave ", made.size(), " values");
  return DatasetOf(made[0], "what the graph of a data set gives");
}

StatusOr<DatasetRef> MadeAgain(DataContext& ctx, const DatasetRef& dataset, FunctionSource* functions) {
  StatusOr<wire::GraphDef> graph = GraphOfDataset(*dataset);
  if (functions == nullptr || absl::IsUnimplemented(graph.status())) return dataset;
  MR_RETURN_IF_ERROR(graph.status());
  return DatasetFromGraph(ctx, *std::move(graph), *functions);
}

}  // namespace millrace
