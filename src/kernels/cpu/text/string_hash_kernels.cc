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
    if (key.size() != 2) return InvalidArgument("Key must have 2 elements, got ", key.size());
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

// Row i of the output holds the bytes of hash(i).
template <typename Fn>
Status HashRows(KernelContext& ctx, int64_t n, double cost, const Fn& hash) {
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({n, 8}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  uint8_t* to = out->mutable_data<uint8_t>();
  ctx.ParallelFor(n, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t h = hash(i);
      for (int64_t k = 0; k < 8; ++k) to[i * 8 + k] = static_cast<uint8_t>(h >> (8 * k));
    }
  });
  return absl::OkStatus();
}

// Of the bytes of each row; of a row of strings, of the bytes of their fingerprints.
Status Fingerprint(KernelContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& method = ctx.input(1);
  if (method.rank() != 0) {
    return InvalidArgument("`method` should be a scalar string: ", method.shape().ToString());
  }
  if (method.data<TString>()->view() != "farmhash64") {
    return InvalidArgument("Unsupported fingerprint method: ", method.data<TString>()->view());
  }
  if (data.rank() < 1) return InvalidArgument("`data` should have at least one dimension: []");
  const int64_t n = data.dim(0), width = n == 0 ? 0 : data.num_elements() / n;
  if (data.dtype() == DType::kString) {
    const TString* text = data.data<TString>();
    return HashRows(ctx, n, 30 * static_cast<double>(width + 1), [&](int64_t i) {
      if (width == 1) return Fingerprint64(text[i].view());
      std::string bytes;
      for (int64_t k = 0; k < width; ++k) {
        const uint64_t h = Fingerprint64(text[i * width + k].view());
        for (int b = 0; b < 8; ++b) bytes.push_back(static_cast<char>(h >> (8 * b)));
      }
      return Fingerprint64(bytes);
    });
  }
  if (!IsPlain(data.dtype())) return InvalidArgument("Data type not supported: ", DTypeName(data.dtype()));
  const size_t size = static_cast<size_t>(width) * DTypeSize(data.dtype());
  return HashRows(ctx, n, 10 + 0.2 * static_cast<double>(size), [&](int64_t i) {
    return Fingerprint64(absl::string_view(data.data<char>() + static_cast<size_t>(i) * size, size));
  });
}

}  // namespace

void RegisterStringHashKernels(KernelRegistry& registry) {
  registry.AddFn({.op = "Fingerprint"}, Fingerprint);
  registry.Add<BucketKernel<MurmurHash64>>({.op = "StringToHashBucket"});
  registry.Add<BucketKernel<Fingerprint64>>({.op = "StringToHashBucketFast"});
  registry.Add<KeyedBucketKernel>({.op = "StringToHashBucketStrong"});
}

}  // namespace millrace
