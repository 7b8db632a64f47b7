// SPDX-License-Identifier: Apache-2.0
// MasterSession: a session as its master has it: the client's graph, its Coordinator, and what the configuration says
// of steps. Thread-safe.
#pragma once

#include "kernel/cancellation.h"
#include "service/coordinator.h"
#include "service/placement_periods.h"
#include "service/trace_files.h"
#include "service/trace_writer.h"
#include "wire/config.h"

namespace millrace {

class MasterSession {
 public:
  // Of a call, and no part of what it asks for. Both may be null, and live until it returns.
  struct Call {
    CancellationManager* cancellation = nullptr;
    const InterruptCheck* interrupt = nullptr;  // null: the coordinator's own
  };

  // `options` come from `config`, with what is not the configuration's. As of Coordinator otherwise.
  MasterSession(RefPtr<SharedGraph> graph, const wire::ConfigProto& config, std::vector<WorkerInterface*> workers,
                uint64_t id, CoordinatorOptions options, TraceFiles trace_files);

  ~MasterSession();

  Coordinator& coordinator() { return coordinator_; }
  SharedGraph& graph() { return *graph_; }

  // As of Session::Run.
  Status Run(const Call& call, const wire::RunOptions* options, absl::Span<const Output> feeds,
             absl::Span<const Tensor> feed_values, absl::Span<const Output> fetches, absl::Span<Node* const> targets,
             std::vector<Tensor>* outputs, wire::RunMetadata* metadata);

  // Waits until the traces of the steps that have ended are in files, as MILLRACE_TRACE asks for.
  void FlushTraces(absl::Duration patience);

 private:
  StatusOr<StepOptions> OptionsOf(const wire::RunOptions& options) const;

  const RefPtr<SharedGraph> graph_;
  Env& env_;
  const std::vector<int> inter_op_threads_;  // by RunOptions.inter_op_thread_pool
  const std::shared_ptr<PlacementState> placement_;
  PlacementPeriods periods_;
  TraceFiles trace_files_;
  const std::unique_ptr<TraceWriter> trace_writer_;  // null: nobody asks for files
  Coordinator coordinator_;
};

}  // namespace millrace
