// SPDX-License-Identifier: Apache-2.0
// CPU kernels: sparse tensors kept by number.
#include "kernels/cpu/sparse/sparse_map.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/synchronization/mutex.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/resource_handle.h"
#include "kernels/cpu/sparse/sparse.h"

namespace millrace {
namespace {

// A row costs memory even where it is empty.
constexpr int64_t kMostEmptyRows = int64_t{1} << 24;

struct Sparse {
  Tensor indices, values;  // [n, rank], [n]
  std::vector<int64_t> dims;
};

class SparseMap final : public Resource {
 public:
  std::string DebugString() const override { return "a map of sparse tensors"; }

  int64_t Add(Sparse sparse) {
    absl::MutexLock lock(&mu_);
    kept_.emplace(next_, std::move(sparse));
    return next_++;
  }

  // All of them, or InvalidArgument and none.
  StatusOr<std::vector<Sparse>> Take(const int64_t* handles, int64_t n) {
    absl::MutexLock lock(&mu_);
    std::set<int64_t> wanted;
    for (int64_t i = 0; i < n; ++i) {
      if (!kept_.contains(handles[i]) || !wanted.insert(handles[i]).second) {
        return InvalidArgument("Unable to find SparseTensor: ", handles[i], " in map; each can be taken once");
      }
    }
    std::vector<Sparse> taken;
    taken.reserve(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) taken.push_back(std::move(kept_.extract(handles[i]).mapped()));
    return taken;
  }

 private:
  absl::Mutex mu_;
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<int64_t, Sparse> kept_ ABSL_GUARDED_BY(mu_);
};

class MapKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(name_, ResourceNameOf(init));
    return absl::OkStatus();
  }

 protected:
  StatusOr<RefPtr<SparseMap>> Map(KernelContext& ctx) const {
    return ctx.resources().LookupOrCreate<SparseMap>(
        name_.container, name_.name, []() -> StatusOr<RefPtr<SparseMap>> { return MakeRef<SparseMap>(); });
  }

 private:
  ResourceName name_;
};

StatusOr<Sparse> SparseInput(const KernelContext& ctx) {
  const Tensor &indices = ctx.input(0), &values = ctx.input(1), &shape = ctx.input(2);
  if (indices.rank() != 2 || values.rank() != 1 || shape.rank() != 1 || indices.dim(0) != values.dim(0) ||
      indices.dim(1) != shape.dim(0)) {
    return InvalidArgument(
        "a sparse tensor needs indices [n, rank], values [n] and a shape [rank], got ", indices.shape().ToString(),
        ", ", values.shape().ToString(), " and ", shape.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(std::vector<int64_t> dims, shape.IntValues());
  if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; })) {
    return InvalidArgument("the shape of a sparse tensor has a negative dimension");
  }
  return Sparse{indices, values, std::move(dims)};
}

class AddKernel final : public MapKernel {
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(Sparse sparse, SparseInput(ctx));
    MR_ASSIGN_OR_RETURN(const RefPtr<SparseMap> map, Map(ctx));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    *out->mutable_data<int64_t>() = map->Add(std::move(sparse));
    return absl::OkStatus();
  }
};

// Elements `from` of a sparse tensor, without the first column of their indices.
StatusOr<Sparse> SliceOf(const Sparse& whole, const std::vector<int64_t>& from) {
  const int64_t n = static_cast<int64_t>(from.size()), rank = whole.indices.dim(1);
  Sparse slice;
  slice.dims.assign(whole.dims.begin() + 1, whole.dims.end());
  MR_ASSIGN_OR_RETURN(const Shape places, Shape::Make({n, rank - 1}));
  MR_ASSIGN_OR_RETURN(slice.indices, Tensor::Make(DType::kInt64, places));
  MR_ASSIGN_OR_RETURN(slice.values, Tensor::Make(whole.values.dtype(), Shape::Vector(n)));
  const RunCopier copier(whole.values.dtype(), 1);
  const int64_t* p = whole.indices.data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = from[static_cast<size_t>(i)];
    std::copy(p + at * rank + 1, p + (at + 1) * rank, slice.indices.mutable_data<int64_t>() + i * (rank - 1));
    copier.CopyOne(slice.values.mutable_raw(), i, whole.values.raw(), at);
  }
  return slice;
}

class AddManyKernel final : public MapKernel {
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Sparse whole, SparseInput(ctx));
    const int64_t rank = whole.indices.dim(1), n = whole.indices.dim(0);
    if (rank < 2) return InvalidArgument("Rank of input SparseTensor should be > 1, but saw rank: ", rank);
    if (whole.dims[0] > kMostEmptyRows + n) {
      return ResourceExhausted(
          "a sparse tensor with ", whole.dims[0], " rows and ", n, " elements is too long to keep");
    }
    MR_ASSIGN_OR_RETURN(const Shape rows, Shape::Make({whole.dims[0]}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, rows));
    MR_RETURN_IF_ERROR(CheckOrder(whole.indices, "indices"));
    std::map<int64_t, std::vector<int64_t>> elements;  // by row
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = whole.indices.data<int64_t>()[i * rank];
      if (row < 0 || row >= whole.dims[0]) {
        return InvalidArgument(
            "indices[", i, ", 0] is ", row, ", but the first dimension of the shape is ", whole.dims[0]);
      }
      elements[row].push_back(i);
    }
    MR_ASSIGN_OR_RETURN(const RefPtr<SparseMap> map, Map(ctx));
    for (int64_t row = 0; row < whole.dims[0]; ++row) {
      MR_ASSIGN_OR_RETURN(Sparse slice, SliceOf(whole, elements[row]));
      out->mutable_data<int64_t>()[row] = map->Add(std::move(slice));
    }
    return absl::OkStatus();
  }
};

class TakeManyKernel final : public MapKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& handles = ctx.input(0);
    if (handles.rank() != 1) {
      return InvalidArgument("sparse_handles should be a vector, got shape ", handles.shape().ToString());
    }
    const int64_t n = handles.dim(0);
    if (n == 0) return InvalidArgument("Must have at least 1 handle, got none");
    MR_ASSIGN_OR_RETURN(const RefPtr<SparseMap> map, Map(ctx));
    MR_ASSIGN_OR_RETURN(const std::vector<Sparse> taken, map->Take(handles.data<int64_t>(), n));
    std::vector<int64_t> dims = taken[0].dims;
    int64_t elements = 0;
    for (size_t i = 0; i < taken.size(); ++i) {
      const Sparse& s = taken[i];
      if (s.dims.size() != dims.size()) {
        return InvalidArgument("Inconsistent rank across SparseTensors: rank prior to SparseTensor[", i,
                               "] was: ", dims.size(), " but rank of SparseTensor[", i, "] is: ", s.dims.size());
      }
      if (s.values.dtype() != ctx.output_dtype(1)) {
        return InvalidArgument("Requested SparseTensor of type ", DTypeName(ctx.output_dtype(1)),
                               " but the one that is kept has type ", DTypeName(s.values.dtype()));
      }
      for (size_t d = 0; d < dims.size(); ++d) dims[d] = std::max(dims[d], s.dims[d]);
      elements += s.values.num_elements();
    }
    return Stack(ctx, taken, dims, elements);
  }

  static Status Stack(KernelContext& ctx, const std::vector<Sparse>& taken, const std::vector<int64_t>& dims,
                      int64_t elements) {
    const int64_t rank = static_cast<int64_t>(dims.size()), n = static_cast<int64_t>(taken.size());
    MR_ASSIGN_OR_RETURN(const Shape places, Shape::Make({elements, rank + 1}));
    MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, places));
    MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, Shape::Vector(elements)));
    MR_ASSIGN_OR_RETURN(Tensor * shape, ctx.AllocateOutput(2, Shape::Vector(rank + 1)));
    int64_t* to = indices->mutable_data<int64_t>();
    const RunCopier copier(values->dtype(), 1);
    int64_t at = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Sparse& s = taken[static_cast<size_t>(i)];
      const int64_t* p = s.indices.data<int64_t>();
      for (int64_t e = 0; e < s.values.num_elements(); ++e, ++at) {
        *to++ = i;
        to = std::copy(p + e * rank, p + (e + 1) * rank, to);
        copier.CopyOne(values->mutable_raw(), at, s.values.raw(), e);
      }
    }
    int64_t* d = shape->mutable_data<int64_t>();
    d[0] = n;
    std::copy(dims.begin(), dims.end(), d + 1);
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterSparseMapKernels(KernelRegistry& registry) {
  registry.Add<AddKernel>({.op = "AddSparseToTensorsMap"});
  registry.Add<AddManyKernel>({.op = "AddManySparseToTensorsMap"});
  registry.Add<TakeManyKernel>({.op = "TakeManySparseFromTensorsMap"});
}

}  // namespace millrace
