// SPDX-License-Identifier: Apache-2.0
#include "graph/function_def.h"

#include "absl/strings/ascii.h"
#include "base/hash_map.h"
#include "graph/function_hash.h"
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
  HashSet<std::string> used_;
  HashMap<std::string, int> next_;
};

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
    if (spec_.append_hash) {
      signature_->name.clear();  // what was asked for does not count
      MR_ASSIGN_OR_RETURN(const std::string hash, FunctionHashText(def_));
      signature_->name = absl::StrCat(spec_.name, "_", hash);
    }
    return std::move(def_);
  }

 private:
  std::string Encountered() const { return absl::StrCat(" Encountered while creating function '", spec_.name, "'"); }

  // What TensorFlow numbers the edge in a graph that only grew: edges count in the order in which they were made.
  int EdgeNumber(const Node& node, const Node* control) const {
    int number = 1;
    for (const Node* other : graph_.nodes()) {
      if (other == &node) break;
      number += other->num_inputs() + static_cast<int>(other->control_inputs().size());
    }
    number += node.num_inputs();
    for (const Node* other : node.control_inputs()) {
      if (other == control) break;
      ++number;
    }
    return number;
  }

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
        return InvalidArgument("Cannot have duplicate output names. Name '", spec_.output_names[i],
                               "' appears more than once in 'output_names' array.");
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
            "When `num_opers` is set to -1, nodes referenced in `inputs` must have a single output. Node ",
            input.node->name(), " has ", input.node->num_outputs(), " outputs.", Encountered());
      }
      std::string name = names_.Unique(ArgName(input.node->name()));
      if (!arguments_.emplace(input, name).second) {
        return InvalidArgument("TF_Output ", input.ToString(), " appears more than once in the input list");
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
    HashSet<const Node*> skipped;
    if (!spec_.body) {
      for (const Output& input : spec_.inputs) skipped.insert(input.node);
    }
    for (Node* node : spec_.body ? *spec_.body : graph_.nodes()) {
      if (!skipped.insert(node).second) continue;  // an input, or listed twice
      if (!spec_.body && graph_.FindExpansion(node) != nullptr) continue;
      body_.push_back(node);
      node_names_.emplace(node, names_.Unique(node->name()));
    }
  }

  Status AddBodyNode(const Node& node) {
    MR_ASSIGN_OR_RETURN(wire::NodeDef proto, NodeToProto(node));
    proto.name = node_names_[&node];
    proto.input.clear();
    for (int i = 0; i < node.num_inputs(); ++i) {
      MR_ASSIGN_OR_RETURN(std::string reference, Reference(node.input(i), [&] {
                            return InvalidArgument(
                                "Input ", i, ", '", node.input(i).ToString(), "', of node '", node.name(),
                                "' in function '", spec_.name, "' is not available. You might need to include it in ",
                                "inputs or include its source node in the body");
                          }));
      proto.input.push_back(std::move(reference));
    }
    for (const Node* control : node.control_inputs()) {
      control = Meant(control);
      auto it = node_names_.find(control);
      if (const std::string* argument = ArgumentFrom(control); it == node_names_.end() && argument != nullptr) {
        proto.input.push_back(absl::StrCat("^", *argument));
        continue;
      }
      if (it == node_names_.end()) {
        return InvalidArgument("The source of control edge [id=", EdgeNumber(node, control), " ", control->name(),
                               ":-1 -> ", node.name(), ":-1] is not in the body.", Encountered());
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

  // What stands for a call that was expanded for its gradient, if all nodes are the body.
  const Node* Meant(const Node* node) const {
    while (const Expansion* e = spec_.body ? nullptr : graph_.FindExpansion(node)) node = e->done;
    return node;
  }
  Output Meant(Output value) const {
    while (const Expansion* e = spec_.body || arguments_.contains(value) ? nullptr : graph_.FindExpansion(value.node)) {
      value = e->outputs[static_cast<size_t>(value.index)];
    }
    return value;
  }

  // How the function's body names a value: "argument" or "node:output_arg:position".
  template <typename Unavailable>
  StatusOr<std::string> Reference(Output value, Unavailable&& unavailable) {
    value = Meant(value);
    if (auto arg = arguments_.find(value); arg != arguments_.end()) return arg->second;
    auto it = node_names_.find(value.node);
    if (it == node_names_.end()) {
      return unavailable();
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
      MR_ASSIGN_OR_RETURN(std::string reference, Reference(output, [&] {
                            return InvalidArgument(
                                "TF_Output ", output.ToString(),
                                " is neither in the function body nor among function inputs.", Encountered());
                          }));
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
      auto it = node_names_.find(Meant(node));
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
  HashMap<Output, std::string> arguments_;
  HashMap<const Node*, std::string> node_names_;
};

}  // namespace

StatusOr<wire::FunctionDef> GraphToFunctionDef(const Graph& graph, const FunctionSpec& spec) {
  return Converter(graph, spec).Convert();
}

}  // namespace millrace
