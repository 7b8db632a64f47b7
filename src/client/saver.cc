// SPDX-License-Identifier: Apache-2.0
#include "client/saver.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "client/saver_nodes.h"
#include "client/variables.h"
#include "graph/graph_def.h"
#include "io/checkpoint_state.h"

namespace millrace {
namespace {

StatusOr<Output> FindOutput(const Graph& graph, const std::string& name) {
  MR_ASSIGN_OR_RETURN(const TensorName parsed, ParseTensorName(name));
  Node* node = graph.Find(parsed.node);
  if (node == nullptr || parsed.port < 0 || parsed.port >= node->num_outputs()) {
    return NotFound("the graph has no tensor '", name, "', which its saver uses");
  }
  return node->output(parsed.port);
}

// The first of an op's inputs that it writes; -1 when it writes no checkpoint.
int FirstSaved(const Node& n) {
  if (n.op_name() == "SaveV2" || n.op_name() == "SaveSlices") return 3;
  return n.op_name() == "Save" ? 2 : -1;
}

// The tensors that are written when `save` is computed.
std::vector<Output> TensorsBehind(Node* save) {
  std::vector<Output> found;
  std::vector<Node*> stack{save};
  std::set<const Node*> seen{save};
  const auto visit = [&](Node* n) {
    if (seen.insert(n).second) stack.push_back(n);
  };
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    const int first = FirstSaved(*n);
    for (int i = std::max(first, 0); i < n->num_inputs(); ++i) {
      const Output o = n->input(i);
      if (first < 0) {
        visit(o.node);
      } else if (std::find(found.begin(), found.end(), o) == found.end()) {
        found.push_back(o);
      }
    }
    if (first < 0) {
      for (Node* before : n->control_inputs()) visit(before);
    }
  }
  return found;
}

}  // namespace

Saver::Saver(Env& env, RefPtr<SharedGraph> graph, const SaverOptions& options)
    : graph_(std::move(graph)),
      env_(env),
      max_to_keep_(std::max(options.max_to_keep, 0)),
      is_sharded_(options.sharded) {}

StatusOr<std::unique_ptr<Saver>> Saver::Create(Env& env, RefPtr<SharedGraph> graph,
                                               std::vector<SavedVariable> variables, SaverOptions options) {
  std::unique_ptr<Saver> saver(new Saver(env, graph, options));
  MR_RETURN_IF_ERROR(saver->KeepEvery(options.keep_every_hours));
  GraphLock lock(&graph->mu);
  if (variables.empty()) {
    for (Node* n : VariablesOf(graph->graph)) variables.push_back({n->name(), n, ""});
    std::sort(variables.begin(), variables.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  }
  if (variables.empty()) return InvalidArgument("no variables to save");
  MR_RETURN_IF_ERROR(CheckSaved(variables));
  const int mark = graph->graph.num_node_ids();
  const auto nodes = BuildSaver(GraphBuilder(&graph->graph).Scope(options.scope), variables, options, env.Random64());
  if (!nodes.ok()) {
    graph->graph.RollbackTo(mark);
    return nodes.status();
  }
  saver->filename_ = nodes->filename;
  saver->save_ = nodes->save;
  saver->restore_ = nodes->restore;
  return saver;
}

StatusOr<std::unique_ptr<Saver>> Saver::FromDef(Env& env, RefPtr<SharedGraph> graph, const wire::SaverDef& def,
                                                SaverOptions options) {
  options.sharded = def.sharded;
  std::unique_ptr<Saver> saver(new Saver(env, graph, options));
  const double of_def = static_cast<double>(def.keep_checkpoint_every_n_hours);
  MR_RETURN_IF_ERROR(saver->KeepEvery(of_def > 0 ? of_def : options.keep_every_hours));
  GraphLock lock(&graph->mu);
  MR_ASSIGN_OR_RETURN(saver->filename_, FindOutput(graph->graph, def.filename_tensor_name));
  MR_ASSIGN_OR_RETURN(saver->save_, FindOutput(graph->graph, def.save_tensor_name));
  saver->restore_ = graph->graph.Find(def.restore_op_name);
  if (saver->restore_ == nullptr) return NotFound("the graph has no node '", def.restore_op_name, "'");
  return saver;
}

StatusOr<std::unique_ptr<Saver>> Saver::On(RefPtr<SharedGraph> graph) const {
  SaverOptions options;
  options.max_to_keep = max_to_keep_;
  MR_ASSIGN_OR_RETURN(std::unique_ptr<Saver> other, FromDef(env_, std::move(graph), def(), options));
  other->GoOnFrom(*this);
  return other;
}

void Saver::GoOnFrom(const Saver& other) {
  checkpoints_ = other.checkpoints_;
  keep_every_hours_ = other.keep_every_hours_;
  next_to_keep_ = other.next_to_keep_;
}

std::vector<std::string> Saver::checkpoints() const {
  std::vector<std::string> prefixes;
  for (const Checkpoint& c : checkpoints_) prefixes.push_back(c.prefix);
  return prefixes;
}

Status Saver::KeepEvery(double hours) {
  if (!(hours >= 0)) return InvalidArgument("checkpoints cannot be kept every ", hours, " hours");
  keep_every_hours_ = hours;
  next_to_keep_ = env_.Now() + absl::Hours(hours);
  return absl::OkStatus();
}

wire::SaverDef Saver::def() const {
  wire::SaverDef def;
  def.filename_tensor_name = filename_.ToString();
  def.save_tensor_name = save_.ToString();
  def.restore_op_name = restore_->name();
  def.max_to_keep = max_to_keep_;
  def.sharded = is_sharded_;
  def.keep_checkpoint_every_n_hours = static_cast<float>(keep_every_hours_);
  def.version = wire::SaverDef::kV2;
  return def;
}

StatusOr<std::string> Saver::Save(Session& session, const std::string& prefix, int64_t global_step,
                                  bool write_meta_graph, const Snapshot* snapshot) {
  const std::string path = global_step >= 0 ? absl::StrCat(prefix, "-", global_step) : prefix;
  std::vector<Output> feeds{filename_};
  std::vector<Tensor> values{Tensor::Scalar<TString>(path)}, outputs;
  if (snapshot != nullptr) {
    feeds.insert(feeds.end(), snapshot->tensors.begin(), snapshot->tensors.end());
    values.insert(values.end(), snapshot->values.begin(), snapshot->values.end());
  }
  MR_RETURN_IF_ERROR(session.Run(nullptr, feeds, values, {save_}, {}, &outputs, nullptr));
  if (write_meta_graph) MR_RETURN_IF_ERROR(WriteMetaGraph(path));
  MR_RETURN_IF_ERROR(KeepNewest(path));
  return path;
}

StatusOr<Saver::Snapshot> Saver::Read(Session& session, bool between_steps) const {
  Snapshot snapshot;
  {
    GraphReaderLock lock(&graph_->mu);
    snapshot.tensors = TensorsBehind(save_.node);
  }
  if (snapshot.tensors.empty()) {
    return FailedPrecondition("'", save_.ToString(), "' saves by operations of its own, which cannot be fed");
  }
  wire::RunOptions how;
  how.between_steps = between_steps;
  MR_RETURN_IF_ERROR(session.Run(&how, {}, {}, snapshot.tensors, {}, &snapshot.values, nullptr));
  return snapshot;
}

Status Saver::Restore(Session& session, const std::string& prefix) {
  if (!CheckpointExists(env_, prefix)) return NotFound("no checkpoint ", prefix);
  std::vector<Tensor> outputs;
  Node* const targets[] = {restore_};
  return session.Run(nullptr, {filename_}, {Tensor::Scalar<TString>(prefix)}, {}, targets, &outputs, nullptr);
}

Status Saver::WriteMetaGraph(const std::string& prefix) {
  wire::MetaGraphDef meta;
  {
    GraphLock lock(&graph_->mu);
    MR_ASSIGN_OR_RETURN(meta.graph_def.Ensure(), GraphToProto(graph_->graph));
  }
  meta.saver_def.Ensure() = def();
  meta.meta_info_def.Ensure().tags.clear();
  return WriteFileAtomically(env_, prefix + ".meta", wire::Encode(meta));
}

// The state file stops naming a checkpoint before its files go.
Status Saver::KeepNewest(const std::string& prefix) {
  std::erase_if(checkpoints_, [&](const Checkpoint& c) { return c.prefix == prefix; });
  checkpoints_.push_back({prefix, env_.Now()});
  std::vector<std::string> old;
  while (max_to_keep_ > 0 && checkpoints_.size() > static_cast<size_t>(max_to_keep_)) {
    if (!StaysForGood(checkpoints_.front())) old.push_back(std::move(checkpoints_.front().prefix));
    checkpoints_.erase(checkpoints_.begin());
  }
  MR_RETURN_IF_ERROR(WriteCheckpointState(env_, std::string(Dirname(prefix)), {prefix, checkpoints()}));
  for (const std::string& p : old) Delete(p);
  return absl::OkStatus();
}

bool Saver::StaysForGood(const Checkpoint& checkpoint) {
  if (checkpoint.written <= next_to_keep_) return false;
  next_to_keep_ += absl::Hours(keep_every_hours_);
  return true;
}

// Leftovers harm nobody, so failures are not told.
void Saver::Delete(const std::string& prefix) {
  (void)env_.DeleteFile(prefix + ".index");
  const std::string folder(Dirname(prefix));
  const auto names = env_.ListDir(folder.empty() ? "." : folder);
  if (!names.ok()) return;
  const std::string data = absl::StrCat(Basename(prefix), ".data-");
  for (const std::string& name : *names) {
    if (absl::StartsWith(name, data)) (void)env_.DeleteFile(JoinPath(folder, name));
  }
  (void)env_.DeleteFile(prefix + ".meta");
}

}  // namespace millrace
