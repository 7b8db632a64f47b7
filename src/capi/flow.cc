// SPDX-License-Identifier: Apache-2.0
#include "capi/flow.h"

#include <cstring>

namespace millrace::capi {

namespace {

// Marks that a callback runs; blocks that it leaves open end with it.
class CallbackMark {
 public:
  explicit CallbackMark(SharedGraph* shared) : shared_(shared) {
    mark_.outer = shared->open_block;
    mark_.is_callback = true;
    shared->open_block = &mark_;
  }
  ~CallbackMark() {
    AbortInside(*shared_, &mark_);
    shared_->open_block = mark_.outer;
  }
  CallbackMark(const CallbackMark&) = delete;
  CallbackMark& operator=(const CallbackMark&) = delete;
  bool has_open_blocks() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return shared_->open_block != &mark_; }

 private:
  SharedGraph* shared_;
  MR_Block mark_;
};

StatusOr<std::vector<Output>> CallBack(TF_Graph* graph, SharedGraph* shared, MR_BuildFn fn, void* data,
                                       const GraphBuilder& b, const std::vector<Output>& inputs) {
  std::vector<TF_Output> arguments;
  for (const Output& o : inputs) arguments.push_back(AsTfOutput(o));
  const std::string scope = absl::StrCat(b.scope(), "/");
  MR_Outputs results;
  TF_Status status;
  const CallbackMark mark(shared);
  {
    const Unlocked unlocked(&shared->mu);
    fn(data, graph, scope.c_str(), arguments.data(), static_cast<int>(arguments.size()), &results, &status);
  }
  if (status.code != TF_OK) return Status(static_cast<absl::StatusCode>(status.code), status.message);
  if (mark.has_open_blocks()) return FailedPrecondition("the callback for '", b.scope(), "' left a block open");
  return MakeResults(results.list.data(), static_cast<int>(results.list.size()));
}

}  // namespace

StatusOr<MR_FlowOptions> ReadFlowOptions(const MR_FlowOptions* options) {
  MR_FlowOptions read{};
  if (options == nullptr) return read;
  if (options->struct_size < offsetof(MR_FlowOptions, device)) {
    return InvalidArgument("options.struct_size is ", options->struct_size, ", it should be ", sizeof(MR_FlowOptions));
  }
  std::memcpy(&read, options, std::min(options->struct_size, sizeof(read)));
  return read;
}

StatusOr<std::vector<Node*>> MakeNodes(TF_Operation* const* operations, int count, const char* what) {
  MR_RETURN_IF_ERROR(CheckArray(operations, count, what));
  std::vector<Node*> nodes;
  for (int i = 0; i < count; ++i) {
    if (operations[i] == nullptr) return InvalidArgument(what, " ", i, " is NULL");
    nodes.push_back(AsNode(operations[i]));
  }
  return nodes;
}

StatusOr<std::vector<Output>> MakeResults(const TF_Output* results, int count) {
  MR_RETURN_IF_ERROR(CheckArray(results, count, "results"));
  std::vector<Output> list;
  for (int i = 0; i < count; ++i) {
    if (results[i].oper == nullptr) return InvalidArgument("result ", i, ": operation is NULL");
    list.push_back(AsOutput(results[i]));
  }
  return list;
}

StatusOr<GraphBuilder> FlowBuilder(Graph* graph, const MR_FlowOptions& options) {
  MR_ASSIGN_OR_RETURN(
      std::vector<Node*> nodes, MakeNodes(options.control_inputs, options.num_control_inputs, "control_inputs"));
  return GraphBuilder(graph).WithControl(std::move(nodes)).WithDevice(options.device ? options.device : "");
}

StatusOr<LoopOptions> ReadLoopOptions(const MR_FlowOptions& options, int num_variables) {
  LoopOptions loop;
  if (options.parallel_iterations != 0) loop.parallel_iterations = options.parallel_iterations;
  loop.back_prop = options.no_back_prop == 0;
  loop.swap_memory = options.swap_memory != 0;
  if (options.maximum_iterations.oper != nullptr) {
    MR_RETURN_IF_ERROR(CheckOutput(options.maximum_iterations, "maximum_iterations"));
    loop.maximum_iterations = AsOutput(options.maximum_iterations);
  }
  if (options.invariant_ranks == nullptr) return loop;
  for (int i = 0; i < num_variables; ++i) {
    const int rank = options.invariant_ranks[i];
    if (rank < -2) return InvalidArgument("invariant_ranks[", i, "] is ", rank);
    if (rank == -2) {
      loop.shape_invariants.push_back(std::nullopt);
      continue;
    }
    if (rank > 0) MR_CAPI_REQUIRE(options.invariant_dims);
    const int64_t* dims = rank > 0 ? options.invariant_dims[i] : nullptr;
    if (rank > 0) MR_CAPI_REQUIRE(dims);
    MR_ASSIGN_OR_RETURN(PartialShape shape, MakePartialShape(dims, rank));
    loop.shape_invariants.push_back(std::move(shape));
  }
  return loop;
}

void Append(const std::vector<Output>& outputs, MR_Outputs* list) {
  for (const Output& o : outputs) list->list.push_back(AsTfOutput(o));
}

StatusOr<BuildFn> MakeBuildFn(TF_Graph* graph, MR_BuildFn fn, void* data, const char* what) {
  if (fn == nullptr) return NullArgument(what);
  SharedGraph* shared = graph->shared.get();
  return BuildFn([=](const GraphBuilder& b, const std::vector<Output>& inputs) {
    return CallBack(graph, shared, fn, data, b, inputs);
  });
}

void AbortInside(SharedGraph& shared, const MR_Block* block) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  while (shared.open_block != block && shared.open_block != nullptr) {
    MR_Block* inner = shared.open_block;
    shared.open_block = inner->outer;
    inner->cond.reset();
    inner->loop.reset();
    inner->is_open = false;
    shared.mu.ReleaseClaim();
  }
}

}  // namespace millrace::capi
