// SPDX-License-Identifier: Apache-2.0
// CPU kernels: element-wise arithmetic, comparison, activations. One class for unary and one for binary ops; what
// they compute comes from the table of tile functions.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/elementwise/elementwise_broadcast.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

constexpr double kInlineCost = 20000;  // nanoseconds under which threads do not help

// Calls fn(begin, end) over blocks of n elements.
template <typename F>
void ForBlocks(KernelContext& ctx, int64_t n, double cost, const F& fn) {
  if (static_cast<double>(n) * cost < kInlineCost) return fn(0, n);
  const int64_t blocks = (n + kElementwiseBlock - 1) / kElementwiseBlock;
  ctx.ParallelFor(blocks, cost * kElementwiseBlock, [&](int64_t begin, int64_t end) {
    fn(begin * kElementwiseBlock, std::min(n, end * kElementwiseBlock));
  });
}

const char* At(const void* p, int64_t i, uint32_t size) { return static_cast<const char*>(p) + i * size; }
char* At(void* p, int64_t i, uint32_t size) { return static_cast<char*>(p) + i * size; }

Status IllegalOperand(const KernelContext& ctx) {
  const std::string& op = ctx.node().op->name;
  if (op == "Pow") return InvalidArgument("Integers to negative integer powers are not allowed");
  // The code that callers of these two know.
  if (op == "TruncateDiv" || op == "TruncateMod") return Internal("Integer division by zero");
  return InvalidArgument("Integer division by zero");
}

// Rows that are shorter than this are joined where both operands move along them, and where one stands still if a call
// costs more than to repeat it: several rows a call of the tile function, operands that lie otherwise copied.
constexpr int64_t kShortRow = 256, kShortOfOne = 64, kShortOfOneConverted = 128;
constexpr int64_t kJoined = 512;  // elements of a call

struct Operands {
  const void* a;
  const void* b;
  void* out;
};

bool HasShortRows(const TileOp& op, const BroadcastPlan& plan) {
  if (op.in == DType::kString || plan.rows() == 1) return false;
  if (plan.Moves(0) && plan.Moves(1)) return plan.inner() < kShortRow;
  return plan.inner() <= (op.direct ? kShortOfOne : kShortOfOneConverted);
}

// One operand's part of several rows of a block, as one run: as it lies, a run again and again, or numbers each
// repeated. What stays the same from call to call is copied once.
template <typename E>
class JoinedRun {
 public:
  JoinedRun(const BroadcastPlan& plan, int i, const void* data)
      : inner_(plan.inner()), stride_(plan.BlockStride(i)), moves_(plan.Moves(i)), data_(static_cast<const E*>(data)) {}

  // `rows` rows from the one at `offset` on.
  const E* Of(int64_t offset, int64_t rows) {
    if (moves_ && stride_ == inner_) return data_ + offset;
    if (offset == offset_ && rows <= rows_) return run_;
    offset_ = offset;
    rows_ = rows;
    const E* const from = data_ + offset;
    if (moves_ && stride_ == 0) {
      std::copy_n(from, inner_, run_);
      const int64_t n = rows * inner_;
      for (int64_t have = inner_; have < n; have *= 2) std::copy_n(run_, std::min(have, n - have), run_ + have);
    } else {
      for (int64_t r = 0; r < rows; ++r) std::fill_n(run_ + r * inner_, inner_, from[r * stride_]);
    }
    return run_;
  }
  int64_t stride() const { return stride_; }

 private:
  int64_t inner_, stride_;
  bool moves_;
  const E* data_;
  int64_t offset_ = -1, rows_ = 0;
  alignas(64) E run_[kJoined];
};

template <typename E>
void JoinedRows(KernelContext& ctx, const TileOp& op, const BroadcastPlan& plan, Operands p) {
  const int64_t inner = plan.inner(), block = plan.block(), per_call = std::clamp<int64_t>(kJoined / inner, 1, block);
  const int64_t calls = (block + per_call - 1) / per_call;  // of a block
  const double cost = op.fn->cost * static_cast<double>(inner * per_call) + 50;
  ctx.ParallelFor(plan.rows() / block * calls, cost, [&](int64_t begin, int64_t end) {
    JoinedRun<E> a(plan, 0, p.a), b(plan, 1, p.b);
    int64_t number = begin / calls, row = begin % calls * per_call;
    auto at = BroadcastPlan::Cursor::OverBlocks(plan, number);
    for (int64_t call = begin; call < end; ++call) {
      const int64_t rows = std::min(per_call, block - row);
      RunBinary(
          op, BinaryForm::kVV, a.Of(at.offset(0) + row * a.stride(), rows), b.Of(at.offset(1) + row * b.stride(), rows),
          At(p.out, (number * block + row) * inner, op.out_size), rows * inner);
      row += rows;
      if (row < block) continue;
      row = 0;
      ++number;
      at.Next();
    }
  });
}

void ShortRows(KernelContext& ctx, const TileOp& op, const BroadcastPlan& plan, Operands p) {
  struct Wide {
    uint64_t low, high;
  };
  const auto run =
      op.in_size == 1   ? &JoinedRows<uint8_t>
      : op.in_size == 2 ? &JoinedRows<uint16_t>
      : op.in_size == 4 ? &JoinedRows<uint32_t>
      : op.in_size == 8 ? &JoinedRows<uint64_t>
                        : &JoinedRows<Wide>;
  run(ctx, op, plan, p);
}

void GeneralRows(KernelContext& ctx, const TileOp& op, const BroadcastPlan& plan, Operands p) {
  const BinaryForm form = !plan.Moves(0) ? BinaryForm::kSV : !plan.Moves(1) ? BinaryForm::kVS : BinaryForm::kVV;
  const int64_t inner = plan.inner();
  // Long rows are cut into parts, so that few of them still feed all threads.
  const int64_t parts = (inner + kElementwiseBlock - 1) / kElementwiseBlock;
  const int64_t part = parts == 1 ? inner : kElementwiseBlock;
  ctx.ParallelFor(plan.rows() * parts, op.fn->cost * static_cast<double>(part) + 5, [&](int64_t begin, int64_t end) {
    BroadcastPlan::Cursor row(plan, begin / parts);
    int64_t at = begin % parts;
    int64_t row_number = begin / parts;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = at * part;
      const int64_t n = std::min(part, inner - first);
      RunBinary(op, form, At(p.a, row.offset(0) + (plan.Moves(0) ? first : 0), op.in_size),
                At(p.b, row.offset(1) + (plan.Moves(1) ? first : 0), op.in_size),
                At(p.out, row_number * inner + first, op.out_size), n);
      if (++at == parts) {
        at = 0;
        ++row_number;
        row.Next();
      }
    }
  });
}

}  // namespace

void ParallelUnary(KernelContext& ctx, const TileOp& op, const void* a, void* out, int64_t n) {
  ForBlocks(ctx, n, op.fn->cost, [&](int64_t begin, int64_t end) {
    RunUnary(op, At(a, begin, op.in_size), At(out, begin, op.out_size), end - begin);
  });
}

void ParallelBinary(KernelContext& ctx, const TileOp& op, BinaryForm form, const void* a, const void* b, void* out,
                    int64_t n) {
  ForBlocks(ctx, n, op.fn->cost, [&](int64_t begin, int64_t end) {
    RunBinary(op, form, form == BinaryForm::kSV ? a : At(a, begin, op.in_size),
              form == BinaryForm::kVS ? b : At(b, begin, op.in_size), At(out, begin, op.out_size), end - begin);
  });
}

Status BroadcastBinary(KernelContext& ctx, const TileOp& op, int ia, int ib) {
  const Tensor& a = ctx.input(ia);
  const Tensor& b = ctx.input(ib);
  if (op.fn->check_b != nullptr && a.num_elements() != 0 && !CheckRightOperand(op, b.raw(), b.num_elements())) {
    if (!BroadcastShapes(a.shape(), b.shape()).ok()) {
      return InvalidArgument("Incompatible shapes: ", a.shape().ToString(), " vs. ", b.shape().ToString());
    }
    return IllegalOperand(ctx);
  }
  // Strings are not computed in place: a result may be longer than its operand and start in the middle of it.
  const bool reuse = op.in == op.out && op.in != DType::kString;
  auto output = [&](std::initializer_list<int> candidates, const Shape& shape) {
    return reuse ? ctx.ForwardOrAllocate(candidates, 0, shape) : ctx.AllocateOutput(0, shape);
  };
  const bool same = (a.rank() == 0 && b.rank() == 0) || a.shape() == b.shape();
  if (same || (b.num_elements() == 1 && b.rank() <= a.rank())) {
    MR_ASSIGN_OR_RETURN(Tensor * out, same ? output({ia, ib}, a.shape()) : output({ia}, a.shape()));
    ParallelBinary(
        ctx, op, same ? BinaryForm::kVV : BinaryForm::kVS, a.raw(), b.raw(), out->mutable_raw(), a.num_elements());
    return absl::OkStatus();
  }
  if (a.num_elements() == 1 && a.rank() <= b.rank()) {
    MR_ASSIGN_OR_RETURN(Tensor * out, output({ib}, b.shape()));
    ParallelBinary(ctx, op, BinaryForm::kSV, a.raw(), b.raw(), out->mutable_raw(), b.num_elements());
    return absl::OkStatus();
  }
  auto shape = BroadcastShapes(a.shape(), b.shape());
  if (!shape.ok()) {
    return InvalidArgument("Incompatible shapes: ", a.shape().ToString(), " vs. ", b.shape().ToString());
  }
  // An operand that fills the result is read and written element by element in the same order.
  const bool a_fills = a.num_elements() == shape->num_elements();
  const bool b_fills = b.num_elements() == shape->num_elements();
  MR_ASSIGN_OR_RETURN(
      Tensor * out,
      a_fills && b_fills ? output({ia, ib}, *shape)
      : a_fills          ? output({ia}, *shape)
      : b_fills          ? output({ib}, *shape)
                         : ctx.AllocateOutput(0, *shape));
  if (shape->num_elements() == 0) return absl::OkStatus();
  const BroadcastPlan plan({&a.shape(), &b.shape()}, *shape);
  const Operands p{a.raw(), b.raw(), out->mutable_raw()};
  (HasShortRows(op, plan) ? ShortRows : GeneralRows)(ctx, op, plan, p);
  return absl::OkStatus();
}

namespace {

// Tensors of so few elements are computed at once, in the first input if that dies here: then its slot's share moves to
// the output, which costs no allocation and no atomic operation.
constexpr int64_t kTiny = 16;

bool SameTinyShape(const Tensor& a, const Tensor& b) {
  return a.num_elements() == b.num_elements() && a.rank() == b.rank() && (a.rank() <= 1 || a.shape() == b.shape());
}

class UnaryKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    op_ = ResolveTile(init.op.name, BaseType(init.input_type(0)), BaseType(init.output_type(0)));
    if (!op_) return Unimplemented(init.op.name, " of ", DTypeName(init.input_type(0)), " on CPU");
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (op_.direct && x.num_elements() <= kTiny) {
      Tensor* out = op_.in == op_.out ? ctx.ForwardOwned(0, 0) : nullptr;
      if (out == nullptr) {
        MR_ASSIGN_OR_RETURN(out, ctx.AllocateOutput(0, x.shape()));
      }
      op_.fn->unary(x.raw(), out->mutable_raw(), x.num_elements());
      return absl::OkStatus();
    }
    MR_ASSIGN_OR_RETURN(
        Tensor * out, op_.in == op_.out ? ctx.ForwardOrAllocate({0}, 0, x.shape()) : ctx.AllocateOutput(0, x.shape()));
    ParallelUnary(ctx, op_, x.raw(), out->mutable_raw(), x.num_elements());
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 private:
  TileOp op_;
};

class BinaryKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    op_ = ResolveTile(init.op.name, BaseType(init.input_type(0)), BaseType(init.output_type(0)));
    if (!op_) return Unimplemented(init.op.name, " of ", DTypeName(init.input_type(0)), " on CPU");
    tiny_ = op_.direct && op_.fn->check_b == nullptr && op_.in != DType::kString;
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    if (tiny_ && a.num_elements() <= kTiny) {
      const bool same = SameTinyShape(a, b);
      if (same || b.shape().IsScalar()) {
        Tensor* out = op_.in == op_.out ? ctx.ForwardOwned(0, 0) : nullptr;
        if (out == nullptr && same && op_.in == op_.out) out = ctx.ForwardOwned(1, 0);
        if (out == nullptr) {
          MR_ASSIGN_OR_RETURN(out, ctx.AllocateOutput(0, a.shape()));
        }
        (same ? op_.fn->vv : op_.fn->vs)(a.raw(), b.raw(), out->mutable_raw(), a.num_elements());
        return absl::OkStatus();
      }
    }
    return BroadcastBinary(ctx, op_, 0, 1);
  }
  bool IsExpensive() const override { return false; }

 protected:
  TileOp op_;

 private:
  bool tiny_ = false;
};

// Equal and NotEqual: with incompatible_shape_error false, shapes that do not fit give the scalar "different".
class EqualityKernel final : public BinaryKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(BinaryKernel::Init(init));
    if (init.HasAttr("incompatible_shape_error")) {
      MR_ASSIGN_OR_RETURN(shape_error_, init.Attr<bool>("incompatible_shape_error"));
    }
    when_different_ = init.op.name == "NotEqual";
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (!shape_error_ && !BroadcastShapes(ctx.input(0).shape(), ctx.input(1).shape()).ok()) {
      MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
      *out->mutable_data<uint8_t>() = when_different_;
      return absl::OkStatus();
    }
    return BinaryKernel::Compute(ctx);
  }

 private:
  bool shape_error_ = true;
  bool when_different_ = false;
};

// Gradients of activations and of functions of the output: no broadcasting.
class SameShapeBinaryKernel final : public BinaryKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    if (a.num_elements() == b.num_elements() && a.shape() == b.shape()) return BinaryKernel::Compute(ctx);
    return InvalidArgument(ctx.node().op->name, ": inputs must have the same shape, got ", a.shape().ToString(),
                           " and ", b.shape().ToString());
  }
};

struct Entry {
  const char* op;
  const char* types;  // of T
};

constexpr Entry kUnary[] = {
    {"Abs", "FLT|i8|i16|i32|i64"},
    {"Acos", "FC|i8|i16|i32|i64"},
    {"Acosh", "FC"},
    {"Asin", "FC"},
    {"Asinh", "FC"},
    {"Atan", "FC"},
    {"Atanh", "FC"},
    {"Ceil", "FLT"},
    {"Cos", "FC"},
    {"Cosh", "FC"},
    {"Digamma", "FLT"},
    {"Erf", "FLT"},
    {"Erfc", "FLT"},
    {"Exp", "FC"},
    {"Expm1", "FC"},
    {"Floor", "FLT"},
    {"Inv", "FC"},
    {"Invert", "INT"},
    {"IsFinite", "FLT"},
    {"IsInf", "FLT"},
    {"IsNan", "FLT"},
    {"Lgamma", "FLT"},
    {"Log", "FC"},
    {"Log1p", "FC"},
    {"Neg", "FC|i8|i16|i32|i64"},
    {"Reciprocal", "FC"},
    {"Rint", "FLT"},
    {"Round", "FLT|i8|i16|i32|i64"},
    {"Rsqrt", "FC"},
    {"Sigmoid", "FC"},
    {"Sign", "FC|i8|i16|i32|i64"},
    {"Sin", "FC"},
    {"Sinh", "FC"},
    {"Sqrt", "FC"},
    {"Square", "REAL|CPX"},
    {"Tan", "FC"},
    {"Tanh", "FC"},
    {"Relu", "REAL"},
    {"Relu6", "REAL"},
    {"Elu", "FLT"},
    {"Selu", "FLT"},
    {"Softplus", "FLT"},
    {"Softsign", "FLT"},
    {"Real", "CPX"},
    {"Imag", "CPX"},
    {"Angle", "CPX"},
    {"ComplexAbs", "CPX"},
    {"Conj", "CPX"},
    {"BesselI0e", "FLT"},
    {"BesselI1e", "FLT"},
    {"BesselI0", "FLT"},
    {"BesselI1", "FLT"},
    {"BesselJ0", "FLT"},
    {"BesselJ1", "FLT"},
    {"BesselK0", "FLT"},
    {"BesselK1", "FLT"},
    {"BesselK0e", "FLT"},
    {"BesselK1e", "FLT"},
    {"BesselY0", "FLT"},
    {"BesselY1", "FLT"},
    {"Erfinv", "FLT"},
    {"Ndtri", "FLT"},
    {"PopulationCount", "INT"},
};
constexpr Entry kBinary[] = {
    {"Add", "REAL|CPX|str"},
    {"AddV2", "REAL|CPX"},
    {"Sub", "REAL|CPX"},
    {"Mul", "REAL|CPX"},
    {"Div", "REAL|CPX"},
    {"RealDiv", "FC"},
    {"DivNoNan", "FC"},
    {"MulNoNan", "FC"},
    {"FloorDiv", "REAL"},
    {"FloorMod", "REAL"},
    {"Mod", "FLT|INT"},
    {"TruncateDiv", "REAL"},
    {"TruncateMod", "FLT|INT"},
    {"Pow", "FC|i8|i16|i32|i64"},
    {"Maximum", "REAL"},
    {"Minimum", "REAL"},
    {"SquaredDifference", "FC|i32|i64"},
    {"Xdivy", "FC"},
    {"Xlogy", "FC"},
    {"Xlog1py", "FC"},
    {"Atan2", "FLT"},
    {"Less", "REAL"},
    {"LessEqual", "REAL"},
    {"Greater", "REAL"},
    {"GreaterEqual", "REAL"},
    {"BitwiseAnd", "INT"},
    {"BitwiseOr", "INT"},
    {"BitwiseXor", "INT"},
    {"LeftShift", "INT"},
    {"RightShift", "INT"},
    {"Complex", "FD"},
    {"Polygamma", "FD"},
    {"Zeta", "FD"},
    {"Igamma", "FD"},
    {"Igammac", "FD"},
    {"IgammaGradA", "FD"},
    {"RandomGammaGrad", "FD"},
    {"NextAfter", "FD"},
};
constexpr Entry kSameShape[] = {
    {"InvGrad", "FC"},  {"ReciprocalGrad", "FC"}, {"RsqrtGrad", "FC"},     {"SigmoidGrad", "FC"},
    {"SqrtGrad", "FC"}, {"TanhGrad", "FC"},       {"ReluGrad", "REAL"},    {"Relu6Grad", "REAL"},
    {"EluGrad", "FLT"}, {"SeluGrad", "FLT"},      {"SoftplusGrad", "FLT"}, {"SoftsignGrad", "FLT"},
};

KernelSpec SpecOf(const Entry& e) {
  const TileOp tile = ResolveTile(e.op, DType::kFloat);
  const bool is_costly = tile && tile.fn->cost > 1;
  return {.op = e.op, .types = {{"T", Types(e.types)}}, .cost = is_costly ? CostlyElementCost : ElementCost};
}

}  // namespace

void RegisterUnaryBinaryKernels(KernelRegistry& r) {
  for (const Entry& e : kUnary) r.Add<UnaryKernel>(SpecOf(e));
  for (const Entry& e : kBinary) r.Add<BinaryKernel>(SpecOf(e));
  for (const Entry& e : kSameShape) r.Add<SameShapeBinaryKernel>(SpecOf(e));
  r.Add<UnaryKernel>({.op = "LogicalNot"});
  r.Add<BinaryKernel>({.op = "LogicalAnd"});
  r.Add<BinaryKernel>({.op = "LogicalOr"});
  for (const char* op : {"Equal", "NotEqual"}) {
    r.Add<EqualityKernel>({.op = op, .types = {{"T", Types("REAL|CPX|bool|str|QNT")}}});
  }
}

void RegisterElementwiseKernels(KernelRegistry& registry) {
  RegisterUnaryBinaryKernels(registry);
  RegisterCastKernels(registry);
  RegisterSelectKernels(registry);
  RegisterBroadcastKernels(registry);
  RegisterElementwiseRestKernels(registry);
  RegisterSpecialKernels(registry);
}

}  // namespace millrace
