// SPDX-License-Identifier: Apache-2.0
// Runs a Plan once. The one executor of the system.
//
// A segment's nodes run in order on one thread: no counts, no queue; kernels share the pool through ParallelFor. A plan
// that is one segment runs so on the caller's thread. The units of every other plan run by readiness: one runs when all
// its inputs are there; cheap ready units run on the thread that made them ready, expensive ones may go to other
// workers, and what a callback makes ready goes to the thread that waits for the step, if that has nothing else to do.
// Every order gives bit-equal results, but for uses of states between which there is none (runtime/plan_cut.h).
//
// The first error wins: it stops the step, and names node, op, device and the user's line. Units outside of loops
// that could run by then run still, up to a kernel that may be left in the middle: an update beside an iterator that is
// at its end. When nothing is runnable and nothing is outstanding, the step fails and lists the nodes that wait.
#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "base/stop_scope.h"
#include "runtime/plan.h"
#include "runtime/step_thread.h"
#include "runtime/trace.h"

namespace millrace {

class StepWatch;

// By node of a plan, in nanoseconds.
struct NodeCosts {
  std::vector<double> wall;  // while it ran
  std::vector<double> work;  // of all threads
};

struct ExecutorOptions {
  StepTrace* trace = nullptr;
  bool single_thread = false;    // ready nodes never go to other threads than `caller`'s, when there is one
  uint64_t order_seed = 0;       // with single_thread: non-zero picks among the ready nodes by this seed
  int inter_op_threads = 0;      // that run nodes at once, by readiness; 0: the pool's width
  StepThread* caller = nullptr;  // waits for the step and helps to run it; may be null
  StepWatch* watch = nullptr;    // for RunByReadiness: told what is under way; may be null
  StopScope* stop = nullptr;     // for RunInOrder: one over the step that the caller has open; null: it opens its own
  uint64_t session = 0;          // of threads that join it, as of SessionScope
};

// Runs nodes [begin, end), which are a segment; `frame` holds what they need in its slots. `to_its_end`: also when the
// step is cancelled.
Status RunSegment(const Plan& plan, int begin, int end, Frame& frame, StepContext& step, const ExecutorOptions& options,
                  bool to_its_end = false);

// `frame` holds the arguments in its slots. Returns when the step is done; retvals stand in their slots. Only for plans
// that are one segment.
inline Status RunInOrder(const Plan& plan, Frame& frame, StepContext& step, const ExecutorOptions& options) {
  if (__builtin_expect(options.trace != nullptr, 0)) options.trace->Watch(plan.graph());
  return RunSegment(plan, 0, static_cast<int>(plan.nodes().size()), frame, step, options);
}

// `done` runs exactly once, on any thread, and throws nothing; plan, frame and step must live until then.
void RunByReadiness(const Plan& plan, Frame& frame, StepContext& step, const ExecutorOptions& options,
                    absl::AnyInvocable<void(Status) &&> done);

// The same as RunInOrder, and tells what each node cost.
Status RunMeasured(const Plan& plan, Frame& frame, StepContext& step, const ExecutorOptions& options, NodeCosts* costs);

// RunByReadiness on this thread, which returns when the step is done, and helps; for steps that have no `caller` yet.
Status RunByReadinessHere(const Plan& plan, Frame& frame, StepContext& step, ExecutorOptions options,
                          bool may_be_interrupted);

// The value of retval i (a reference gives the variable's value).
StatusOr<Tensor> RetvalOf(const Plan& plan, const Frame& frame, int i);

}  // namespace millrace
