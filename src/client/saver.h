// SPDX-License-Identifier: Apache-2.0
// Saves variables as checkpoints and restores them.
//
// The ops that do so are part of the graph, with the names that TensorFlow gives them (save/Const, save/SaveV2,
// save/restore_all, ...), so that either system runs the other's graphs. A saver is thread-compatible; the graph is
// locked while ops are added.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/env.h"
#include "client/session.h"
#include "wire/meta_graph.h"

namespace millrace {

// What is saved under `key`: a variable, or (slice not empty, e.g. "4 5 0,2:-") a part of one that is partitioned.
struct SavedVariable {
  std::string key;
  Node* variable = nullptr;
  std::string slice;
};

inline constexpr double kNeverKeepEvery = 10000;  // the customary "never"

struct SaverOptions {
  int max_to_keep = 5;  // older checkpoints are deleted; 0 keeps all
  // Of those that would be deleted, one for every so many hours stays for good, counted from when the saver was made.
  double keep_every_hours = kNeverKeepEvery;
  std::string scope = "save";
  bool sharded = false;               // a file for each device that variables ask for
  bool restore_sequentially = false;  // one variable after the other, which wants less memory
  bool reshape = false;               // values take the variables' shapes
};

class Saver {
 public:
  // Adds the ops for `variables`; an empty list means all variables of the graph, under their names. On error the graph
  // is as before. InvalidArgument: no variable, a node that is none, a key twice. `env` is that of the session's
  // devices.
  static StatusOr<std::unique_ptr<Saver>> Create(Env& env, RefPtr<SharedGraph> graph,
                                                 std::vector<SavedVariable> variables, SaverOptions options = {});
  // Uses ops that the graph has already, as an imported MetaGraphDef names them.
  static StatusOr<std::unique_ptr<Saver>> FromDef(Env& env, RefPtr<SharedGraph> graph, const wire::SaverDef& def,
                                                  SaverOptions options = {});
  // The same saver on another graph that has its ops under the same names. NotFound: that graph lacks one.
  StatusOr<std::unique_ptr<Saver>> On(RefPtr<SharedGraph> graph) const;

  // Writes checkpoint `prefix`, or `prefix`-`global_step` if that is not negative, with the graph beside it (.meta) if
  // wanted; then the state file; then deletes what is too old. All is durable in this order. Returns the prefix
  // written.
  //
  // With a snapshot, its values are written, and not those that the variables have by now.
  struct Snapshot;
  StatusOr<std::string> Save(Session& session, const std::string& prefix, int64_t global_step = -1,
                             bool write_meta_graph = true, const Snapshot* snapshot = nullptr);
  // What Save would write, read in one step; it stays as it is while later steps change the variables.
  // `between_steps`: while no other step of the session changes a variable, see StepOptions. FailedPrecondition: the
  // graph saves by ops of its own, which cannot be fed; or there is no such moment.
  StatusOr<Snapshot> Read(Session& session, bool between_steps = false) const;
  Status Restore(Session& session, const std::string& prefix);

  const RefPtr<SharedGraph>& graph() const { return graph_; }
  struct Checkpoint {
    std::string prefix;
    absl::Time written;
  };
  // Those that are kept as the newest, oldest first.
  std::vector<std::string> checkpoints() const;
  // To go on where another process stopped.
  void set_checkpoints(std::vector<Checkpoint> checkpoints) { checkpoints_ = std::move(checkpoints); }
  // To go on where another saver is.
  void GoOnFrom(const Saver& other);
  // See SaverOptions; the hours begin now. InvalidArgument: negative, or no number.
  Status KeepEvery(double hours);
  wire::SaverDef def() const;

 private:
  Saver(Env& env, RefPtr<SharedGraph> graph, const SaverOptions& options);
  Status WriteMetaGraph(const std::string& prefix);
  Status KeepNewest(const std::string& prefix);
  bool StaysForGood(const Checkpoint& checkpoint);
  void Delete(const std::string& prefix);

  const RefPtr<SharedGraph> graph_;
  Env& env_;
  const int max_to_keep_;
  const bool is_sharded_;
  Output filename_;
  Output save_;
  Node* restore_ = nullptr;
  std::vector<Checkpoint> checkpoints_;
  double keep_every_hours_ = kNeverKeepEvery;
  absl::Time next_to_keep_;  // the first deleted one that was written later stays
};

struct Saver::Snapshot {
  std::vector<Output> tensors;  // of the graph of the session
  std::vector<Tensor> values;
};

}  // namespace millrace
