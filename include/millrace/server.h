// SPDX-License-Identifier: Apache-2.0
// A task of a cluster in this process (docs/cluster.md).
//
//   millrace::Server server({{"worker", {"localhost:0"}}}, "worker", 0);
//   millrace::Session session(graph, {server.target()});
#pragma once

#include "millrace/session.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// The addresses of the tasks of each job.
using ClusterSpec = std::map<std::string, std::vector<std::string>>;

// Copies are the same server, which stops with the last of them. One that could not be made answers with its status().
class Server {
 public:
  Server() = default;  // none
  // Makes the task and, unless `start` is false, lets it answer. TF_INVALID_ARGUMENT: the cluster has no such task;
  // TF_UNKNOWN or TF_UNAVAILABLE: nobody can listen at its address.
  Server(const ClusterSpec& cluster, const std::string& job, int task, bool start = true,
         const std::string& encoded_config = {}, const std::string& protocol = "grpc") {
    internal::Encoder jobs;
    for (const auto& [name, tasks] : cluster) {
      internal::Encoder j;
      j.Text(1, name);
      for (size_t i = 0; i < tasks.size(); ++i) {
        j.Message(2, internal::Encoder().Int(1, static_cast<int64_t>(i)).Text(2, tasks[i]));
      }
      jobs.Message(1, j);
    }
    internal::Encoder def;
    def.Message(1, jobs).Text(2, job).Int(3, task).Text(4, encoded_config).Text(5, protocol);
    internal::CallStatus status;
    TF_Server* made = Api().NewServer(def.bytes().data(), def.bytes().size(), status);
    if (made) server_ = {made, [](TF_Server* s) { Api().DeleteServer(s); }};
    if (status.ok() && start) Api().ServerStart(server_.get(), status);
    status_ = status.Get();
#if MILLRACE_EXCEPTIONS
    if (!status_.ok()) throw Error(status_);
#endif
  }
  // A cluster of this one task, at a free port.
  static Server Local(const std::string& encoded_config = {}) {
    return Server({{"local", {"localhost:0"}}}, "local", 0, true, encoded_config);
  }

  // Begins to listen, where the constructor was told not to.
  Done Start() const { return Call(Api().ServerStart); }
  // Ends what runs, and drops the task's state.
  Done Stop() const { return Call(Api().ServerStop); }
  // Returns when somebody has stopped the server.
  Done Join() const { return Call(Api().ServerJoin); }
  // "grpc://host:port", for SessionOptions.
  std::string target() const { return server_ ? Api().ServerTarget(server_.get()) : ""; }
  // What it tells of itself: tasks, steps, bytes, who waits; one JSON object.
  Returned<std::string> Describe() const {
    internal::CallStatus status;
    internal::TextBuffer json;
    Api().ServerStatus(server_.get(), json, status);
    return internal::Give(status.Get(), json.Text());
  }
  // Whether there is one that could be made.
  explicit operator bool() const { return server_ != nullptr && status_.ok(); }
  const Status& status() const { return status_; }  // of the making

 private:
  Done Call(void (*what)(TF_Server*, TF_Status*)) const {
    internal::CallStatus status;
    what(server_.get(), status);
    return internal::Finish(status.Get());
  }
  std::shared_ptr<TF_Server> server_;
  Status status_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
