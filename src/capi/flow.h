// SPDX-License-Identifier: Apache-2.0
// How the C API builds conditionals and loops: options, callbacks, and the blocks that are open in a graph.
#pragma once

#include "capi/internal.h"
#include "graph/control_flow.h"
#include "millrace/c_api_control_flow.h"

struct MR_Outputs {
  std::vector<TF_Output> list;
};

// A conditional or loop between its Begin and its End. One without a builder marks a callback that runs: blocks around
// it are out of the callback's reach.
struct MR_Block {
  millrace::RefPtr<millrace::SharedGraph> shared;
  std::string scope;
  std::unique_ptr<millrace::CondBuilder> cond;
  std::unique_ptr<millrace::WhileBuilder> loop;
  MR_Block* outer = nullptr;
  bool is_callback = false;
  bool is_open = true;
};

namespace millrace::capi {

// A claim of a locked graph until the end of a block of code.
class ScopedClaim {
 public:
  explicit ScopedClaim(GraphMutex* mu) : mu_(mu) { mu_->Claim(); }
  ~ScopedClaim() { mu_->ReleaseClaim(); }
  ScopedClaim(const ScopedClaim&) = delete;
  ScopedClaim& operator=(const ScopedClaim&) = delete;

 private:
  GraphMutex* mu_;
};

// The lock given up until the end of a block of code.
class Unlocked {
 public:
  explicit Unlocked(GraphMutex* mu) ABSL_NO_THREAD_SAFETY_ANALYSIS : mu_(mu) { mu_->Unlock(); }
  ~Unlocked() ABSL_NO_THREAD_SAFETY_ANALYSIS { mu_->Lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  GraphMutex* mu_;
};

// The options with defaults for what is absent.
StatusOr<MR_FlowOptions> ReadFlowOptions(const MR_FlowOptions* options);
StatusOr<GraphBuilder> FlowBuilder(Graph* graph, const MR_FlowOptions& options);
StatusOr<LoopOptions> ReadLoopOptions(const MR_FlowOptions& options, int num_variables);
StatusOr<std::vector<Node*>> MakeNodes(TF_Operation* const* operations, int count, const char* what);
// Results of a part, which may be operations; what they are is the constructor's to check.
StatusOr<std::vector<Output>> MakeResults(const TF_Output* results, int count);
void Append(const std::vector<Output>& outputs, MR_Outputs* list);

// Calls back with the graph unlocked.
StatusOr<BuildFn> MakeBuildFn(TF_Graph* graph, MR_BuildFn fn, void* data, const char* what);
// Takes back what is open within `block`.
void AbortInside(SharedGraph& shared, const MR_Block* block);

}  // namespace millrace::capi
