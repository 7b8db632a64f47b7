// SPDX-License-Identifier: Apache-2.0
// Kernel of Einsum. Each input is brought into the form [batch, free, summed] (a view where its memory allows that),
// the two are multiplied as stacks of matrices, and the product [batch, free of x, free of y] is moved into the order
// of the output.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "kernels/cpu/engine/math_reducer.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/linalg/linalg.h"
#include "kernels/cpu/linalg/linalg_products.h"
#include "op/einsum_equation.h"

namespace millrace {
namespace {

using Sizes = std::map<int, int64_t>;

bool Contains(const EinsumLabels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

int64_t Count(const EinsumLabels& labels, const Sizes& sizes) {
  int64_t n = 1;
  for (const int l : labels) n *= sizes.at(l);
  return n;
}

// A tensor with a stride per label: repeated labels are one axis along the diagonal, axes of size 1 that broadcast are
// gone.
struct Operand {
  Tensor tensor;
  EinsumLabels labels;  // each once
  std::map<int, int64_t> strides;
  bool transposed = false;  // lies as [batch, summed, free]
};

Operand MakeOperand(const Tensor& t, const EinsumLabels& labels, const Sizes& sizes) {
  Operand o;
  o.tensor = t;
  const auto strides = RowMajorStrides(t.shape());
  for (size_t i = 0; i < labels.size(); ++i) {
    if (t.dim(static_cast<int>(i)) == 1 && sizes.at(labels[i]) != 1) continue;
    if (!Contains(o.labels, labels[i])) o.labels.push_back(labels[i]);
    o.strides[labels[i]] += strides[i];
  }
  return o;
}

EinsumLabels Joined(std::initializer_list<const EinsumLabels*> parts) {
  EinsumLabels all;
  for (const EinsumLabels* p : parts) all.insert(all.end(), p->begin(), p->end());
  return all;
}

bool IsContiguous(const Operand& o, const EinsumLabels& order, const Sizes& sizes) {
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t size = sizes.at(order[i]);
    if (size != 1 && o.strides.at(order[i]) != stride) return false;
    stride *= size;
  }
  return true;
}

// The elements in row-major order of `order`, as a flat tensor.
Status Arrange(KernelContext& ctx, const EinsumLabels& order, const Sizes& sizes, Operand* o) {
  if (IsContiguous(*o, order, sizes)) return absl::OkStatus();
  const int64_t n = Count(order, sizes);
  MR_ASSIGN_OR_RETURN(Tensor moved, ctx.AllocateTemp(o->tensor.dtype(), Shape::Vector(n)));
  CopyDims dims;
  int64_t stride = n;
  for (const int l : order) {
    const int64_t size = sizes.at(l);
    stride /= std::max<int64_t>(size, 1);
    dims.push_back({size, stride, o->strides.at(l)});
  }
  if (dims.empty()) dims.push_back({1, 1, 1});
  StridedCopy(&ctx, moved.dtype(), moved.mutable_raw(), o->tensor.raw(), dims);
  o->tensor = std::move(moved);
  stride = n;
  for (const int l : order) {
    stride /= std::max<int64_t>(sizes.at(l), 1);
    o->strides[l] = stride;
  }
  return absl::OkStatus();
}

// Sums the labels that `keep` lacks; afterwards the tensor is row-major in o->labels.
Status SumOut(KernelContext& ctx, const EinsumLabels& keep, const Sizes& sizes, const Reducer& sum, Operand* o) {
  EinsumLabels kept, summed;
  for (const int l : o->labels) (Contains(keep, l) ? kept : summed).push_back(l);
  if (summed.empty()) return absl::OkStatus();
  MR_RETURN_IF_ERROR(Arrange(ctx, Joined({&kept, &summed}), sizes, o));
  const int64_t rows = Count(kept, sizes), n = Count(summed, sizes), bytes = sum.element_bytes();
  MR_ASSIGN_OR_RETURN(Tensor result, ctx.AllocateTemp(o->tensor.dtype(), Shape::Vector(rows)));
  ctx.ParallelFor(rows, 5 + static_cast<double>(n), [&](int64_t begin, int64_t end) {
    alignas(16) char acc[kReduceAccumulatorBytes];
    for (int64_t r = begin; r < end; ++r) {
      sum.Init(acc, 1);
      sum.Inner(static_cast<const char*>(o->tensor.raw()) + r * n * bytes, 1, n, acc);
      sum.Finish(acc, 1, n, static_cast<char*>(result.mutable_raw()) + r * bytes);
    }
  });
  Operand done;
  done.tensor = std::move(result);
  done.labels = kept;
  int64_t stride = rows;
  for (const int l : kept) {
    stride /= std::max<int64_t>(sizes.at(l), 1);
    done.strides[l] = stride;
  }
  *o = std::move(done);
  return absl::OkStatus();
}

// Into [batch, free, summed] or, as long as nothing has to move, [batch, summed, free].
Status ToMatrices(KernelContext& ctx, const EinsumLabels& batch, const EinsumLabels& free, const EinsumLabels& summed,
                  const Sizes& sizes, Operand* o) {
  if (IsContiguous(*o, Joined({&batch, &summed, &free}), sizes)) {
    o->transposed = true;
    return absl::OkStatus();
  }
  return Arrange(ctx, Joined({&batch, &free, &summed}), sizes, o);
}

// Row-major in `order`, into the output, whose labels may repeat: what is off such a diagonal is zero.
void Deliver(KernelContext& ctx, const Tensor& from, const EinsumLabels& order, const EinsumLabels& output,
             const Sizes& sizes, Tensor* out) {
  std::map<int, int64_t> strides;
  const auto out_strides = RowMajorStrides(out->shape());
  for (size_t i = 0; i < output.size(); ++i) strides[output[i]] += out_strides[i];
  if (strides.size() < output.size()) std::memset(out->mutable_raw(), 0, out->TotalBytes());
  int64_t stride = Count(order, sizes);
  CopyDims dims;
  for (const int l : order) {
    stride /= std::max<int64_t>(sizes.at(l), 1);
    dims.push_back({sizes.at(l), strides.at(l), stride});
  }
  if (dims.empty()) dims.push_back({1, 1, 1});
  StridedCopy(&ctx, out->dtype(), out->mutable_raw(), from.raw(), dims);
}

class EinsumKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string text, init.Attr<std::string>("equation"));
    MR_ASSIGN_OR_RETURN(equation_, EinsumEquation::Parse(text));
    if (static_cast<int>(equation_.inputs.size()) != init.num_inputs()) {
      return InvalidArgument("equation '", text, "' has ", equation_.inputs.size(), " operands, but there are ",
                             init.num_inputs(), " inputs");
    }
    sum_ = FindReducer(ReduceKind::kSum, init.input_type(0));
    return sum_ ? absl::OkStatus() : Unimplemented("no sum of ", DTypeName(init.input_type(0)));
  }

  Status Compute(KernelContext& ctx) override {
    Sizes sizes;
    std::vector<EinsumLabels> labels;
    int broadcast_rank = 0;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      MR_ASSIGN_OR_RETURN(EinsumLabels of, LabelsOf(equation_.inputs[static_cast<size_t>(i)], ctx.input(i).rank()));
      MR_RETURN_IF_ERROR(AddSizes(ctx.input(i).shape(), of, &sizes));
      broadcast_rank = std::max(broadcast_rank, BroadcastRank(of));
      labels.push_back(std::move(of));
    }
    MR_ASSIGN_OR_RETURN(const EinsumLabels output, OutputLabelsOf(equation_.output, broadcast_rank));
    std::vector<int64_t> dims;
    for (const int l : output) dims.push_back(sizes.at(l));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(absl::MakeConstSpan(dims)));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    std::vector<Operand> operands;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      operands.push_back(MakeOperand(ctx.input(i), labels[static_cast<size_t>(i)], sizes));
    }
    return operands.size() == 1 ? One(ctx, output, sizes, &operands[0], out) : Two(ctx, output, sizes, operands, out);
  }

 private:
  static Status AddSizes(const Shape& shape, const EinsumLabels& labels, Sizes* sizes) {
    for (size_t i = 0; i < labels.size(); ++i) {
      const int64_t d = shape.dim(static_cast<int>(i));
      const auto [it, is_new] = sizes->emplace(labels[i], d);
      if (is_new || it->second == d) continue;
      const bool broadcasts = labels[i] >= kEllipsisBase && (it->second == 1 || d == 1);
      if (!broadcasts) {
        return InvalidArgument("Expected dimension ", it->second, " at axis ", i, " of the input shaped ",
                               shape.ToString(), " but got dimension ", d);
      }
      if (it->second == 1) it->second = d;
    }
    return absl::OkStatus();
  }

  Status One(KernelContext& ctx, const EinsumLabels& output, const Sizes& sizes, Operand* x, Tensor* out) const {
    MR_RETURN_IF_ERROR(SumOut(ctx, output, sizes, *sum_, x));
    const EinsumLabels order = x->labels;
    MR_RETURN_IF_ERROR(Arrange(ctx, order, sizes, x));
    Deliver(ctx, x->tensor, order, output, sizes, out);
    return absl::OkStatus();
  }

  Status Two(KernelContext& ctx, const EinsumLabels& output, const Sizes& sizes, std::vector<Operand>& operands,
             Tensor* out) const {
    Operand &x = operands[0], &y = operands[1];
    MR_RETURN_IF_ERROR(SumOut(ctx, Joined({&output, &y.labels}), sizes, *sum_, &x));
    MR_RETURN_IF_ERROR(SumOut(ctx, Joined({&output, &x.labels}), sizes, *sum_, &y));
    EinsumLabels batch, free_x, free_y, summed;
    for (const int l : x.labels) {
      if (!Contains(y.labels, l)) {
        free_x.push_back(l);
      } else {
        (Contains(output, l) ? batch : summed).push_back(l);
      }
    }
    for (const int l : y.labels) {
      if (!Contains(x.labels, l)) free_y.push_back(l);
    }
    MR_RETURN_IF_ERROR(ToMatrices(ctx, batch, free_x, summed, sizes, &x));
    MR_RETURN_IF_ERROR(ToMatrices(ctx, batch, free_y, summed, sizes, &y));
    Products p;
    p.count = p.x_count = p.y_count = Count(batch, sizes);
    p.m = Count(free_x, sizes);
    p.n = Count(free_y, sizes);
    p.k = Count(summed, sizes);
    p.transpose_x = x.transposed;
    p.transpose_y = !y.transposed;
    p.x = x.tensor.raw();
    p.y = y.tensor.raw();
    const EinsumLabels order = Joined({&batch, &free_x, &free_y});
    if (order == output) {
      p.result = out->mutable_raw();
      return MultiplyMatrices(ctx, out->dtype(), p);
    }
    MR_ASSIGN_OR_RETURN(Tensor product, ctx.AllocateTemp(out->dtype(), Shape::Vector(Count(order, sizes))));
    p.result = product.mutable_raw();
    MR_RETURN_IF_ERROR(MultiplyMatrices(ctx, out->dtype(), p));
    Deliver(ctx, product, order, output, sizes, out);
    return absl::OkStatus();
  }

  EinsumEquation equation_;
  std::shared_ptr<const Reducer> sum_;
};

}  // namespace

void RegisterEinsumKernels(KernelRegistry& registry) {
  registry.Add<EinsumKernel>({.op = "Einsum", .types = {{"T", Types("FC|IDX|i16")}}});
}

}  // namespace millrace
