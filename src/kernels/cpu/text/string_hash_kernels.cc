// SPDX-License-Identifier: Apache-2.0
// CPU kernels: strings as numbers of buckets.
#include "kernels/cpu/engine/string_hash.h"
#include "kernels/cpu/text/strings.h"

namespace millrace {
namespace {

using Hash = uint64_t (*)(absl::string_view);

Status ReadBuckets(const KernelInit& init, uint64_t* buckets) {
  MR_ASSIGN_OR_RETURN(const int64_t n, init.Attr<int64_t>("num_buckets"));
  if (n < 1) return InvalidArgument("num_buckets must be 1 or more, got ", n);
  *buckets = static_cast<uint64_t>(n);
  return absl::OkStatus();
}

template <typename Fn>
Status EachString(KernelContext& ctx, uint64_t buckets, Fn hash) {
  const Tensor& in = ctx.input(0);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return absl::OkStatus();
  const TString* from = in.data<TString>();
  int64_t* to = out->mutable_data<int64_t>();
  ctx.ParallelFor(in.num_elements(), 50, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<int64_t>(hash(from[i].view()) % buckets);
  });
  return absl::OkStatus();
}

template <Hash hash>
class BucketKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return ReadBuckets(init, &buckets_); }
  Status Compute(KernelContext& ctx) override { return EachString(ctx, buckets_, hash); }

 private:
  uint64_t buckets_ = 1;
};

class KeyedBucketKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> key, init.Attr<std::vector<int64_t>>("key"));
    if (key.size() != 2) return InvalidArgument("key must have 2 elements, got ", key.size());
    key_ = {static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[1])};
    return ReadBuckets(init, &buckets_);
  }
  Status Compute(KernelContext& ctx) override {
    return EachString(ctx, buckets_, [this](absl::string_view s) { return SipHash64(key_, s); });
  }

 private:
  uint64_t buckets_ = 1;
  std::array<uint64_t, 2> key_{};
};

}  // namespace

void RegisterStringHashKernels(KernelRegistry& registry) {
  registry.Add<BucketKernel<MurmurHash64>>({.op = "StringToHashBucket"});
  registry.Add<BucketKernel<Fingerprint64>>({.op = "StringToHashBucketFast"});
  registry.Add<KeyedBucketKernel>({.op = "StringToHashBucketStrong"});
}

}  // namespace millrace
