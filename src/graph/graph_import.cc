// SPDX-License-Identifier: Apache-2.0
// GraphDef -> Graph. Names are indexed first, then edges are resolved to node numbers, then nodes are added in
// topological order (the least number that is ready first), and at last the back edges of loops. Every step is linear
// in the size of the message, but for a logarithm in the queue of ready nodes. A failure anywhere rolls the graph back.
#include <algorithm>
#include <mutex>
#include <queue>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/hash_map.h"
#include "base/logging.h"
#include "graph/graph_def.h"
#include "graph/infer_attrs.h"
#include "graph/node_name.h"

namespace millrace {

namespace {

// The newest form of GraphDef that this reader understands: that of TensorFlow 1.15.
constexpr int kConsumerVersion = 134;

absl::string_view Clip(absl::string_view name) { return name.substr(0, 200); }

struct InputRef {
  int source = -1;  // node number in the GraphDef; -1: `mapped`
  int port = 0;     // -1: control
  Output mapped;
};

}  // namespace

class GraphImporter {
 public:
  GraphImporter(const wire::GraphDef& def, const ImportOptions& options, Graph* graph)
      : def_(def), options_(options), graph_(graph), mark_(graph->num_node_ids()) {}

  StatusOr<ImportResult> Run() {
    const wire::VersionDef versions = graph_->versions_;
    const size_t gradients = graph_->gradient_defs_.size();
    const Status s = Import();
    if (s.ok()) return std::move(result_);
    graph_->RollbackTo(mark_);
    for (const std::string& f : new_functions_) graph_->RemoveFunction(f);
    graph_->gradient_defs_.resize(gradients);
    graph_->versions_ = versions;
    return s;
  }

 private:
  Status Import() {
    MR_RETURN_IF_ERROR(CheckVersions());
    MR_RETURN_IF_ERROR(ReadInputMap());
    MR_RETURN_IF_ERROR(ChoosePrefix());
    MR_RETURN_IF_ERROR(AddLibrary());
    MR_RETURN_IF_ERROR(IndexNames());
    MR_RETURN_IF_ERROR(ResolveEdges());
    MR_RETURN_IF_ERROR(AddNodes());
    MR_RETURN_IF_ERROR(CloseLoops());
    MR_RETURN_IF_ERROR(FindReturns());
    ReportUnused();
    return absl::OkStatus();
  }

  Status CheckVersions();
  Status ReadInputMap();
  Status ChoosePrefix();
  Status AddLibrary();
  Status IndexNames();
  HashSet<std::string> ScopesBelowPrefix() const;
  Status ResolveEdges();
  Status ResolveInputs(int i);
  Status AddNodes();
  Status AddOne(int i);
  Status CycleError(const std::vector<int>& pending) const;
  StatusOr<AttrMap> ReadAttrs(const wire::NodeDef& node, const OpDef* op);
  Status FillAttrs(const wire::NodeDef& node, const OpDef& op, AttrMap* attrs);
  Status RenameColocation(const wire::NodeDef& node, AttrMap* attrs) const;
  Status ApplyOutputShapes(Node* node, const AttrValue& shapes);
  // `name` is the source's in the message, which may have been given another in the graph.
  Status CheckPort(const wire::NodeDef& reader, absl::string_view name, const Node& source, int port) const;
  Status CloseLoops();
  Status FindReturns();
  void ReportUnused();

  bool IsBackEdge(int from, int to) const {
    return millrace::IsBackEdge(
        ControlOpOf(def_.node[static_cast<size_t>(from)].op), ControlOpOf(def_.node[static_cast<size_t>(to)].op));
  }
  absl::Span<const InputRef> InputsOf(int i) const {
    const size_t begin = input_begin_[static_cast<size_t>(i)], end = input_begin_[static_cast<size_t>(i) + 1];
    return absl::MakeConstSpan(inputs_).subspan(begin, end - begin);
  }
  int count() const { return static_cast<int>(def_.node.size()); }

  struct MapEntry {
    Output value;
    std::string key;
    bool used = false;
  };

  const wire::GraphDef& def_;
  const ImportOptions& options_;
  Graph* graph_;
  const int mark_;
  int producer_ = 0;
  std::string prefix_;  // with its "/"
  ImportResult result_;
  std::vector<std::string> new_functions_;
  HashMap<std::pair<absl::string_view, int>, MapEntry> input_map_;
  HashMap<absl::string_view, int> index_;
  std::vector<std::string> names_;  // final ones
  std::vector<InputRef> inputs_;    // of all nodes, one after the other
  std::vector<size_t> input_begin_;
  std::vector<Node*> nodes_;
};

// Whether no import of this process has said something of the op type before.
bool FirstOf(const std::string& op) {
  static auto* mutex = new std::mutex;
  static auto* seen = new HashSet<std::string>;
  std::lock_guard<std::mutex> lock(*mutex);
  return seen->size() < 10000 && seen->insert(op).second;
}

Status GraphImporter::CheckVersions() {
  const wire::VersionDef v = def_.versions ? *def_.versions : wire::VersionDef();
  producer_ = v.producer;
  if (v.producer < 0) return InvalidArgument("GraphDef producer version ", v.producer, " is negative");
  if (v.min_consumer > kConsumerVersion) {
    return InvalidArgument(
        "GraphDef min consumer version ", v.min_consumer, " above current version ", kConsumerVersion);
  }
  if (std::find(v.bad_consumers.begin(), v.bad_consumers.end(), kConsumerVersion) != v.bad_consumers.end()) {
    return InvalidArgument("GraphDef disallows consumer version ", kConsumerVersion);
  }
  wire::VersionDef& mine = graph_->versions_;
  if (graph_->nodes().empty()) {
    mine = v;
    return absl::OkStatus();
  }
  mine.producer = std::min(mine.producer, v.producer);
  mine.min_consumer = std::max(mine.min_consumer, v.min_consumer);
  for (int32_t bad : v.bad_consumers) {
    if (std::find(mine.bad_consumers.begin(), mine.bad_consumers.end(), bad) == mine.bad_consumers.end()) {
      mine.bad_consumers.push_back(bad);
    }
  }
  return absl::OkStatus();
}

Status GraphImporter::ReadInputMap() {
  for (const auto& [key, value] : options_.input_map) {
    MR_ASSIGN_OR_RETURN(TensorName name, ParseTensorName(key));
    if (!value) return InvalidArgument("input_map['", Clip(key), "'] has no value");
    input_map_[{name.node, name.port}] = {value, key};
  }
  for (const auto& [key, node] : options_.control_map) {
    if (node == nullptr) return InvalidArgument("control_map['", Clip(key), "'] has no value");
    absl::string_view name = key;
    absl::ConsumePrefix(&name, "^");
    input_map_[{name, -1}] = {Output{node, -1}, key};
  }
  return absl::OkStatus();
}

Status GraphImporter::ChoosePrefix() {
  absl::string_view prefix = options_.prefix;
  absl::ConsumeSuffix(&prefix, "/");
  if (prefix.empty()) return absl::OkStatus();
  if (!IsNodeName(prefix, false)) {
    return InvalidArgument("Imported node name prefix '", Clip(options_.prefix), "' would lead to invalid node names");
  }
  std::string name(prefix);
  if (options_.uniquify_prefix) {
    const auto taken = [this](const std::string& p) {
      if (graph_->Find(p) != nullptr) return true;
      const std::string scope = p + "/";
      return std::any_of(graph_->nodes().begin(), graph_->nodes().end(), [&](const Node* n) {
        return absl::StartsWith(n->name(), scope);
      });
    };
    for (int i = 1; taken(name); ++i) name = absl::StrCat(prefix, "_", i);
  }
  prefix_ = name + "/";
  return absl::OkStatus();
}

Status GraphImporter::AddLibrary() {
  if (!def_.library) return absl::OkStatus();
  for (const wire::FunctionDef& f : def_.library->function) {
    const bool known = f.signature && graph_->FindFunction(f.signature->name) != nullptr;
    MR_RETURN_IF_ERROR(graph_->AddFunction(f));
    if (!known) new_functions_.push_back(f.signature->name);
  }
  for (const wire::GradientDef& g : def_.library->gradient) MR_RETURN_IF_ERROR(graph_->AddGradientDef(g));
  return absl::OkStatus();
}

Status GraphImporter::IndexNames() {
  if (static_cast<int64_t>(def_.node.size()) > graph_->limits_.max_nodes - graph_->next_id_) {
    return ResourceExhausted("the graph would exceed its limit of ", graph_->limits_.max_nodes, " nodes");
  }
  index_.reserve(def_.node.size());
  for (int i = 0; i < count(); ++i) {
    const std::string& name = def_.node[static_cast<size_t>(i)].name;
    if (name.size() + prefix_.size() > graph_->limits_.max_name) {
      return InvalidArgument("node name of ", name.size(), " bytes exceeds the limit of ", graph_->limits_.max_name);
    }
    if (!IsNodeName(name, options_.is_compiled) && !(options_.is_compiled && IsProgramNodeName(name))) {
      return InvalidArgument("Node '", Clip(name), "': Node name contains invalid characters");
    }
    if (!index_.emplace(name, i).second) return InvalidArgument("Node '", name, "' is not unique");
  }
  names_.reserve(def_.node.size());
  // A node called like a scope of the graph would seem to be what lies in it.
  const HashSet<std::string> scopes = options_.uniquify_names ? ScopesBelowPrefix() : HashSet<std::string>();
  HashSet<std::string> chosen;
  for (const wire::NodeDef& node : def_.node) {
    std::string name = prefix_ + node.name;
    if (graph_->Find(name) != nullptr || scopes.contains(name)) {
      if (!options_.uniquify_names) return InvalidArgument("Node name '", name, "' already exists in the Graph");
      const std::string base = name;
      for (int i = 1;; ++i) {
        name = absl::StrCat(base, "_", i);
        if (graph_->Find(name) != nullptr || scopes.contains(name) || chosen.contains(name)) continue;
        absl::string_view bare = name;
        bare.remove_prefix(prefix_.size());
        if (!index_.contains(bare)) break;
      }
      chosen.insert(name);
    }
    names_.push_back(std::move(name));
  }
  return absl::OkStatus();
}

// Of the nodes that are there.
HashSet<std::string> GraphImporter::ScopesBelowPrefix() const {
  HashSet<std::string> scopes;
  for (const Node* n : graph_->nodes()) {
    absl::string_view name = n->name();
    if (!absl::StartsWith(name, prefix_)) continue;
    for (size_t end = name.rfind('/'); end != absl::string_view::npos && end > prefix_.size(); end = name.rfind('/')) {
      name = name.substr(0, end);
      if (!scopes.emplace(name).second) break;
    }
  }
  return scopes;
}

Status GraphImporter::ResolveInputs(int i) {
  const wire::NodeDef& node = def_.node[static_cast<size_t>(i)];
  bool control_seen = false;
  for (const std::string& text : node.input) {
    auto name = ParseTensorName(text);
    if (!name.ok()) return Annotate(name.status(), absl::StrCat("Node '", node.name, "': "));
    if (name->port < 0) {
      control_seen = true;
    } else if (control_seen) {
      return InvalidArgument("Node '", node.name, "': Control dependencies must come after regular dependencies");
    }
    InputRef ref;
    ref.port = name->port;
    if (auto mapped = input_map_.find({name->node, name->port}); mapped != input_map_.end()) {
      mapped->second.used = true;
      ref.mapped = mapped->second.value;
    } else if (auto it = index_.find(name->node); it != index_.end()) {
      ref.source = it->second;
    } else {
      return InvalidArgument("Node '", node.name, "': Unknown input node '", Clip(text), "'");
    }
    inputs_.push_back(ref);
  }
  return absl::OkStatus();
}

Status GraphImporter::ResolveEdges() {
  input_begin_.reserve(def_.node.size() + 1);
  input_begin_.push_back(0);
  for (int i = 0; i < count(); ++i) {
    MR_RETURN_IF_ERROR(ResolveInputs(i));
    input_begin_.push_back(inputs_.size());
  }
  return absl::OkStatus();
}

Status GraphImporter::AddNodes() {
  const size_t n = def_.node.size();
  std::vector<int> pending(n, 0);
  std::vector<size_t> reader_begin(n + 1, 0);
  const auto for_each_edge = [&](auto&& visit) {
    for (int i = 0; i < count(); ++i) {
      for (const InputRef& in : InputsOf(i)) {
        if (in.source >= 0 && !(in.port >= 0 && IsBackEdge(in.source, i))) visit(in.source, i);
      }
    }
  };
  for_each_edge([&](int from, int to) {
    ++pending[static_cast<size_t>(to)];
    ++reader_begin[static_cast<size_t>(from) + 1];
  });
  for (size_t i = 0; i < n; ++i) reader_begin[i + 1] += reader_begin[i];
  std::vector<int> readers(reader_begin[n]);
  std::vector<size_t> next(reader_begin.begin(), reader_begin.end() - 1);
  for_each_edge([&](int from, int to) { readers[next[static_cast<size_t>(from)]++] = to; });

  nodes_.assign(n, nullptr);
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < count(); ++i) {
    if (pending[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  size_t added = 0;
  for (; !ready.empty(); ++added) {
    const int i = ready.top();
    ready.pop();
    MR_RETURN_IF_ERROR(AddOne(i));
    for (size_t r = reader_begin[static_cast<size_t>(i)]; r < reader_begin[static_cast<size_t>(i) + 1]; ++r) {
      if (--pending[static_cast<size_t>(readers[r])] == 0) ready.push(readers[r]);
    }
  }
  return added == n ? absl::OkStatus() : CycleError(pending);
}

Status GraphImporter::CycleError(const std::vector<int>& pending) const {
  // From any waiting node, walking back along waiting nodes ends in a cycle.
  int at =
      static_cast<int>(std::find_if(pending.begin(), pending.end(), [](int p) { return p > 0; }) - pending.begin());
  std::vector<bool> seen(pending.size(), false);
  while (!seen[static_cast<size_t>(at)]) {
    seen[static_cast<size_t>(at)] = true;
    for (const InputRef& in : InputsOf(at)) {
      if (in.source >= 0 && pending[static_cast<size_t>(in.source)] > 0 &&
          !(in.port >= 0 && IsBackEdge(in.source, at))) {
        at = in.source;
        break;
      }
    }
  }
  return InvalidArgument(
      "Graph is invalid, contains a cycle through node '", def_.node[static_cast<size_t>(at)].name, "'");
}

Status GraphImporter::CheckPort(const wire::NodeDef& reader, absl::string_view name, const Node& source,
                                int port) const {
  const int limit = source.op() != nullptr ? source.num_outputs() : kMaxUnknownOutputs;
  if (port < limit) return absl::OkStatus();
  return InvalidArgument("Node '", reader.name, "': Connecting to invalid output ", port, " of source node ", name,
                         " which has ", limit, " outputs.");
}

StatusOr<AttrMap> GraphImporter::ReadAttrs(const wire::NodeDef& node, const OpDef* op) {
  AttrMap attrs;
  for (const auto& [name, proto] : node.attr) {
    auto value = AttrFromProto(proto);
    if (!value.ok()) {
      return Annotate(value.status(), absl::StrCat("NodeDef '", node.name, "': attribute '", Clip(name), "': "));
    }
    attrs.emplace_hint(attrs.end(), name, *std::move(value));
  }
  if (op != nullptr) {
    MR_RETURN_IF_ERROR(Annotate(FillAttrs(node, *op, &attrs), absl::StrCat("NodeDef '", node.name, "': ")));
  }
  MR_RETURN_IF_ERROR(RenameColocation(node, &attrs));
  return attrs;
}

// Attributes that newer writers add and no kernel here reads: with these values results would be others.
Status RefuseIfItMatters(const OpDef& op, const std::string& name, const AttrValue& value) {
  const auto* flag = value.get<bool>();
  const auto* number = value.get<int64_t>();
  const auto* real = value.get<float>();
  const auto* text = value.get<std::string>();
  const auto* dtype = value.get<DType>();
  const bool ranged = op.name == "QuantizeV2" || op.name == "Dequantize";
  const bool matters =
      (flag && *flag && (name == "multiply_linear_by_lr" || name == "perturb_singular")) ||
      (text && *text == "IGNORE" && name == "bad_indices_policy") || (number && *number != 0 && name == "offset") ||
      (ranged && ((number && *number != -1 && name == "axis") || (flag && *flag && name == "narrow_range") ||
                  (real && *real != 0.01f && name == "ensure_minimum_range") ||
                  (dtype && *dtype != DType::kFloat && name == "dtype")));
  if (!matters) return absl::OkStatus();
  return Unimplemented("op ", op.name, " with the newer attribute ", name, " other than its default is not provided");
}

// Defaults, and what old writers left out or spelled otherwise.
Status GraphImporter::FillAttrs(const wire::NodeDef& node, const OpDef& op, AttrMap* attrs) {
  if (node.op == "StridedSlice" || node.op == "StridedSliceGrad") {
    if (auto it = attrs->find("ellipse_mask"); it != attrs->end()) {
      attrs->emplace("ellipsis_mask", it->second);
      attrs->erase("ellipse_mask");
    }
  } else if (node.op == "MaxPoolWithArgmax" || node.op == "MaxPoolGradWithArgmax") {
    attrs->emplace("T", AttrValue(DType::kFloat));
  } else if (node.op == "Placeholder" && producer_ <= 21) {
    auto it = attrs->find("shape");
    const PartialShape* shape = it == attrs->end() ? nullptr : it->second.get<PartialShape>();
    if (shape != nullptr && shape->rank() == 0) it->second = AttrValue(PartialShape());
  }
  if (producer_ <= 4) {
    for (const AttrDef& def : op.attrs) {
      if (def.is_list && !def.has_default && !def.has_minimum) attrs->emplace(def.name, AttrValue(EmptyListAttr()));
    }
  }
  std::vector<std::string> unknown;
  MR_RETURN_IF_ERROR(CompleteAttrs(op, attrs, &unknown));
  for (const std::string& name : unknown) MR_RETURN_IF_ERROR(RefuseIfItMatters(op, name, attrs->find(name)->second));
  // What newer writers add and nothing depends on: names for people, and what is off or empty where it is not used. And
  // what kernels read although the schema, which older readers share, does not have it.
  std::erase_if(unknown, [attrs](const std::string& name) {
    const AttrValue& value = attrs->find(name)->second;
    const auto* flag = value.get<bool>();
    const auto* text = value.get<std::string>();
    return name == "debug_name" || name == "validate_shape" || name == "resize_if_index_out_of_bounds" ||
           value.list_size() == 0 || (flag && !*flag) || (text && text->empty());
  });
  if (!unknown.empty() && FirstOf(op.name)) {
    LogInfo("op ", op.name, " (node '", node.name, "') has the unknown attribute '", Clip(unknown[0]), "'",
            unknown.size() > 1 ? absl::StrCat(" and ", unknown.size() - 1, " more") : "", "; kept and ignored");
  }
  return absl::OkStatus();
}

Status GraphImporter::RenameColocation(const wire::NodeDef& node, AttrMap* attrs) const {
  auto it = attrs->find("_class");
  if (it == attrs->end()) return absl::OkStatus();
  const auto* groups = it->second.get<std::vector<std::string>>();
  if (groups == nullptr) return absl::OkStatus();
  std::vector<std::string> renamed = *groups;
  for (std::string& group : renamed) {
    absl::string_view target = group;
    if (!absl::ConsumePrefix(&target, "loc:@")) continue;
    if (auto found = index_.find(target); found != index_.end()) {
      group = absl::StrCat("loc:@", names_[static_cast<size_t>(found->second)]);
    } else if (options_.validate_colocation && graph_->Find(target) == nullptr) {
      return InvalidArgument("Node '", node.name, "' expects to be colocated with unknown node '", Clip(target), "'");
    }
  }
  it->second = AttrValue(std::move(renamed));
  return absl::OkStatus();
}

Status GraphImporter::ApplyOutputShapes(Node* node, const AttrValue& value) {
  const auto* shapes = value.get<std::vector<PartialShape>>();
  if (shapes == nullptr) {
    if (value.get<EmptyListAttr>()) return absl::OkStatus();
    return InvalidArgument("Node '", node->name(), "' has an _output_shapes attribute that is no list of shapes");
  }
  if (static_cast<int>(shapes->size()) != node->num_outputs()) {
    if (options_.is_body) return absl::OkStatus();
    return InvalidArgument(
        "Node '", node->name(), "' has ", node->num_outputs(),
        " outputs but the _output_shapes attribute specifies shapes for ", shapes->size(), " outputs");
  }
  for (int i = 0; i < node->num_outputs(); ++i) {
    if (node->output_type(i) == DType::kResource) continue;  // TensorFlow says [2] of handles that are scalars
    const PartialShape& said = (*shapes)[static_cast<size_t>(i)];
    if (node->shape(i).IsCompatibleWith(said)) {
      MR_RETURN_IF_ERROR(graph_->RefineShape(node->output(i), said));
    } else if (producer_ <= 21) {
      node->set_shape(i, said);  // old writers knew better than some shape functions
      ++graph_->shape_epoch_;
    } else if (!options_.is_body) {
      return InvalidArgument(
          "Node '", node->name(), "' has an _output_shapes attribute inconsistent with the GraphDef ", "for output #",
          i, ": ", said.ToString(), " and ", node->shape(i).ToString());
    }
  }
  return absl::OkStatus();
}

Status GraphImporter::AddOne(int i) {
  const wire::NodeDef& def = def_.node[static_cast<size_t>(i)];
  NodeSpec spec;
  spec.name = names_[static_cast<size_t>(i)];
  spec.op = def.op;
  spec.device = def.device.empty() ? options_.default_device : def.device;
  if (!IsDeviceName(spec.device)) {
    return InvalidArgument("Node '", def.name, "': Malformed device specification '", Clip(spec.device), "'");
  }
  const OpDef* op = graph_->FindOp(def.op);
  if (def.op.empty() || def.op.size() > 1000) return InvalidArgument("Node '", def.name, "': bad op name");
  if (def.op[0] == '_' && !options_.is_compiled && graph_->FindFunction(def.op) == nullptr) {
    return InvalidArgument("Node '", def.name, "': op '", def.op, "' is internal to the runtime");
  }
  if (op != nullptr && !options_.is_compiled && op->deprecation_version > 0 && producer_ >= op->deprecation_version) {
    return Unimplemented("Node '", def.name, "': Op ", op->name, " is not available in GraphDef version ", producer_,
                         ". It has been removed in version ", op->deprecation_version, ". ", op->deprecation_reason);
  }
  MR_ASSIGN_OR_RETURN(spec.attrs, ReadAttrs(def, op));
  AttrValue output_shapes;
  if (auto it = spec.attrs.find("_output_shapes"); op != nullptr && it != spec.attrs.end()) {
    output_shapes = std::move(it->second);
    spec.attrs.erase(it);
  }
  bool reads_import = false, lacks_inputs = false;
  for (const InputRef& in : InputsOf(i)) {
    Output from = in.mapped;
    if (in.source >= 0) {
      reads_import = true;
      Node* source = nodes_[static_cast<size_t>(in.source)];
      from = Output{source, in.port};
      if (in.port >= 0 && source == nullptr) {
        lacks_inputs = true;  // a back edge
        from = Output();
      } else if (in.port >= 0) {
        MR_RETURN_IF_ERROR(CheckPort(def, def_.node[static_cast<size_t>(in.source)].name, *source, in.port));
      }
    } else if (in.port >= 0) {
      MR_RETURN_IF_ERROR(CheckPort(def, from.node->name(), *from.node, from.index));
    }
    if (in.port >= 0) {
      spec.inputs.push_back(from);
    } else {
      spec.control_inputs.push_back(from.node);
    }
  }
  if (!reads_import) {
    spec.control_inputs.insert(
        spec.control_inputs.end(), options_.control_dependencies.begin(), options_.control_dependencies.end());
  }
  auto node =
      op == nullptr ? graph_->AddUnknown(std::move(spec), lacks_inputs) : graph_->Add(std::move(spec), lacks_inputs);
  if (!node.ok()) return node.status();
  nodes_[static_cast<size_t>(i)] = *node;
  return op == nullptr ? absl::OkStatus() : ApplyOutputShapes(*node, output_shapes);
}

Status GraphImporter::CloseLoops() {
  for (int i = 0; i < count(); ++i) {
    if (ControlOpOf(def_.node[static_cast<size_t>(i)].op) != ControlOp::kMerge) continue;
    int position = 0;
    for (const InputRef& in : InputsOf(i)) {
      if (in.port < 0) break;
      Node* node = nodes_[static_cast<size_t>(i)];
      if (!node->input(position)) {
        Node* source = nodes_[static_cast<size_t>(in.source)];
        MR_RETURN_IF_ERROR(CheckPort(
            def_.node[static_cast<size_t>(i)], def_.node[static_cast<size_t>(in.source)].name, *source, in.port));
        MR_RETURN_IF_ERROR(graph_->SetInput(node, position, Output{source, in.port}));
      }
      ++position;
    }
  }
  return absl::OkStatus();
}

Status GraphImporter::FindReturns() {
  for (const std::string& text : options_.return_outputs) {
    MR_ASSIGN_OR_RETURN(TensorName name, ParseTensorName(text));
    if (name.port < 0) return InvalidArgument("'", Clip(text), "' is not an output");
    if (auto mapped = input_map_.find({name.node, name.port}); mapped != input_map_.end()) {
      mapped->second.used = true;
      result_.return_outputs.push_back(mapped->second.value);
      continue;
    }
    auto it = index_.find(name.node);
    if (it == index_.end()) return InvalidArgument("Requested return tensor '", Clip(text), "' not found in graph def");
    Node* node = nodes_[static_cast<size_t>(it->second)];
    if (name.port >= node->num_outputs()) {  // of an op that is not known: also one that no node reads
      return InvalidArgument("Invalid return output ", name.port, " of node '", name.node, "', which has ",
                             node->num_outputs(), " output(s)");
    }
    result_.return_outputs.push_back(Output{node, name.port});
  }
  for (const std::string& name : options_.return_nodes) {
    auto it = index_.find(name);
    if (it == index_.end()) return InvalidArgument("Requested return node '", Clip(name), "' not found in graph def");
    result_.return_nodes.push_back(nodes_[static_cast<size_t>(it->second)]);
  }
  return absl::OkStatus();
}

// Keys that nothing read and that name nothing in the message.
void GraphImporter::ReportUnused() {
  for (const auto& [key, entry] : input_map_) {
    if (entry.used) continue;
    auto it = index_.find(key.first);
    if (it != index_.end() && key.second < nodes_[static_cast<size_t>(it->second)]->num_outputs()) continue;
    result_.unused_input_map.push_back(entry.key);
  }
  std::sort(result_.unused_input_map.begin(), result_.unused_input_map.end());
}

namespace {

// The options for an import into the context of the graph: what is imported reads what the context carries in, and
// waits for what the context wants it to wait for.
StatusOr<ImportOptions> InContext(ImportOptions options, Graph* graph) {
  const auto adapted = [&](Output input, std::vector<Node*> controls) -> StatusOr<NodeSpec> {
    NodeSpec spec;
    spec.name = options.prefix.empty() ? "import" : options.prefix;
    spec.op = "NoOp";
    if (input) spec.inputs.push_back(input);
    spec.control_inputs = std::move(controls);
    MR_RETURN_IF_ERROR(graph->context()->Adapt(*graph, &spec));
    return spec;
  };
  for (auto& [key, value] : options.input_map) {
    if (!value) continue;
    MR_ASSIGN_OR_RETURN(const NodeSpec spec, adapted(value, {}));
    value = spec.inputs[0];
  }
  for (auto& [key, node] : options.control_map) {
    if (node == nullptr) continue;
    MR_ASSIGN_OR_RETURN(const NodeSpec spec, adapted({}, {node}));
    if (!spec.control_inputs.empty()) node = spec.control_inputs.front();
  }
  MR_ASSIGN_OR_RETURN(NodeSpec spec, adapted({}, std::move(options.control_dependencies)));
  options.control_dependencies = std::move(spec.control_inputs);
  return options;
}

}  // namespace

StatusOr<ImportResult> ImportGraphDef(const wire::GraphDef& def, const ImportOptions& options, Graph* graph) {
  GraphContext* context = graph->context();
  if (context == nullptr) return GraphImporter(def, options, graph).Run();
  MR_ASSIGN_OR_RETURN(const ImportOptions adapted, InContext(options, graph));
  const int mark = graph->num_node_ids();
  MR_ASSIGN_OR_RETURN(ImportResult result, GraphImporter(def, adapted, graph).Run());
  for (Node* node : graph->nodes()) {
    if (node->id() >= mark) context->Added(node);
  }
  return result;
}

}  // namespace millrace
