// SPDX-License-Identifier: Apache-2.0
// Streams whose position is the value of a variable: int64, the counter in two elements and the key in the third. Each
// op takes its piece of the stream while it holds the variable.
#include "kernels/cpu/engine/resource_handle.h"
#include "kernels/cpu/random/random.h"

namespace millrace {
namespace {

constexpr int64_t kStateSize = 3;
constexpr uint64_t kBlocksPerOutput = 256;

Status CheckAlgorithm(int64_t algorithm) {
  if (algorithm == kPhiloxAlgorithm) return absl::OkStatus();
  return InvalidArgument("Unsupported algorithm id: ", algorithm, ", want ", kPhiloxAlgorithm, " (Philox)");
}

StatusOr<int64_t> ScalarInput(const KernelContext& ctx, int i) {
  const Tensor& t = ctx.input(i);
  if (t.rank() == 0) return t.IntScalar();
  return InvalidArgument(
      ctx.node().op->inputs[static_cast<size_t>(i)].name, " must have shape [], not ", t.shape().ToString());
}

// The stream that `value` says, which then says what is so many blocks behind.
Status Advance(Tensor* value, bool has_algorithm, uint64_t blocks, Philox* start) {
  if (value->rank() != 1) {
    return InvalidArgument(
        "RNG state must have one and only one dimension, not ", value->rank(), ": ", value->shape().ToString());
  }
  const int64_t first = has_algorithm ? 1 : 0;
  if (value->num_elements() < kStateSize + first) {
    return InvalidArgument("For the Philox algorithm, the size of state must be at least ", kStateSize + first,
                           "; got ", value->num_elements());
  }
  if (has_algorithm) MR_RETURN_IF_ERROR(CheckAlgorithm(value->data<int64_t>()[0]));
  int64_t* state = value->mutable_data<int64_t>() + first;
  const auto low = [](int64_t v) { return static_cast<uint32_t>(static_cast<uint64_t>(v)); };
  const auto high = [](int64_t v) { return static_cast<uint32_t>(static_cast<uint64_t>(v) >> 32); };
  const auto join = [](uint32_t l, uint32_t h) { return static_cast<int64_t>(uint64_t{h} << 32 | l); };
  *start = Philox({low(state[0]), high(state[0]), low(state[1]), high(state[1])}, {low(state[2]), high(state[2])});
  Philox next = *start;
  next.Skip(blocks);
  state[0] = join(next.counter()[0], next.counter()[1]);
  state[1] = join(next.counter()[2], next.counter()[3]);
  return absl::OkStatus();
}

StatusOr<Philox> Take(const KernelContext& ctx, bool has_algorithm, uint64_t blocks) {
  MR_ASSIGN_OR_RETURN(const RefPtr<Variable> variable, FindResource<Variable>(ctx, 0));
  if (variable->dtype() != DType::kInt64) {
    return InvalidArgument("dtype of RNG state variable must be int64, not ", DTypeName(variable->dtype()));
  }
  Philox start;
  MR_RETURN_IF_ERROR(variable->Update([&](Tensor* value) { return Advance(value, has_algorithm, blocks, &start); }));
  return start;
}

Status ReadAndSkip(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const int64_t algorithm, ScalarInput(ctx, 1));
  MR_RETURN_IF_ERROR(CheckAlgorithm(algorithm));
  if (ctx.input(2).rank() != 0) {
    return InvalidArgument("delta must have shape [], not ", ctx.input(2).shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(const Philox start, Take(ctx, false, *ctx.input(2).data<uint64_t>() * kBlocksPerOutput));
  MR_ASSIGN_OR_RETURN(Tensor * value, ctx.AllocateOutput(0, Shape::Vector(kStateSize)));
  const auto join = [](uint32_t low, uint32_t high) { return static_cast<int64_t>(uint64_t{high} << 32 | low); };
  value->mutable_data<int64_t>()[0] = join(start.counter()[0], start.counter()[1]);
  value->mutable_data<int64_t>()[1] = join(start.counter()[2], start.counter()[3]);
  value->mutable_data<int64_t>()[2] = join(start.key()[0], start.key()[1]);
  return absl::OkStatus();
}

Status Skip(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const int64_t algorithm, ScalarInput(ctx, 1));
  MR_RETURN_IF_ERROR(CheckAlgorithm(algorithm));
  MR_ASSIGN_OR_RETURN(const int64_t delta, ScalarInput(ctx, 2));
  return Take(ctx, false, static_cast<uint64_t>(delta) * kBlocksPerOutput).status();
}

}  // namespace

StatusOr<Philox> ReserveState(const KernelContext& ctx, int64_t outputs) {
  const bool in_state = ctx.node().op->inputs[1].name != "algorithm";
  if (!in_state) {
    MR_ASSIGN_OR_RETURN(const int64_t algorithm, ScalarInput(ctx, 1));
    MR_RETURN_IF_ERROR(CheckAlgorithm(algorithm));
  }
  return Take(ctx, in_state, static_cast<uint64_t>(outputs) * kBlocksPerOutput);
}

void RegisterRandomState(KernelRegistry& r) {
  r.AddFn({.op = "RngSkip"}, Skip);
  r.AddFn({.op = "RngReadAndSkip"}, ReadAndSkip);
}

}  // namespace millrace
