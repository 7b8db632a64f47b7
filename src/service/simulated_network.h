// SPDX-License-Identifier: Apache-2.0
// A network in one process, for tests: messages between masters and workers take a time that a seed draws, overtake
// each other, and arrive as copies.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/step_thread.h"
#include "service/worker_interface.h"

namespace millrace {

// Used by one thread, the one on which all that `after` was given is called.
class SimulatedNetwork {
 public:
  // Calls a function when a time has passed.
  using After = std::function<void(absl::Duration, absl::AnyInvocable<void() &&>)>;
  SimulatedNetwork(uint64_t seed, absl::Duration longest_delay, After after);
  ~SimulatedNetwork();

  // The worker answers to its task's name from now on; steps that continue after a wait do so on `thread`.
  void Attach(WorkerInterface* worker, StepThread* thread);
  // The worker of that name has died: messages to it, and answers of it that are under way, come back as Unavailable.
  void Detach(const std::string& task);
  // What stands for the worker of that name at its callers; lives as long as the network.
  WorkerInterface* Stub(const std::string& task);
  // Finds stubs.
  WorkerDirectory* directory();

  int64_t num_messages() const { return num_messages_; }

 private:
  struct Host {
    WorkerInterface* worker = nullptr;
    StepThread* thread = nullptr;
    int64_t life = 0;  // counts deaths
  };
  class StubWorker;
  class Directory;
  absl::Duration Delay();

  uint64_t random_;
  const absl::Duration longest_delay_;
  const After after_;
  int64_t num_messages_ = 0;
  std::map<std::string, Host> hosts_;
  std::map<std::string, std::unique_ptr<StubWorker>> stubs_;
  std::unique_ptr<Directory> directory_;
};

}  // namespace millrace
