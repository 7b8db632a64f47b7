// SPDX-License-Identifier: Apache-2.0
// GatherTree: hypotheses of a beam search, followed back from their last beams.
#include <algorithm>

#include "base/stop_scope.h"
#include "kernels/cpu/index/index_kernels.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

struct Beams {
  const int32_t* ids;
  const int32_t* parents;
  int64_t batch, width;
  int64_t at(int64_t time, int64_t b, int64_t beam) const { return (time * batch + b) * width + beam; }
};

// Of one beam, `steps` of them; those behind, and those behind the end, stay what they are.
Status FollowBack(const Beams& tree, int64_t steps, int64_t b, int64_t beam, int32_t end, StopNowAndThen& pause,
                  int32_t* out) {
  int64_t parent = beam;
  for (int64_t time = steps; time-- > 0;) {
    pause();
    if (parent < 0 || parent >= tree.width) {
      return InvalidArgument(
          "Saw invalid parent id ", parent, " at (batch, time, beam) == (", b, ", ", time, ", ", beam, ")");
    }
    const int64_t from = tree.at(time, b, parent);
    out[tree.at(time, b, beam)] = tree.ids[from];
    parent = tree.parents[from];
  }
  bool ended = false;
  for (int64_t time = 0; time < steps; ++time) {
    int32_t& id = out[tree.at(time, b, beam)];
    if (ended) id = end;
    ended = ended || id == end;
  }
  return absl::OkStatus();
}

Status GatherTree(KernelContext& ctx) {
  const Tensor &ids = ctx.input(0), &parents = ctx.input(1), &lengths = ctx.input(2), &end = ctx.input(3);
  if (ids.rank() != 3) return InvalidArgument("step_ids must be a 3-tensor, saw shape: ", ids.shape().ToString());
  if (!(ids.shape() == parents.shape())) {
    return InvalidArgument("step_ids.shape must match parent_ids.shape. but shapes are: ", ids.shape().ToString(),
                           " and ", parents.shape().ToString());
  }
  if (lengths.rank() != 1 || lengths.dim(0) != ids.dim(1)) {
    return InvalidArgument(
        "max_sequence_lengths must be a vector of ", ids.dim(1), " elements, saw shape: ", lengths.shape().ToString());
  }
  if (end.rank() != 0) return InvalidArgument("end_token must be a scalar, saw shape: ", end.shape().ToString());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ids.shape()));
  if (out->num_elements() == 0) return absl::OkStatus();
  const int32_t token = *end.data<int32_t>();
  std::fill_n(out->mutable_data<int32_t>(), out->num_elements(), token);
  StopNowAndThen pause;
  const Beams tree{ids.data<int32_t>(), parents.data<int32_t>(), ids.dim(1), ids.dim(2)};
  for (int64_t b = 0; b < tree.batch; ++b) {
    const int64_t steps = std::min<int64_t>(ids.dim(0), lengths.data<int32_t>()[b]);
    for (int64_t beam = 0; beam < tree.width; ++beam) {
      pause();
      MR_RETURN_IF_ERROR(FollowBack(tree, steps, b, beam, token, pause, out->mutable_data<int32_t>()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterGatherTree(KernelRegistry& registry) {
  registry.AddFn({.op = "GatherTree", .types = {{"T", {DType::kInt32}}}}, GatherTree);
}

}  // namespace millrace
