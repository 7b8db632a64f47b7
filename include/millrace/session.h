// SPDX-License-Identifier: Apache-2.0
// Sessions of the C++ client.
#pragma once

#include "millrace/graph.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

struct Feed {
  Output to;
  Tensor value;
};

struct SessionOptions {
  std::string target;  // "" or "local": this process
  std::string config;  // an encoded ConfigProto
};

// Runs parts of a graph, also those added after the session was made. Several threads may run it at once.
class Session {
 public:
  Session() = default;  // none
  explicit Session(const Graph& graph, const SessionOptions& options = {}) {
    internal::CallStatus status;
    TF_SessionOptions* o = Api().NewSessionOptions();
    Api().SetTarget(o, options.target.c_str());
    Api().SetConfig(o, options.config.data(), options.config.size(), status);
    if (status.ok()) Hold(Api().NewSession(graph.get(), o, status));
    Api().DeleteSessionOptions(o);
    SetStatus(status.Get());
  }
  // Loads a SavedModel directory's meta graph with exactly these tags into `graph`, which must be empty.
  static Returned<Session> Load(const std::string& directory, const std::vector<std::string>& tags, Graph* graph) {
    internal::CallStatus status;
    std::vector<const char*> raw;
    for (const std::string& tag : tags) raw.push_back(tag.c_str());
    Session session;
    session.Hold(Api().LoadSessionFromSavedModel(
        nullptr, nullptr, directory.c_str(), raw.data(), static_cast<int>(raw.size()), graph->get(), nullptr, status));
    return internal::Give(status.Get(), std::move(session));
  }

  // One step: the values of `fetches`, with `feeds` in place of what the graph computes; `targets` run too.
  Returned<std::vector<Tensor>> Run(const std::vector<Feed>& feeds, const std::vector<Output>& fetches,
                                    const std::vector<Operation>& targets = {}) const {
    if (!session_) return internal::Give(status_.ok() ? NoSession() : status_, std::vector<Tensor>());
    std::vector<TF_Output> inputs, outputs;
    std::vector<TF_Tensor*> values, results(fetches.size());
    std::vector<const TF_Operation*> operations;
    for (const Feed& feed : feeds) {
      inputs.push_back(feed.to.get());
      values.push_back(feed.value.get());
    }
    for (const Output& fetch : fetches) outputs.push_back(fetch.get());
    for (const Operation& target : targets) operations.push_back(target.get());
    internal::CallStatus status;
    Api().SessionRun(session_.get(), nullptr, inputs.data(), values.data(), static_cast<int>(inputs.size()),
                     outputs.data(), results.data(), static_cast<int>(outputs.size()), operations.data(),
                     static_cast<int>(operations.size()), nullptr, status);
    std::vector<Tensor> tensors;
    for (TF_Tensor* t : results) tensors.push_back(t ? Tensor(t) : Tensor());
    return internal::Give(status.Get(), std::move(tensors));
  }
  Returned<std::vector<Tensor>> Run(const std::vector<Output>& fetches) const { return Run({}, fetches); }
  Done RunTargets(const std::vector<Operation>& targets, const std::vector<Feed>& feeds = {}) const {
#if MILLRACE_EXCEPTIONS
    Run(feeds, {}, targets);
#else
    return Run(feeds, {}, targets).status();
#endif
  }

  // Where random ops are in their streams: to be kept beside a checkpoint, and set in the session that goes on from it,
  // between steps.
  Returned<std::string> RandomState() const {
    internal::CallStatus status;
    TF_Buffer* buffer = Api().NewBuffer();
    Api().SessionRandomState(session_.get(), buffer, status);
    std::string text(static_cast<const char*>(buffer->data), buffer->length);
    Api().DeleteBuffer(buffer);
    return internal::Give(status.Get(), std::move(text));
  }
  Done SetRandomState(const std::string& state) const {
    internal::CallStatus status;
    Api().SetSessionRandomState(session_.get(), state.data(), state.size(), status);
    return internal::Finish(status.Get());
  }

  // Cancels what runs; later runs fail with TF_CANCELLED.
  Done Close() {
    internal::CallStatus status;
    Api().CloseSession(session_.get(), status);
    return internal::Finish(status.Get());
  }
  explicit operator bool() const { return session_ != nullptr; }
  const Status& status() const { return status_; }  // of the making
  TF_Session* get() const { return session_.get(); }

 private:
  static Status NoSession() { return Status(TF_FAILED_PRECONDITION, "there is no session"); }
  void Hold(TF_Session* s) {
    if (s == nullptr) return;
    session_ = std::shared_ptr<TF_Session>(s, [](TF_Session* p) {
      internal::CallStatus status;
      Api().DeleteSession(p, status);
    });
  }
  void SetStatus(Status s) {
    status_ = std::move(s);
#if MILLRACE_EXCEPTIONS
    if (!status_.ok()) throw Error(status_);
#endif
  }

  std::shared_ptr<TF_Session> session_;
  Status status_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
