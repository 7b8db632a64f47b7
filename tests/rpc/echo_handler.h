// SPDX-License-Identifier: Apache-2.0
// The handler of the transports' tests and of their little server program.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "cluster/rpc.h"

namespace millrace {

// Echo: the request. Size: how many bytes it has. Fail: an error whose code is the request's first byte and whose text
// is the rest. Peer: who called, and the names of the certificate. Timeout: what is left, in ms. Later: the request,
// from another thread. Hang: replies when it is cancelled. Drop: never replies. Note: nothing, but Notes replies what
// such calls brought, a line each.
class EchoHandler final : public RpcHandler {
 public:
  explicit EchoHandler(Env& env) : env_(env) {}

  void Handle(absl::string_view method, const RpcContext& context, absl::Cord request, RpcReply reply) override {
    if (method == "Echo") return std::move(reply)(std::move(request));
    if (method == "Size") return std::move(reply)(absl::Cord(absl::StrCat(request.size())));
    if (method == "Fail") return std::move(reply)(Failure(std::string(request)));
    if (method == "Peer") {
      std::string text = context.peer;
      for (const std::string& name : context.peer_names) absl::StrAppend(&text, "\n", name);
      return std::move(reply)(absl::Cord(text));
    }
    if (method == "Timeout") {
      return std::move(reply)(absl::Cord(absl::StrCat(absl::ToInt64Milliseconds(context.timeout))));
    }
    if (method == "Later") {
      return env_.Schedule([request = std::move(request), reply = std::move(reply)]() mutable {
        std::move(reply)(std::move(request));
      });
    }
    if (method == "Hang") return Hang(context, std::move(reply));
    if (method == "Drop") return;
    if (method == "Note") {
      {
        absl::MutexLock lock(&mu_);
        notes_.push_back(std::string(request));
      }
      return std::move(reply)(absl::Cord());
    }
    if (method == "Notes") return std::move(reply)(absl::Cord(Notes()));
    std::move(reply)(Unimplemented("no method '", method, "'"));
  }

  int64_t hanging() const { return hanging_; }
  int64_t cancelled() const { return cancelled_; }

 private:
  static Status Failure(const std::string& request) {
    if (request.empty()) return InvalidArgument("want a code");
    return Status(static_cast<absl::StatusCode>(request[0]), request.substr(1));
  }

  void Hang(const RpcContext& context, RpcReply reply) {
    auto kept = std::make_shared<RpcReply>(std::move(reply));
    ++hanging_;
    const auto give_up = [this, kept] {
      ++cancelled_;
      --hanging_;
      // Not on this thread: the reply ends the manager that is running us.
      env_.Schedule([kept] { std::move (*kept)(Cancelled("hung until it was cancelled")); });
    };
    if (context.cancellation->Register(give_up) == CancellationManager::kInvalid) give_up();
  }

  std::string Notes() {
    std::string all;
    absl::MutexLock lock(&mu_);
    for (const std::string& note : notes_) absl::StrAppend(&all, note, "\n");
    return all;
  }

  Env& env_;
  absl::Mutex mu_;
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mu_);
  std::atomic<int64_t> hanging_{0}, cancelled_{0};
};

}  // namespace millrace
