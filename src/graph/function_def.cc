// SPDX-License-Identifier: Apache-2.0
#include "graph/function_def.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "graph/graph_def.h"

namespace millrace {
namespace {

std::string ArgName(absl::string_view node_name) {
  while (!node_name.empty() && !absl::ascii_isalpha(static_cast<unsigned char>(node_name[0])))
    node_name.remove_prefix(1);
  if (node_name.empty()) return "unknown";
  std::string name(node_name);
  for (char& c : name) {
    const auto u = static_cast<unsigned char>(c);
    c = absl::ascii_isalnum(u) ? absl::ascii_tolower(u) : '_';
  }
  return name;
}

class Names {
 public:
  bool Take(const std::string& name) { return used_.insert(name).second; }
  std::string Unique(const std::string& name) {
    if (Take(name)) return name;
    for (int& suffix = next_[name];; ++suffix) {
      std::string candidate = absl::StrCat(name, "_", suffix);
      if (Take(candidate)) return candidate;
    }
  }

 private:
  absl::flat_hash_set<std::string> used_;
  absl::flat_hash_map<std::string, int> next_;
};

std::string HexHash(absl::string_view bytes) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
}

class Converter {
 public:
  Converter(const Graph& graph, const FunctionSpec& spec) : graph_(graph), spec_(spec) {}

  StatusOr<wire::FunctionDef> Convert() {
    if (spec_.name.empty()) return InvalidArgument("a function must have a name");
    signature_ = &def_.signature.Ensure();
    signature_->name = spec_.name;
    signature_->description = spec_.description;
    MR_RETURN_IF_ERROR(NameOutputs());
    MR_RETURN_IF_ERROR(AddInputs());
    ChooseBody();
    for (Node* node : body_) MR_RETURN_IF_ERROR(AddBodyNode(*node));
    MR_RETURN_IF_ERROR(AddOutputs());
    MR_RETURN_IF_ERROR(AddControlOutputs());
    if (spec_.append_hash) signature_->name = absl::StrCat(spec_.name, "_", HexHash(wire::Encode(def_)));
    return std::move(def_);
  }

 private:
  Status NameOutputs() {
    if (!spec_.output_names.empty() && spec_.output_names.size() != spec_.outputs.size()) {
      return InvalidArgument("function '", spec_.name, "' has ", spec_.outputs.size(), " outputs, but ",
                             spec_.output_names.size(), " names for them");
    }
    Names names;
    for (size_t i = 0; i < spec_.outputs.size(); ++i) {
      if (spec_.output_names.empty()) {
        output_names_.push_back(names.Unique(ArgName(spec_.outputs[i].node->name())));
      } else if (names.Take(spec_.output_names[i])) {
        output_names_.push_back(spec_.output_names[i]);
      } else {
        return InvalidArgument("function '", spec_.name, "' has two outputs of the name '", spec_.output_names[i], "'");
      }
      names_.Take(output_names_.back());
    }
    return absl::OkStatus();
  }

  Status RefuseReference(Output o, const char* what) const {
    if (!IsRef(o.dtype())) return absl::OkStatus();
    return InvalidArgument(what, " ", o.ToString(), " of function '", spec_.name, "' is a reference (",
                           DTypeName(o.dtype()), "), not a value");
  }

  Status AddInputs() {
    for (const Output& input : spec_.inputs) {
      MR_RETURN_IF_ERROR(RefuseReference(input, "input"));
      if (!spec_.body && input.node->num_outputs() > 1) {
        return InvalidArgument(
            "node '", input.node->name(), "' has ", input.node->num_outputs(), " outputs; where the body of function '",
            spec_.name, "' is the whole graph, a node that gives an input must have one");
      }
      std::string name = names_.Unique(ArgName(input.node->name()));
      if (!arguments_.emplace(input, name).second) {
        return InvalidArgument(
            "output ", input.ToString(), " appears more than once in the inputs of function '", spec_.name, "'");
      }
      AddArg(&signature_->input_arg, std::move(name), input.dtype());
    }
    return absl::OkStatus();
  }

  static void AddArg(std::vector<wire::OpArgDef>* args, std::string name, DType type) {
    wire::OpArgDef arg;
    arg.name = std::move(name);
    arg.type = static_cast<int32_t>(BaseType(type));
    args->push_back(std::move(arg));
  }

  void ChooseBody() {
    absl::flat_hash_set<const Node*> skipped;
    if (!spec_.body) {
      for (const Output& input : spec_.inputs) skipped.insert(input.node);
    }
    for (Node* node : spec_.body ? *spec_.body : graph_.nodes()) {
      if (!skipped.insert(node).second) continue;  // an input, or listed twice
      body_.push_back(node);
      node_names_.emplace(node, names_.Unique(node->name()));
    }
  }

  Status AddBodyNode(const Node& node) {
    MR_ASSIGN_OR_RETURN(wire::NodeDef proto, NodeToProto(node));
    proto.name = node_names_[&node];
    proto.input.clear();
    for (int i = 0; i < node.num_inputs(); ++i) {
      MR_ASSIGN_OR_RETURN(
          std::string reference, Reference(node.input(i), absl::StrCat("input ", i, " of node '", node.name(), "'")));
      proto.input.push_back(std::move(reference));
    }
    for (const Node* control : node.control_inputs()) {
      auto it = node_names_.find(control);
      if (const std::string* argument = ArgumentFrom(control); it == node_names_.end() && argument != nullptr) {
        proto.input.push_back(absl::StrCat("^", *argument));
        continue;
      }
      if (it == node_names_.end()) {
        return InvalidArgument("node '", node.name(), "' of function '", spec_.name, "' waits for '", control->name(),
                               "', which is not in the body");
      }
      proto.input.push_back(absl::StrCat("^", it->second));
    }
    if (node.op() != nullptr && node.op()->stateful) signature_->is_stateful = true;
    def_.node_def.push_back(std::move(proto));
    return absl::OkStatus();
  }

  // The first argument that `node` gives; null when there is none.
  const std::string* ArgumentFrom(const Node* node) const {
    for (const Output& input : spec_.inputs) {
      if (input.node == node) return &arguments_.find(input)->second;
    }
    return nullptr;
  }

  // How the function's body names a value: "argument" or "node:output_arg:position".
  StatusOr<std::string> Reference(Output value, absl::string_view who) {
    if (auto arg = arguments_.find(value); arg != arguments_.end()) return arg->second;
    auto it = node_names_.find(value.node);
    if (it == node_names_.end()) {
      return InvalidArgument(who, " of function '", spec_.name, "', ", value.ToString(),
                             ", is not available: include it in the inputs, or its node in the body");
    }
    if (value.node->op() == nullptr) {
      return InvalidArgument("op '", value.node->op_name(), "' of node '", value.node->name(), "' is not known");
    }
    const std::vector<ArgRange>& ranges = value.node->signature().output_args;
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (value.index < ranges[i].begin || value.index >= ranges[i].end) continue;
      return absl::StrCat(it->second, ":", value.node->op()->outputs[i].name, ":", value.index - ranges[i].begin);
    }
    return InvalidArgument("node '", value.node->name(), "' has no output ", value.index);
  }

  Status AddOutputs() {
    for (size_t i = 0; i < spec_.outputs.size(); ++i) {
      const Output& output = spec_.outputs[i];
      MR_RETURN_IF_ERROR(RefuseReference(output, "output"));
      MR_ASSIGN_OR_RETURN(std::string reference, Reference(output, absl::StrCat("output ", i)));
      AddArg(&signature_->output_arg, output_names_[i], output.dtype());
      def_.ret.emplace(output_names_[i], std::move(reference));
    }
    return absl::OkStatus();
  }

  Status AddControlOutputs() {
    const auto& given = spec_.control_output_names;
    if (!given.empty() && given.size() != spec_.control_outputs.size()) {
      return InvalidArgument("function '", spec_.name, "' has ", spec_.control_outputs.size(), " control outputs, but ",
                             given.size(), " names for them");
    }
    for (size_t i = 0; i < spec_.control_outputs.size(); ++i) {
      const Node* node = spec_.control_outputs[i];
      auto it = node_names_.find(node);
      if (it == node_names_.end()) {
        return InvalidArgument("control output '", node->name(), "' of function '", spec_.name, "' is not in the body");
      }
      const std::string& name = given.empty() ? node->name() : given[i];
      if (!def_.control_ret.emplace(name, it->second).second) {
        return InvalidArgument("function '", spec_.name, "' has two control outputs of the name '", name, "'");
      }
      signature_->control_output.push_back(name);
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const FunctionSpec& spec_;
  wire::FunctionDef def_;
  wire::OpDef* signature_ = nullptr;
  Names names_;  // of arguments and body nodes
  std::vector<std::string> output_names_;
  std::vector<Node*> body_;
  absl::flat_hash_map<Output, std::string> arguments_;
  absl::flat_hash_map<const Node*, std::string> node_names_;
};

}  // namespace

StatusOr<wire::FunctionDef> GraphToFunctionDef(const Graph& graph, const FunctionSpec& spec) {
  return Converter(graph, spec).Convert();
}

}  // namespace millrace
