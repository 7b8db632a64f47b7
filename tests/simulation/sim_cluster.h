// SPDX-License-Identifier: Apache-2.0
// A cluster in a simulated world: a machine a task, each with a server, a disk, and programs that are clients. Used by
// the world's threads, of which one runs at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/session.h"
#include "cluster/server.h"
#include "simulation/sim_host.h"
#include "simulation/sim_network.h"

namespace millrace {

class SimCluster;

inline std::string OnTask(absl::string_view job, int index) { return absl::StrCat("/job:", job, "/task:", index); }

class SimTask {
 public:
  SimTask(SimCluster& cluster, std::string job, int index, uint64_t seed);

  std::string name() const { return OnTask(job_, index_); }
  const std::string& machine() const { return host_.name(); }  // "ps0"
  std::string address() const { return machine() + ":1"; }
  std::string target() const { return "grpc://" + address(); }
  SimHost& host() { return host_; }
  Channels& channels() { return *channels_; }
  // Counts deaths: a program ends when it is not what it was when the program began.
  int64_t life() const { return life_; }
  bool is_up() const { return is_up_; }
  Server& server() { return *server_; }

  // A program of this machine, which is started again with the machine.
  void SetProgram(std::function<void(SimTask&)> program) { program_ = std::move(program); }
  // REQUIRES: it is down. Runs on a thread of the world.
  Status Start();
  // The machine dies at once: nothing that it says is heard any more, nothing is written to its disk, of which
  // `survival` remains. What was in memory ends behind the scenes; returns when it has.
  void Crash(FakeDisk::Survival survival, uint64_t seed);
  void AwaitPrograms();
  // As by SIGTERM.
  void Stop();

 private:
  void Discard();

  SimCluster& cluster_;
  const std::string job_;
  const int index_;
  SimHost host_;
  std::function<void(SimTask&)> program_;
  int64_t life_ = 0;
  bool is_up_ = false;
  int num_programs_ = 0;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Channels> channels_;
  std::unique_ptr<Server> server_;
};

class SimCluster {
 public:
  // `num_ps` tasks of job "ps", then those of job "worker". None runs.
  SimCluster(uint64_t seed, int num_ps, int num_workers);

  FakeEnv& world() { return world_; }
  SimNetwork& network() { return network_; }
  const std::vector<std::unique_ptr<SimTask>>& tasks() const { return tasks_; }
  SimTask& ps(int i) { return *tasks_[static_cast<size_t>(i)]; }
  SimTask& worker(int i) { return *tasks_[static_cast<size_t>(num_ps_ + i)]; }
  int num_ps() const { return num_ps_; }
  int num_workers() const { return static_cast<int>(tasks_.size()) - num_ps_; }
  const wire::ClusterDef& def() const { return def_; }

  // What happens is written down from now on, one line an event with its time.
  void WriteTrace();
  void Note(const std::string& what);
  const std::vector<std::string>& trace() const { return trace_; }

 private:
  FakeEnv world_;
  SimNetwork network_;
  const int num_ps_;
  wire::ClusterDef def_;
  std::vector<std::unique_ptr<SimTask>> tasks_;
  bool writes_trace_ = false;
  std::vector<std::string> trace_;
};

}  // namespace millrace
