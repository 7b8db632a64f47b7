// SPDX-License-Identifier: Apache-2.0
// Conditionals and loops between a Begin and an End.
#include "capi/flow.h"

using millrace::CondBuilder;
using millrace::FailedPrecondition;
using millrace::GraphBuilder;
using millrace::GraphLock;
using millrace::LoopOptions;
using millrace::Output;
using millrace::SharedGraph;
using millrace::Status;
using millrace::StatusOr;
using millrace::WhileBuilder;
using millrace::capi::AsOutput;
using millrace::capi::CheckOutput;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;
using millrace::capi::MakeOutputs;
using millrace::capi::MakeResults;
using millrace::capi::ScopedClaim;
using millrace::capi::Try;

namespace {

using Outputs = std::vector<Output>;

// Runs start(builder, options, block) -> Status with the graph locked; when it is well, the claim stays.
template <typename Start>
StatusOr<MR_Block*> Begin(TF_Graph* graph, const MR_FlowOptions* given, Start&& start) {
  MR_CAPI_REQUIRE(graph);
  MR_ASSIGN_OR_RETURN(const MR_FlowOptions options, millrace::capi::ReadFlowOptions(given));
  const millrace::RefPtr<SharedGraph> owned = graph->shared;
  SharedGraph& shared = *owned;
  const GraphLock lock(&shared.mu);
  const ScopedClaim claim(&shared.mu);
  auto block = std::make_unique<MR_Block>();
  block->shared = owned;
  MR_ASSIGN_OR_RETURN(const GraphBuilder b, millrace::capi::FlowBuilder(&shared.graph, options));
  MR_RETURN_IF_ERROR(start(b, options, block.get()));
  block->outer = shared.open_block;
  shared.open_block = block.get();
  shared.mu.Claim();
  return block.release();
}

// Runs step() -> Status with the graph locked, if the block may go on.
template <typename Step>
Status Continue(MR_Block* block, bool is_right_kind, Step&& step) {
  SharedGraph& shared = *block->shared;
  if (!block->is_open) return FailedPrecondition("block '", block->scope, "' has been aborted");
  if (!shared.mu.ClaimedHere()) return FailedPrecondition("block '", block->scope, "' belongs to another thread");
  if (!is_right_kind) return FailedPrecondition("block '", block->scope, "' is of another kind");
  const GraphLock lock(&shared.mu);
  if (shared.open_block != block) return FailedPrecondition("a block inside '", block->scope, "' has not ended");
  return step();
}

// Likewise for the last step, after which a block that is well is deleted.
template <typename Step>
Status Finish(MR_Block* block, bool is_right_kind, Step&& step) {
  MR_RETURN_IF_ERROR(Continue(block, is_right_kind, step));
  MR_BlockAbort(block);
  return absl::OkStatus();
}

}  // namespace

extern "C" {

const char* MR_BlockScope(const MR_Block* block) { return block ? block->scope.c_str() : ""; }

void MR_BlockAbort(MR_Block* block) {
  if (block == nullptr) return;
  Try(0, [&] {
    const millrace::RefPtr<SharedGraph> shared = block->shared;
    if (block->is_open) {
      if (!shared->mu.ClaimedHere()) return 0;
      const GraphLock lock(&shared->mu);
      for (const MR_Block* b = shared->open_block; b != block; b = b->outer) {
        if (b == nullptr || b->is_callback) return 0;  // what runs inside still needs it
      }
      millrace::capi::AbortInside(*shared, block->outer);
    }
    delete block;
    return 0;
  });
}

MR_Block* MR_CondBegin(TF_Graph* graph, const MR_FlowOptions* options, TF_Output predicate, TF_Status* status) {
  return GuardedOr<MR_Block*>(status, nullptr, [&] {
    return Begin(graph, options, [&](const GraphBuilder& b, const MR_FlowOptions& o, MR_Block* block) -> Status {
      MR_RETURN_IF_ERROR(CheckOutput(predicate, "predicate"));
      block->cond = std::make_unique<CondBuilder>(b, o.name && o.name[0] ? o.name : "cond");
      block->scope = absl::StrCat(block->cond->inside().scope(), "/");
      return block->cond->Begin(AsOutput(predicate));
    });
  });
}

void MR_CondElse(MR_Block* block, const TF_Output* true_results, int num_results, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(block);
    return Continue(block, block->cond != nullptr, [&]() -> Status {
      MR_ASSIGN_OR_RETURN(const Outputs list, MakeResults(true_results, num_results));
      return block->cond->Else(list);
    });
  });
}

void MR_CondEnd(MR_Block* block, const TF_Output* false_results, int num_results, MR_Outputs* results,
                TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(block);
    MR_CAPI_REQUIRE(results);
    return Finish(block, block->cond != nullptr, [&]() -> Status {
      MR_ASSIGN_OR_RETURN(const Outputs list, MakeResults(false_results, num_results));
      MR_ASSIGN_OR_RETURN(const Outputs merged, block->cond->End(list));
      millrace::capi::Append(merged, results);
      return absl::OkStatus();
    });
  });
}

MR_Block* MR_WhileBegin(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* variables, int num_variables,
                        MR_Outputs* inputs, TF_Status* status) {
  return GuardedOr<MR_Block*>(status, nullptr, [&]() -> StatusOr<MR_Block*> {
    MR_CAPI_REQUIRE(inputs);
    return Begin(graph, options, [&](const GraphBuilder& b, const MR_FlowOptions& o, MR_Block* block) -> Status {
      MR_ASSIGN_OR_RETURN(const Outputs list, MakeOutputs(variables, num_variables, "variables"));
      MR_ASSIGN_OR_RETURN(LoopOptions loop, millrace::capi::ReadLoopOptions(o, num_variables));
      block->loop = std::make_unique<WhileBuilder>(b, std::move(loop), o.name && o.name[0] ? o.name : "while");
      block->scope = absl::StrCat(block->loop->inside().scope(), "/");
      MR_ASSIGN_OR_RETURN(const Outputs merges, block->loop->Begin(list));
      millrace::capi::Append(merges, inputs);
      return absl::OkStatus();
    });
  });
}

void MR_WhileBody(MR_Block* block, TF_Output condition, MR_Outputs* inputs, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(block);
    MR_CAPI_REQUIRE(inputs);
    return Continue(block, block->loop != nullptr, [&]() -> Status {
      MR_RETURN_IF_ERROR(CheckOutput(condition, "condition"));
      MR_ASSIGN_OR_RETURN(const Outputs variables, block->loop->Body(AsOutput(condition)));
      millrace::capi::Append(variables, inputs);
      return absl::OkStatus();
    });
  });
}

void MR_WhileEnd(MR_Block* block, const TF_Output* results, int num_results, MR_Outputs* values, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(block);
    MR_CAPI_REQUIRE(values);
    return Finish(block, block->loop != nullptr, [&]() -> Status {
      MR_ASSIGN_OR_RETURN(const Outputs list, MakeResults(results, num_results));
      MR_ASSIGN_OR_RETURN(const Outputs exits, block->loop->End(list));
      millrace::capi::Append(exits, values);
      return absl::OkStatus();
    });
  });
}

}  // extern "C"
