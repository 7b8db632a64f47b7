// SPDX-License-Identifier: Apache-2.0
// Checkpoints of the C++ client.
//
//   millrace::Saver saver(graph, millrace::SaverOptions{.asynchronous = true, .keep_best = 3});
//   ...
//   saver.Save(session, "run/model", step, accuracy);   // returns when the variables are read
//   saver.Wait();
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "millrace/c_api_files.h"
#include "millrace/c_api_io.h"
#include "millrace/variable.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

namespace internal {

inline std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash == 0 ? 1 : slash);
}

// What MR_NoteCheckpointScore and MR_BestCheckpoints fill.
inline std::vector<std::string> PrefixesOf(const TextBuffer& buffer) {
  const std::string text = buffer.Text();
  std::vector<std::string> prefixes;
  for (size_t at = 0, end = 0; (end = text.find('\0', at)) != std::string::npos; at = end + 1) {
    prefixes.push_back(text.substr(at, end - at));
  }
  return prefixes;
}
inline Status BestCheckpoints(const std::string& folder, int count, bool least, std::vector<std::string>* prefixes) {
  CallStatus status;
  TextBuffer buffer;
  MR_BestCheckpoints(folder.c_str(), "checkpoint", count, least, buffer, status);
  *prefixes = PrefixesOf(buffer);
  return status.Get();
}

}  // namespace internal

// The prefix of the newest checkpoint in a folder; empty when there is none.
inline std::string LatestCheckpoint(const std::string& folder) {
  internal::CallStatus status;
  internal::TextBuffer prefix;
  MR_LatestCheckpoint(folder.c_str(), prefix, status);
  return status.ok() ? prefix.Text() : std::string();
}

namespace internal {

// The prefixes of the checkpoints that a folder's state file names, the newest of those that are there last.
inline std::vector<std::string> CheckpointsOf(const std::string& folder) {
  const std::string latest = LatestCheckpoint(folder);
  if (latest.empty()) return {};
  std::vector<std::string> prefixes;
  std::ifstream file((folder.empty() ? std::string(".") : folder) + "/checkpoint");
  const std::string begin = "all_model_checkpoint_paths: \"";
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(begin, 0) != 0 || line.find('\\') != std::string::npos) continue;  // no name of ours has an escape
    std::string path = line.substr(begin.size(), line.rfind('"') - begin.size());
    if (path.rfind('/', 0) != 0 && !folder.empty()) path = folder + "/" + path;
    if (path != latest) prefixes.push_back(std::move(path));
  }
  prefixes.push_back(latest);
  return prefixes;
}

}  // namespace internal

// That of the checkpoint with the best score; empty when none has one.
inline std::string BestCheckpoint(const std::string& folder, bool best_is_least = false) {
  std::vector<std::string> best;
  return internal::BestCheckpoints(folder, 1, best_is_least, &best).ok() && !best.empty() ? best[0] : std::string();
}

// What a checkpoint holds.
class CheckpointReader {
 public:
  // Of a checkpoint "<prefix>.index", or of one of the first version, whose only file is the prefix. TF_NOT_FOUND;
  // TF_DATA_LOSS: it is damaged.
  explicit CheckpointReader(const std::string& prefix) {
    internal::CallStatus status;
    reader_ = {MR_CheckpointReaderOpen(prefix.c_str(), status), MR_CheckpointReaderDelete};
    status_ = status.Get();
#if MILLRACE_EXCEPTIONS
    if (!status_.ok()) throw Error(status_);
#endif
  }
  // Sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    const int count = MR_CheckpointReaderNumTensors(reader_.get());
    for (int i = 0; i < count; ++i) names.emplace_back(MR_CheckpointReaderName(reader_.get(), i));
    return names;
  }
  // TF_NOT_FOUND: it has no such tensor; TF_DATA_LOSS: the files are damaged.
  Returned<Tensor> Read(const std::string& name) const {
    if (!reader_) return internal::Give(status_, Tensor());
    internal::CallStatus status;
    TF_Tensor* value = MR_CheckpointReaderRead(reader_.get(), name.c_str(), status);
    return internal::Give(status.Get(), value ? Tensor(value) : Tensor());
  }
  const Status& status() const { return status_; }  // of the opening

 private:
  std::shared_ptr<MR_CheckpointReader> reader_;
  Status status_;
};

// What a saver keeps, and how it writes and restores.
struct SaverOptions {
  int max_to_keep = 5;           // 2 or more; 0: all
  double keep_every_hours = -1;  // of those that are deleted, one for every so many hours stays; below 0: none
  // Save returns when the values are read, in one step, and a thread writes them while other steps run. The next Save
  // or Restore, and Wait, tell what went wrong with it.
  bool asynchronous = false;
  // The values are those of one moment between the session's steps that change variables: Save waits for those that
  // run, and those that begin meanwhile wait until the values are read. TF_FAILED_PRECONDITION where that cannot be had
  // (variables on servers that other sessions use, open partial runs). Otherwise steps of other threads may fall
  // between two variables, never into one.
  bool consistent = false;
  bool sharded = false;               // a file for each device that variables ask for
  bool restore_sequentially = false;  // one variable after the other, which wants less memory
  bool reshape = false;               // values take the variables' shapes
  int keep_best = 0;                  // so many with the best scores stay too
  bool best_is_least = false;         // the best score: the least one, as of a loss
};

// Saves and restores variables. It adds its operations to the graph: make it after the last variable. Copies are the
// same saver, for one thread at a time.
class Saver {
 public:
  // All variables of the graph.
  explicit Saver(const Graph& graph, int max_to_keep = 5) : Saver(graph, SaverOptions{.max_to_keep = max_to_keep}) {}
  // The same with options.
  Saver(const Graph& graph, const SaverOptions& options) { Make(graph, {}, nullptr, options); }
  // These, under their names.
  Saver(const Graph& graph, const std::vector<Variable>& variables, const SaverOptions& options = {}) {
    std::map<std::string, Variable> named;
    for (const Variable& v : variables) named[v.name()] = v;
    Make(graph, named, "no variables to save", options);
  }
  // These, each under the name that stands before it.
  Saver(const Graph& graph, const std::map<std::string, Variable>& variables, const SaverOptions& options = {}) {
    Make(graph, variables, "no variables to save", options);
  }

  // Sets SaverOptions::keep_every_hours.
  Done KeepEvery(double hours) { return internal::Finish(SetKeepEvery(hours)); }
  // Writes checkpoint "<prefix>-<step>", or "<prefix>" where the step is negative, and returns that name. A
  // folder that is missing is made. A score wants SaverOptions::keep_best.
  Returned<std::string> Save(const Session& session, const std::string& prefix, int64_t step,
                             std::optional<double> score = {}) {
    const Status s = TrySave(session, prefix, step, score);
    return internal::Give(s, step >= 0 ? prefix + "-" + std::to_string(step) : prefix);
  }
  // Returns when the checkpoint that an asynchronous Save began is whole; tells what went wrong with it, once.
  Done Wait() { return internal::Finish(TryWait()); }
  // Gives the variables the values of a checkpoint; others stay as they are. An error says in what it does not fit.
  Done Restore(const Session& session, const std::string& path) { return internal::Finish(TryRestore(session, path)); }

  // The same for who wants a status where others throw.
  Status TrySave(const Session& session, const std::string& prefix, int64_t step, std::optional<double> score = {}) {
    const Status s = state_->made.ok() ? state_->Wait() : state_->made;
    if (!s.ok()) return s;
    if (score && (state_->options.keep_best <= 0 || std::isnan(*score))) {
      return Status(TF_INVALID_ARGUMENT, "a score must be a number and wants a saver with keep_best");
    }
    const bool asynchronous = state_->options.asynchronous, consistent = state_->options.consistent;
    if (!asynchronous && !consistent) return state_->Write(session, nullptr, prefix, step, score);
    internal::CallStatus status;
    const auto read = consistent ? MR_SaverReadBetweenSteps : MR_SaverRead;
    const std::shared_ptr<MR_SaverSnapshot> snapshot(
        read(state_->saver.get(), session.get(), status), MR_SaverSnapshotDelete);
    if (snapshot && !asynchronous) return state_->Write(session, snapshot.get(), prefix, step, score);
    if (snapshot) {
      state_->thread = std::thread([state = state_.get(), session, snapshot, prefix, step, score] {
        state->result = state->Write(session, snapshot.get(), prefix, step, score);
      });
    }
    return status.Get();
  }
  // Wait with a status.
  Status TryWait() { return state_->Wait(); }
  // Restore with a status.
  Status TryRestore(const Session& session, const std::string& path) {
    const Status s = state_->made.ok() ? state_->Wait() : state_->made;
    if (!s.ok()) return s;
    internal::CallStatus status;
    MR_SaverRestore(state_->saver.get(), session.get(), path.c_str(), status);
    const Status restored = status.Get();
    return restored.ok() ? restored : Status(restored.code(), restored.message() + state_->Mismatch(path));
  }
  // Restores the newest checkpoint of a folder that is whole, and says on standard error which are not; `restored` is
  // its prefix, empty where there is none. The newest one's error when none is whole; one that lacks variables is an
  // error.
  Status TryRestoreNewest(const Session& session, const std::string& folder, std::string* restored) {
    restored->clear();
    const std::vector<std::string> prefixes = internal::CheckpointsOf(folder);
    Status newest;
    for (auto prefix = prefixes.rbegin(); prefix != prefixes.rend(); ++prefix) {
      const Status s = TryRestore(session, *prefix);
      if (s.ok()) {
        *restored = *prefix;
        return s;
      }
      const bool lacks_a_file = s.code() == TF_NOT_FOUND && state_->Mismatch(*prefix).empty();
      if (s.code() != TF_DATA_LOSS && !lacks_a_file) return s;
      std::fprintf(stderr, "checkpoint %s is damaged: %s\n", prefix->c_str(), s.message().c_str());
      if (newest.ok()) newest = s;
    }
    return newest;
  }
  // The saver goes on where another process stopped: these are the newest checkpoints, oldest first.
  Done RecoverLastCheckpoints(const std::vector<std::string>& paths) {
    Status s = state_->made.ok() ? state_->Wait() : state_->made;
    state_->newest = paths;
    if (s.ok()) s = state_->TellNewest();
    return internal::Finish(s);
  }
  // The newest checkpoints, oldest first.
  std::vector<std::string> last_checkpoints() {
    state_->Join();
    return state_->newest;
  }
  // An encoded SaverDef, for meta graphs.
  Returned<std::string> ToDef() const {
    if (!state_->made.ok()) return internal::Give(state_->made, std::string());
    internal::CallStatus status;
    internal::TextBuffer def;
    MR_SaverToDef(state_->saver.get(), def, status);
    return internal::Give(status.Get(), def.Text());
  }
  const Status& status() const { return state_->made; }  // of the making

 private:
  struct State {
    explicit State(const Graph& g) : graph(g) {}
    ~State() { Join(); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    void Join() {
      if (thread.joinable()) thread.join();
    }
    Status Wait() {
      Join();
      return std::exchange(result, Status());
    }
    Status Write(const Session& session, const MR_SaverSnapshot* snapshot, const std::string& prefix, int64_t step,
                 std::optional<double> score) {
      internal::CallStatus status;
      internal::TextBuffer path;
      MR_SaverSaveSnapshot(saver.get(), session.get(), snapshot, prefix.c_str(), step, 1, path, status);
      return status.ok() ? Note(path.Text(), score) : status.Get();
    }
    // Keeps its own list of what the core keeps, and takes out of that the best ones before they would be deleted.
    Status Note(const std::string& path, std::optional<double> score) {
      const auto keep = static_cast<size_t>(std::max(options.max_to_keep, 0));
      std::erase(newest, path);
      newest.push_back(path);
      while (keep > 0 && newest.size() > keep) newest.erase(newest.begin());
      if (options.keep_best <= 0) return Status();
      const std::string folder = internal::FolderOf(path);
      if (score) {
        internal::CallStatus status;
        internal::TextBuffer forgotten;
        MR_NoteCheckpointScore(folder.c_str(), "checkpoint", path.c_str(), *score, options.keep_best,
                               options.best_is_least, forgotten, status);
        if (!status.ok()) return status.Get();
        std::vector<std::string> gone = internal::PrefixesOf(forgotten);
        std::erase_if(gone, [&](const auto& p) { return std::find(newest.begin(), newest.end(), p) != newest.end(); });
        newest.insert(newest.begin(), gone.begin(), gone.end());
      }
      std::vector<std::string> best;
      if (const Status s = internal::BestCheckpoints(folder, options.keep_best, options.best_is_least, &best);
          !s.ok()) {
        return s;
      }
      for (size_t i = 0; keep > 0 && i + keep < newest.size() + 1;) {
        const bool is_best = std::find(best.begin(), best.end(), newest[i]) != best.end();
        if (is_best)
          newest.erase(newest.begin() + static_cast<std::ptrdiff_t>(i));
        else
          ++i;
      }
      return TellNewest();
    }
    Status TellNewest() {
      std::vector<const char*> raw;
      for (const std::string& p : newest) raw.push_back(p.c_str());
      internal::CallStatus status;
      MR_SaverSetCheckpoints(saver.get(), raw.data(), nullptr, static_cast<int>(raw.size()), status);
      return status.Get();
    }
    // What the checkpoint lacks; empty when that is nothing, or it cannot be read.
    std::string Mismatch(const std::string& path) const {
      internal::CallStatus status;
      const std::unique_ptr<MR_CheckpointReader, void (*)(MR_CheckpointReader*)> reader(
          MR_CheckpointReaderOpen(path.c_str(), status), MR_CheckpointReaderDelete);
      if (!reader) return {};
      std::set<std::string> has;
      for (int i = 0; i < MR_CheckpointReaderNumTensors(reader.get()); ++i) {
        has.insert(MR_CheckpointReaderName(reader.get(), i));
      }
      std::string missing, unexpected;
      for (const std::string& name : names) {
        if (has.erase(name) == 0) missing += "\n    " + name;
      }
      for (const std::string& name : has) unexpected += "\n    " + name;
      std::string told = "\n\n" + path + " does not fit these variables:";
      if (missing.empty()) return {};
      told += "\n  not in the checkpoint:" + missing;
      return unexpected.empty() ? told : told + "\n  in the checkpoint alone:" + unexpected;
    }

    Graph graph;  // kept alive
    SaverOptions options;
    std::shared_ptr<MR_Saver> saver;
    Status made;  // how the making ended
    std::vector<std::string> names, newest;
    std::thread thread;
    Status result;  // of the thread, once it is joined
  };

  void Make(const Graph& graph, const std::map<std::string, Variable>& variables, const char* none,
            const SaverOptions& options) {
    state_ = std::make_shared<State>(graph);
    state_->options = options;
    std::vector<TF_Output> raw;
    std::vector<const char*> keys;
    for (const auto& [name, variable] : variables) {
      raw.push_back(variable.ref.get());
      keys.push_back(name.c_str());
      state_->names.push_back(name);
    }
    if (!none) {
      for (const Variable& v : GlobalVariables(graph)) state_->names.push_back(v.name());
    }
    internal::CallStatus status;
    if (none && raw.empty()) {
      state_->made = Status(TF_INVALID_ARGUMENT, none);
    } else {
      state_->saver.reset(MR_SaverCreateWith(graph.get(), raw.data(), keys.data(), static_cast<int>(raw.size()),
                                             options.max_to_keep, FlagsOf(options), status),
                          MR_SaverDelete);
      state_->made = status.Get();
    }
    if (state_->made.ok() && options.keep_every_hours >= 0) state_->made = SetKeepEvery(options.keep_every_hours);
#if MILLRACE_EXCEPTIONS
    if (!state_->made.ok()) throw Error(state_->made);
#endif
  }
  static int FlagsOf(const SaverOptions& options) {
    return (options.sharded ? MR_SAVER_SHARDED : 0) |
           (options.restore_sequentially ? MR_SAVER_RESTORE_SEQUENTIALLY : 0) |
           (options.reshape ? MR_SAVER_RESHAPE : 0);
  }
  Status SetKeepEvery(double hours) {
    if (!state_->made.ok()) return state_->made;
    state_->Join();
    internal::CallStatus status;
    MR_SaverKeepEvery(state_->saver.get(), hours, status);
    return status.Get();
  }

  std::shared_ptr<State> state_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
