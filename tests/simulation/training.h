// SPDX-License-Identifier: Apache-2.0
// Training programs for a simulated cluster, which restart from checkpoints as long as they must, and what is known of
// them from outside: whether each value that they see may be.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph_builder.h"
#include "simulation/sim_cluster.h"

namespace millrace {

struct TrainingPlan {
  int num_steps = 8;  // of a client
  int save_every = 3;
  absl::Duration think_time = absl::Milliseconds(300);     // at most so long between two steps
  absl::Duration step_timeout = absl::InfiniteDuration();  // of what a client asks for
  bool chief_lies = false;                                 // whether fsync on the chief's disk is a lie
  bool does_others = false;                                // whether clients do other work beside
  uint64_t seed = 1;
};

class Training {
 public:
  explicit Training(SimCluster& cluster, const TrainingPlan& plan)
      : cluster_(cluster), plan_(plan), random_(plan.seed) {}
  virtual ~Training() = default;

  // Gives the workers their programs.
  virtual void SetPrograms() = 0;
  virtual bool is_over() const = 0;
  // Asks all programs to end.
  void Stop() { is_stopped_ = true; }
  // What must not be, and was.
  const std::vector<std::string>& failures() const { return failures_; }
  // Of what was done, for people: recoveries, saves.
  int64_t num_recoveries = 0, num_saves = 0, num_restores = 0, num_errors = 0, num_others = 0;

 protected:
  class Client;
  // Nodes in a client's graph, for other_work.cc.
  struct OtherWork {
    Output x, y, first, second;  // of a partial run over two tasks
    Output item, taken;          // of a queue that all clients share
    Node* put = nullptr;
    std::vector<Output> sums;  // of collective ops over all workers
    void Build(const GraphBuilder& b, int num_ps, int num_workers, int own);
  };
  // One of these.
  Status DoOtherWork(SimTask& task, int64_t life, Client& client, const OtherWork& work);
  bool DoesOtherWorkNow() { return plan_.does_others && NextRandom(&random_) % 3 == 0; }
  void Fail(const std::string& what);
  void Sleep(SimTask& task, absl::Duration longest);
  // Whether the program of that life of the task goes on.
  bool GoesOn(const SimTask& task, int64_t life) const {
    return !is_stopped_ && failures_.empty() && task.life() == life;
  }
  // An error that faults explain.
  bool MayBe(const Status& s);

  SimCluster& cluster_;
  const TrainingPlan plan_;
  uint64_t random_;
  bool is_stopped_ = false;
  std::vector<std::string> failures_;

 private:
  Status RunInParts(SimTask& task, int64_t life, Client& client, const OtherWork& work, float x);
  Status PutAndTake(SimTask& task, int64_t life, Client& client, const OtherWork& work);
  Status AddUp(SimTask& task, int64_t life, Client& client, const OtherWork& work, float x);

  int64_t num_items_ = 0;  // that were put into the queue, or may have been
  std::set<int64_t> taken_;
};

// One client on the first worker drives all workers, step by step; every value is the one that a process alone gets.
std::unique_ptr<Training> NewSynchronousTraining(SimCluster& cluster, const TrainingPlan& plan);
// A client on each worker adds to counters of parameter servers: what was acknowledged is there, once.
std::unique_ptr<Training> NewAsynchronousTraining(SimCluster& cluster, const TrainingPlan& plan);

}  // namespace millrace
