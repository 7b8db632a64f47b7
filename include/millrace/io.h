// SPDX-License-Identifier: Apache-2.0
// Checkpoints and event files of the C++ client.
#pragma once

#include "millrace/c_api_io.h"
#include "millrace/session.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// The prefix of the newest checkpoint in a folder; empty when there is none.
inline std::string LatestCheckpoint(const std::string& folder) {
  internal::CallStatus status;
  internal::TextBuffer prefix;
  MR_LatestCheckpoint(folder.c_str(), prefix, status);
  return status.ok() ? prefix.Text() : std::string();
}

// Saves and restores all variables of a graph: make it after the last of them. The newest `max_to_keep` (2 or more)
// checkpoints stay, and with KeepEvery one for every so many hours besides.
class Saver {
 public:
  explicit Saver(const Graph& graph, int max_to_keep = 5) : graph_(graph) {
    internal::CallStatus status;
    saver_.reset(MR_SaverCreate(graph.get(), nullptr, nullptr, 0, max_to_keep, status), MR_SaverDelete);
    error_ = status.Get();
#if MILLRACE_EXCEPTIONS
    if (!error_.ok()) throw Error(error_);
#endif
  }
  Done KeepEvery(double hours) {
    if (!saver_) return internal::Finish(error_);
    internal::CallStatus status;
    MR_SaverKeepEvery(saver_.get(), hours, status);
    return internal::Finish(status.Get());
  }
  // Writes checkpoint "<prefix>-<step>" and returns that name.
  Returned<std::string> Save(const Session& session, const std::string& prefix, int64_t step) {
    if (!saver_) return internal::Give(error_, std::string());
    internal::CallStatus status;
    internal::TextBuffer path;
    MR_SaverSave(saver_.get(), session.get(), prefix.c_str(), step, 1, path, status);
    return internal::Give(status.Get(), status.ok() ? path.Text() : std::string());
  }
  Done Restore(const Session& session, const std::string& path) {
    if (!saver_) return internal::Finish(error_);
    internal::CallStatus status;
    MR_SaverRestore(saver_.get(), session.get(), path.c_str(), status);
    return internal::Finish(status.Get());
  }

 private:
  Graph graph_;
  std::shared_ptr<MR_Saver> saver_;
  Status error_;
};

// A new event file for TensorBoard in `folder`.
class EventWriter {
 public:
  explicit EventWriter(const std::string& folder) {
    internal::CallStatus status;
    writer_ = {MR_EventWriterOpen(folder.c_str(), nullptr, status), [](MR_EventWriter* w) {
                 internal::CallStatus ignored;
                 if (w) MR_EventWriterClose(w, ignored);
               }};
    error_ = status.Get();
#if MILLRACE_EXCEPTIONS
    if (!error_.ok()) throw Error(error_);
#endif
  }
  Done AddGraph(const Graph& graph) {
    if (!writer_) return internal::Finish(error_);
    internal::CallStatus status;
    MR_EventWriterAddGraph(writer_.get(), graph.get(), status);
    return internal::Finish(status.Get());
  }
  // `summary` is what a summary op returned.
  Done AddSummary(const std::string& summary, int64_t step) {
    if (!writer_) return internal::Finish(error_);
    internal::CallStatus status;
    MR_EventWriterAddSummary(writer_.get(), summary.data(), summary.size(), step, status);
    if (status.ok()) MR_EventWriterFlush(writer_.get(), status);
    return internal::Finish(status.Get());
  }

 private:
  std::shared_ptr<MR_EventWriter> writer_;
  Status error_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
