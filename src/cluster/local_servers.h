// SPDX-License-Identifier: Apache-2.0
// The servers of this process, by address, so that they and their clients find each other without a network.
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "cluster/cluster_spec.h"
#include "cluster/master_interface.h"
#include "service/worker_interface.h"

namespace millrace {

struct LocalServer {
  std::string task;
  MasterInterface* master = nullptr;
  WorkerInterface* worker = nullptr;
};

class LocalServers {
  struct Entry;

 public:
  static LocalServers& Get();

  // Keeps a server where it is while it is held.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& o) noexcept = default;
    Hold& operator=(Hold&& o) noexcept;
    ~Hold() { Release(); }
    explicit operator bool() const { return entry_ != nullptr; }
    const LocalServer* operator->() const;

   private:
    friend class LocalServers;
    explicit Hold(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}
    void Release();
    std::shared_ptr<Entry> entry_;
  };

  // Nobody finds it before Open. False when there is a server of that address.
  bool Add(const HostPort& address, const LocalServer& server);
  // Adds it under a port of this host that no other server of this process has: one that nobody can reach from outside.
  HostPort AddAnywhere(const std::string& host, const LocalServer& server);
  void Open(const HostPort& address);
  // Nobody finds it any more.
  void Withdraw(const HostPort& address);
  // Waits in `env` until nobody holds it. REQUIRES: withdrawn.
  void Remove(const HostPort& address, Env& env);
  // False when there is none.
  Hold Find(const HostPort& address);

 private:
  LocalServers() = default;
  std::shared_ptr<Entry> At(const HostPort& address);
  absl::Mutex mu_;
  std::map<std::string, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
