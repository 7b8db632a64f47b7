// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/data/dataset_graph.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/cpu/engine/string_hash.h"
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

// Which input of an op is the first of its two seeds.
std::optional<size_t> FirstSeed(absl::string_view op) {
  absl::ConsumePrefix(&op, "Experimental");
  if (op == "RandomDataset") return 0;
  if (op == "ShuffleDataset" || op == "ShuffleAndRepeatDataset" || op == "SamplingDataset") return 2;
  return std::nullopt;
}

class GraphWriter {
 public:
  // as_given: with the inputs as nodes got them, without what was drawn for them.
  explicit GraphWriter(bool as_given = false) : as_given_(as_given) {}

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
    for (const Tensor& t : as_given_ ? origin->given : origin->inputs) {
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

  const HashMap<const Dataset*, std::string>& names() const { return names_; }

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

  const bool as_given_;
  wire::GraphDef graph_;
  HashMap<const Dataset*, std::string> names_;
  HashMap<std::string, std::string> functions_;  // encoded, by name
  size_t bytes_ = 0;
};

// What is inside of a function by its place, whatever it was called.
class BodyNamer {
 public:
  explicit BodyNamer(wire::FunctionDef& def) : def_(def) {
    if (def.signature) {
      for (const wire::OpArgDef& arg : def.signature->input_arg) Give(arg.name);
    }
    for (const wire::NodeDef& node : def.node_def) Give(node.name);
  }
  void Rename() {
    for (wire::NodeDef& node : def_.node_def) {
      node.name = names_[node.name];
      for (std::string& input : node.input) input = Renamed(input);
      std::erase_if(node.attr, [](const auto& attr) { return attr.first.starts_with('_'); });
    }
    wire::Map<std::string, std::string> results;
    if (def_.signature) {
      size_t i = 0;
      for (const wire::OpArgDef& arg : def_.signature->output_arg)
        results[absl::StrCat(i++)] = Renamed(def_.ret[arg.name]);
    }
    def_.ret = std::move(results);
    for (auto& [name, node] : def_.control_ret) node = Renamed(node);
    def_.signature.reset();
    def_.arg_attr.clear();
  }

 private:
  void Give(const std::string& name) { names_.try_emplace(name, absl::StrCat("_", names_.size())); }
  // Of an input: "node:output:0", "argument", "^node".
  std::string Renamed(const std::string& input) const {
    const size_t begin = input.starts_with('^') ? 1 : 0, end = std::min(input.find(':'), input.size());
    const auto found = names_.find(input.substr(begin, end - begin));
    return found == names_.end() ? input : absl::StrCat(input.substr(0, begin), found->second, input.substr(end));
  }

  wire::FunctionDef& def_;
  HashMap<std::string, std::string> names_;
};

// Gives the functions of a graph names that say what they do.
class FunctionNamer {
 public:
  explicit FunctionNamer(wire::FunctionDefLibrary& library) {
    for (wire::FunctionDef& f : library.function) functions_[f.signature ? f.signature->name : ""] = &f;
  }
  void RenameIn(std::vector<wire::NodeDef>& nodes) {
    for (wire::NodeDef& node : nodes) {
      for (auto& [name, value] : node.attr) RenameIn(value);
    }
  }

 private:
  void RenameIn(wire::AttrValue& value) {
    if (value.func) value.func->name = NameOf(value.func->name);
    if (!value.list) return;
    for (wire::NameAttrList& f : value.list->func) f.name = NameOf(f.name);
  }
  std::string NameOf(const std::string& name) {
    const auto function = functions_.find(name);
    if (function == functions_.end()) return name;
    if (const auto known = names_.find(name); known != names_.end()) return known->second;
    names_[name] = absl::StrCat("function_", names_.size());  // to itself
    wire::FunctionDef& def = *function->second;
    RenameIn(def.node_def);
    BodyNamer(def).Rename();
    return names_[name] = absl::StrCat("function_", absl::Hex(Fingerprint64(wire::Encode(def))));
  }

  HashMap<std::string, wire::FunctionDef*> functions_;
  HashMap<std::string, std::string> names_;
};

}  // namespace

StatusOr<uint64_t> FingerprintOfDataset(const Dataset& dataset) {
  GraphWriter writer(/*as_given=*/true);
  MR_ASSIGN_OR_RETURN(std::string name, writer.Write(dataset));
  wire::GraphDef graph = writer.Finish(std::move(name));
  if (graph.library) {
    FunctionNamer(*graph.library).RenameIn(graph.node);
    graph.library.reset();
  }
  return Fingerprint64(wire::Encode(graph));
}

StatusOr<wire::GraphDef> GraphOfDataset(const Dataset& dataset, HashMap<const Dataset*, std::string>* names) {
  GraphWriter writer;
  MR_ASSIGN_OR_RETURN(std::string name, writer.Write(dataset));
  if (names != nullptr) *names = writer.names();
  return writer.Finish(std::move(name));
}

void TakeSeeds(const wire::GraphDef& saved, wire::GraphDef* own) {
  const auto same = [](const wire::NodeDef& a, const wire::NodeDef& b) { return a.op == b.op; };
  if (!std::equal(saved.node.begin(), saved.node.end(), own->node.begin(), own->node.end(), same)) return;
  HashMap<absl::string_view, size_t> places;
  for (size_t i = 0; i < own->node.size(); ++i) places[own->node[i].name] = i;
  for (const wire::NodeDef& node : own->node) {
    const std::optional<size_t> first = FirstSeed(node.op);
    for (size_t i = 0; first && i < 2 && *first + i < node.input.size(); ++i) {
      const auto place = places.find(node.input[*first + i]);
      if (place == places.end() || own->node[place->second].op != "Const") continue;
      const auto seed = saved.node[place->second].attr.find("value");
      if (seed != saved.node[place->second].attr.end()) own->node[place->second].attr["value"] = seed->second;
    }
  }
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
