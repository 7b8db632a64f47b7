// SPDX-License-Identifier: Apache-2.0
// CPU kernels: sets along the last dimension of tensors.
//
// A set is a row that has elements: rows are walked in row-major order, those that both tensors have together, so that
// the shape of a sparse tensor costs nothing.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/sparse/sparse.h"

namespace millrace {
namespace {

enum class SetOp : uint8_t { kAMinusB, kBMinusA, kIntersection, kUnion };

StatusOr<SetOp> SetOpNamed(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower == "a-b") return SetOp::kAMinusB;
  if (lower == "b-a") return SetOp::kBMinusA;
  if (lower == "intersection") return SetOp::kIntersection;
  if (lower == "union") return SetOp::kUnion;
  return InvalidArgument("Invalid set_operation ", name, ".");
}

// The rows of a tensor, dense or sparse, along its last dimension.
class Rows {
 public:
  static StatusOr<Rows> Dense(const Tensor& t) {
    if (t.rank() < 2) return InvalidArgument("Shape ", t.shape().ToString(), " has rank ", t.rank(), " < 2");
    Rows rows;
    rows.values_ = &t;
    rows.lead_.assign(t.shape().dims().begin(), t.shape().dims().end() - 1);
    rows.length_ = t.dim(t.rank() - 1);
    rows.count_ = rows.length_ == 0 ? 0 : t.num_elements() / rows.length_;
    return rows;
  }
  static StatusOr<Rows> Sparse(const SparseArg& s, bool validate) {
    if (s.rank < 2) return InvalidArgument("Invalid rank ", s.rank, ".");
    MR_RETURN_IF_ERROR(DenseShapeOf(s).status());
    MR_RETURN_IF_ERROR(validate ? CheckOrdered(s, "indices") : CheckInside(s, "indices"));
    Rows rows;
    rows.values_ = s.values;
    rows.lead_.assign(s.dims(), s.dims() + s.rank - 1);
    rows.order_ = RowMajorOrder(s, s.rank - 1);
    rows.sparse_ = true;
    for (size_t i = 0; i < rows.order_.size(); ++i) {
      const int64_t* at = s.at(rows.order_[i]);
      if (i > 0 && CompareIndices(s.at(rows.order_[i - 1]), at, s.rank - 1) == 0) continue;
      int64_t number = 0;
      for (int64_t d = 0; d + 1 < s.rank; ++d) number = number * s.dims()[d] + at[d];
      rows.numbers_.push_back(number);
      rows.begin_.push_back(i);
    }
    rows.count_ = static_cast<int64_t>(rows.numbers_.size());
    rows.begin_.push_back(rows.order_.size());
    return rows;
  }

  const std::vector<int64_t>& lead() const { return lead_; }
  int64_t count() const { return count_; }
  // Of the i-th row that there is, its number in row-major order among all.
  int64_t number(int64_t i) const { return sparse_ ? numbers_[static_cast<size_t>(i)] : i; }

  template <typename T>
  void Collect(int64_t i, std::vector<T>* set) const {
    const T* v = values_->data<T>();
    set->clear();
    if (sparse_) {
      const size_t k = static_cast<size_t>(i);
      for (size_t e = begin_[k]; e < begin_[k + 1]; ++e) set->push_back(v[order_[e]]);
    } else {
      set->assign(v + i * length_, v + (i + 1) * length_);
    }
    std::sort(set->begin(), set->end());
    set->erase(std::unique(set->begin(), set->end()), set->end());
  }

 private:
  const Tensor* values_ = nullptr;
  std::vector<int64_t> lead_;  // the shape without its last dimension
  int64_t count_ = 0;
  bool sparse_ = false;
  int64_t length_ = 0;  // of dense rows
  // Of sparse ones: elements sorted by row, each row's number and beginning.
  std::vector<int64_t> order_, numbers_;
  std::vector<size_t> begin_;
};

template <typename F>
bool VisitSetTypes(DType dtype, F&& f) {
  return VisitTypes<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, TString>(dtype, f);
}

template <typename T>
void Combined(SetOp op, const std::vector<T>& a, const std::vector<T>& b, std::vector<T>* out) {
  out->clear();
  const auto to = std::back_inserter(*out);
  switch (op) {
    case SetOp::kAMinusB: std::set_difference(a.begin(), a.end(), b.begin(), b.end(), to); break;
    case SetOp::kBMinusA: std::set_difference(b.begin(), b.end(), a.begin(), a.end(), to); break;
    case SetOp::kIntersection: std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), to); break;
    case SetOp::kUnion: std::set_union(a.begin(), a.end(), b.begin(), b.end(), to); break;
  }
}

template <typename T>
Status Write(KernelContext& ctx, SetOp op, const Rows& a, const Rows& b) {
  std::vector<T> x, y, made, values;
  std::vector<std::pair<int64_t, int64_t>> sizes;  // of rows that are not empty: number, size
  int64_t longest = 0;
  for (int64_t i = 0, j = 0; i < a.count() || j < b.count();) {
    const int64_t number =
        i == a.count()   ? b.number(j)
        : j == b.count() ? a.number(i)
                         : std::min(a.number(i), b.number(j));
    x.clear();
    y.clear();
    if (i < a.count() && a.number(i) == number) a.Collect(i++, &x);
    if (j < b.count() && b.number(j) == number) b.Collect(j++, &y);
    Combined(op, x, y, &made);
    if (made.empty()) continue;
    sizes.emplace_back(number, static_cast<int64_t>(made.size()));
    longest = std::max(longest, sizes.back().second);
    values.insert(values.end(), made.begin(), made.end());
  }
  const int64_t n = static_cast<int64_t>(values.size()), rank = static_cast<int64_t>(a.lead().size()) + 1;
  MR_ASSIGN_OR_RETURN(const Shape matrix, Shape::Make({n, rank}));
  MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, matrix));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(1, Shape::Vector(n)));
  std::copy(values.begin(), values.end(), out->mutable_data<T>());
  int64_t* to = indices->mutable_data<int64_t>();
  for (const auto& [number, size] : sizes) {
    for (int64_t k = 0; k < size; ++k, to += rank) {
      int64_t rest = number;
      for (int64_t d = rank - 2; d >= 0; --d) {
        to[d] = rest % a.lead()[static_cast<size_t>(d)];
        rest /= a.lead()[static_cast<size_t>(d)];
      }
      to[rank - 1] = k;
    }
  }
  std::vector<int64_t> dims = a.lead();
  dims.push_back(longest);
  return SetVector(ctx, 2, dims);
}

class SetKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(validate_, init.Attr<bool>("validate_indices"));
    return absl::OkStatus();
  }

 protected:
  StatusOr<Rows> RowsOf(const KernelContext& ctx, int first, bool dense) const {
    if (dense) return Rows::Dense(ctx.input(first));
    MR_ASSIGN_OR_RETURN(const SparseArg s, SparseArgOf(ctx, first, "the set"));
    return Rows::Sparse(s, validate_);
  }
  bool validate_ = true;
};

template <bool first_dense, bool second_dense>
class OperationKernel final : public SetKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(SetKernel::Init(init));
    MR_ASSIGN_OR_RETURN(const std::string name, init.Attr<std::string>("set_operation"));
    MR_ASSIGN_OR_RETURN(op_, SetOpNamed(name));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Rows a, RowsOf(ctx, 0, first_dense));
    MR_ASSIGN_OR_RETURN(const Rows b, RowsOf(ctx, first_dense ? 1 : 3, second_dense));
    if (a.lead() != b.lead()) return InvalidArgument("Mismatched shapes: all dimensions but the last must agree");
    Status status;
    const bool known = VisitSetTypes(ctx.output_dtype(1), [&]<typename T>() { status = Write<T>(ctx, op_, a, b); });
    return known ? status : Unimplemented("no sets of ", DTypeName(ctx.output_dtype(1)));
  }

 private:
  SetOp op_ = SetOp::kUnion;
};

class SizeKernel final : public SetKernel {
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Rows rows, RowsOf(ctx, 0, false));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(rows.lead()));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    ZeroElements(out->dtype(), out->mutable_raw(), 0, out->num_elements());
    const auto count = [&]<typename T>() {
      std::vector<T> set;
      for (int64_t i = 0; i < rows.count(); ++i) {
        rows.Collect(i, &set);
        out->mutable_data<int32_t>()[rows.number(i)] = static_cast<int32_t>(set.size());
      }
    };
    const bool known = VisitSetTypes(ctx.input(1).dtype(), count);
    return known ? absl::OkStatus() : Unimplemented("no sets of ", DTypeName(ctx.input(1).dtype()));
  }
};

}  // namespace

void RegisterSparseSetKernels(KernelRegistry& registry) {
  registry.Add<OperationKernel<true, true>>({.op = "DenseToDenseSetOperation"});
  registry.Add<OperationKernel<true, false>>({.op = "DenseToSparseSetOperation"});
  registry.Add<OperationKernel<false, false>>({.op = "SparseToSparseSetOperation"});
  registry.Add<SizeKernel>({.op = "SetSize"});
}

}  // namespace millrace
