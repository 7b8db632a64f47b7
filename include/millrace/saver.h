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
#include <cstdlib>
#include <optional>
#include <set>
#include <thread>

#include "millrace/c_api_io.h"
#include "millrace/variable.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

namespace internal {

// The whole file. TF_NOT_FOUND: it cannot be read.
inline Status ReadWholeFile(const std::string& path, std::string* text) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return Status(TF_NOT_FOUND, "cannot open " + path);
  char part[1 << 14];
  for (size_t n = 0; (n = std::fread(part, 1, sizeof part, file)) > 0;) text->append(part, n);
  const bool good = std::ferror(file) == 0;
  std::fclose(file);
  return good ? Status() : Status(TF_DATA_LOSS, "cannot read " + path);
}
// Either the old file or the new one is there, whatever happens meanwhile.
inline Status WriteWholeFile(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".tmp";
  std::FILE* file = std::fopen(fresh.c_str(), "wb");
  bool good = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file) good = std::fclose(file) == 0 && good;
  good = good && std::rename(fresh.c_str(), path.c_str()) == 0;
  return good ? Status() : Status(TF_UNKNOWN, "cannot write " + path);
}
inline std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash == 0 ? 1 : slash);
}

// The scores of a folder's checkpoints, in the order in which they were noted; the file is Python's.
class Scores {
 public:
  explicit Scores(const std::string& folder) : folder_(folder), file_(folder + "/checkpoint.scores") {}
  // None where there is no file. TF_DATA_LOSS: the file holds something else.
  Status Read() {
    std::string text;
    all_.clear();
    const Status s = ReadWholeFile(file_, &text);
    if (s.code() == TF_NOT_FOUND) return Status();
    if (!s.ok()) return s;
    size_t at = text.find('{');
    while (at != std::string::npos) {
      const size_t open = text.find('"', at), close = open == std::string::npos ? open : text.find('"', open + 1);
      if (open == std::string::npos) break;
      const std::string name = close == std::string::npos ? std::string() : text.substr(open + 1, close - open - 1);
      const size_t colon = close == std::string::npos ? close : text.find(':', close);
      if (colon == std::string::npos || name.find('\\') != std::string::npos) return Damaged();
      char* end = nullptr;
      const double score = std::strtod(text.c_str() + colon + 1, &end);
      if (end == text.c_str() + colon + 1) return Damaged();
      all_.emplace_back(name, score);
      at = static_cast<size_t>(end - text.c_str());
    }
    return text.find('{') == std::string::npos ? Damaged() : Status();
  }
  Status Write() const {
    std::string text = "{";
    char number[64];
    for (size_t i = 0; i < all_.size(); ++i) {
      std::snprintf(number, sizeof number, "%.17g", all_[i].second);
      text += std::string(i == 0 ? "\n \"" : ",\n \"") + all_[i].first + "\": " + number;
    }
    return WriteWholeFile(file_, text + "\n}");
  }
  // The best ones first; of equals the newer.
  std::vector<std::string> Best(size_t count, bool least) const {
    std::vector<size_t> order(all_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return least ? all_[a].second < all_[b].second : all_[a].second > all_[b].second;
    });
    std::vector<std::string> best;
    for (size_t i = 0; i < order.size() && i < count; ++i) best.push_back(PathOf(all_[order[i]].first));
    return best;
  }
  // Notes a score and forgets all but the best; the paths that are forgotten.
  std::vector<std::string> Add(const std::string& path, double score, size_t count, bool least) {
    const std::string name = path.substr(path.rfind('/') + 1);
    std::erase_if(all_, [&](const auto& s) { return s.first == name; });
    all_.emplace_back(name, score);
    const std::vector<std::string> best = Best(count, least);
    std::vector<std::string> forgotten;
    std::erase_if(all_, [&](const auto& s) {
      const bool stays = std::find(best.begin(), best.end(), PathOf(s.first)) != best.end();
      if (!stays) forgotten.push_back(PathOf(s.first));
      return !stays;
    });
    return forgotten;
  }

 private:
  Status Damaged() const { return Status(TF_DATA_LOSS, file_ + " holds no scores"); }
  std::string PathOf(const std::string& name) const { return folder_ == "." ? name : folder_ + "/" + name; }
  const std::string folder_, file_;
  std::vector<std::pair<std::string, double>> all_;  // by name within the folder
};

}  // namespace internal

// The prefix of the newest checkpoint in a folder; empty when there is none.
inline std::string LatestCheckpoint(const std::string& folder) {
  internal::CallStatus status;
  internal::TextBuffer prefix;
  MR_LatestCheckpoint(folder.c_str(), prefix, status);
  return status.ok() ? prefix.Text() : std::string();
}

// That of the checkpoint with the best score; empty when none has one.
inline std::string BestCheckpoint(const std::string& folder, bool best_is_least = false) {
  internal::Scores scores(folder);
  if (!scores.Read().ok()) return {};
  const std::vector<std::string> best = scores.Best(1, best_is_least);
  return best.empty() ? std::string() : best[0];
}

// What a checkpoint holds.
class CheckpointReader {
 public:
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

struct SaverOptions {
  int max_to_keep = 5;           // 2 or more; 0: all
  double keep_every_hours = -1;  // of those that are deleted, one for every so many hours stays; below 0: none
  // Save returns when the values are read, in one step, and a thread writes them while other steps run. The next Save
  // or Restore, and Wait, tell what went wrong with it.
  bool asynchronous = false;
  int keep_best = 0;           // so many with the best scores stay too
  bool best_is_least = false;  // the best score: the least one, as of a loss
};

// Saves and restores variables. It adds its operations to the graph: make it after the last variable. Copies are the
// same saver, for one thread at a time.
class Saver {
 public:
  // All variables of the graph.
  explicit Saver(const Graph& graph, int max_to_keep = 5) : Saver(graph, SaverOptions{.max_to_keep = max_to_keep}) {}
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
    if (!state_->options.asynchronous) return state_->Write(session, nullptr, prefix, step, score);
    internal::CallStatus status;
    const std::shared_ptr<MR_SaverSnapshot> snapshot(
        MR_SaverRead(state_->saver.get(), session.get(), status), MR_SaverSnapshotDelete);
    if (snapshot) {
      state_->thread = std::thread([state = state_.get(), session, snapshot, prefix, step, score] {
        state->result = state->Write(session, snapshot.get(), prefix, step, score);
      });
    }
    return status.Get();
  }
  Status TryWait() { return state_->Wait(); }
  Status TryRestore(const Session& session, const std::string& path) {
    const Status s = state_->made.ok() ? state_->Wait() : state_->made;
    if (!s.ok()) return s;
    internal::CallStatus status;
    MR_SaverRestore(state_->saver.get(), session.get(), path.c_str(), status);
    const Status restored = status.Get();
    return restored.ok() ? restored : Status(restored.code(), restored.message() + state_->Mismatch(path));
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
      internal::Scores scores(internal::FolderOf(path));
      if (const Status s = scores.Read(); !s.ok()) return s;
      const auto count = static_cast<size_t>(options.keep_best);
      if (score) {
        std::vector<std::string> gone = scores.Add(path, *score, count, options.best_is_least);
        if (const Status s = scores.Write(); !s.ok()) return s;
        std::erase_if(gone, [&](const auto& p) { return std::find(newest.begin(), newest.end(), p) != newest.end(); });
        newest.insert(newest.begin(), gone.begin(), gone.end());
      }
      const std::vector<std::string> best = scores.Best(count, options.best_is_least);
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
      state_->saver.reset(
          MR_SaverCreate(
              graph.get(), raw.data(), keys.data(), static_cast<int>(raw.size()), options.max_to_keep, status),
          MR_SaverDelete);
      state_->made = status.Get();
    }
    if (state_->made.ok() && options.keep_every_hours >= 0) state_->made = SetKeepEvery(options.keep_every_hours);
#if MILLRACE_EXCEPTIONS
    if (!state_->made.ok()) throw Error(state_->made);
#endif
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
