// SPDX-License-Identifier: Apache-2.0
// Ops: pooling over windows, and its gradients.
#include "ops/array/array_ops.h"
#include "ops/nn/nn_ops.h"

namespace millrace {
namespace {

// The sizes of a pooling op are attributes, or (V2) the last two inputs, known or not.
struct PoolShape {
  WindowAttrs attrs;
  bool sizes_known = true;
};

StatusOr<PoolShape> PoolShapeOf(ShapeContext& c) {
  PoolShape p;
  MR_ASSIGN_OR_RETURN(p.attrs, WindowAttrsOf(c, /*spatial_only=*/false));
  const ArgRange ksize = c.input_arg("ksize");
  if (ksize.end == ksize.begin) return p;
  auto read = [&](int i, std::vector<int64_t>* list) -> Status {
    MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
    MR_ASSIGN_OR_RETURN(auto values, c.ConstantInts(i));
    if (!values) {
      p.sizes_known = false;
      return absl::OkStatus();
    }
    if (values->empty()) return InvalidArgument("window sizes and strides must have ", p.attrs.layout.rank, " entries");
    *list = *std::move(values);
    return absl::OkStatus();
  };
  MR_RETURN_IF_ERROR(read(ksize.begin, &p.attrs.ksize));
  MR_RETURN_IF_ERROR(read(ksize.begin + 1, &p.attrs.strides));
  MR_RETURN_IF_ERROR(CheckWindowAttrs(&p.attrs, /*spatial_only=*/false));
  return p;
}

StatusOr<PartialShape> PooledShape(const PoolShape& p, const PartialShape& input) {
  std::vector<int64_t> out(static_cast<size_t>(p.attrs.layout.rank), -1);
  if (p.sizes_known) {
    for (size_t d = 0; d < out.size(); ++d) {
      const int64_t in = input.dim(static_cast<int>(d));
      if (in < 0) continue;
      if (p.attrs.ksize[d] == 1 && p.attrs.strides[d] == 1) {
        out[d] = in;  // of any size, 0 too
        continue;
      }
      MR_ASSIGN_OR_RETURN(
          const WindowExtent w, ComputeWindowStrict(in, p.attrs.ksize[d], p.attrs.strides[d], 1, p.attrs.padding));
      out[d] = w.output;
    }
  }
  return PartialShape::Make(out);
}

Status CheckPooled(const PoolShape& p, const PartialShape& input, const PartialShape& pooled) {
  MR_ASSIGN_OR_RETURN(const PartialShape want, PooledShape(p, input));
  if (want.IsCompatibleWith(pooled)) return absl::OkStatus();
  return InvalidArgument("pooling ", input.ToString(), " gives ", want.ToString(), ", not ", pooled.ToString());
}

Status PoolShapeFn(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PoolShape p, PoolShapeOf(c));
  MR_ASSIGN_OR_RETURN(const PartialShape input, c.WithRank(0, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape out, PooledShape(p, input));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
  return absl::OkStatus();
}

// MaxPoolGrad(orig_input, orig_output, grad): like orig_input.
Status MaxPoolGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PoolShape p, PoolShapeOf(c));
  MR_ASSIGN_OR_RETURN(const PartialShape input, c.WithRank(0, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape output, c.WithRank(1, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape grad, c.WithRank(2, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape both, c.Merge(output, grad, "orig_output and grad"));
  MR_RETURN_IF_ERROR(CheckPooled(p, input, both));
  c.set_output(0, input);
  return absl::OkStatus();
}

// MaxPoolGradGrad(orig_input, orig_output, grad): like orig_output; grad is like orig_input.
Status MaxPoolGradGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PoolShape p, PoolShapeOf(c));
  MR_ASSIGN_OR_RETURN(const PartialShape input, c.WithRank(0, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape output, c.WithRank(1, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape grad, c.WithRank(2, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape both, c.Merge(input, grad, "orig_input and grad"));
  MR_RETURN_IF_ERROR(CheckPooled(p, both, output));
  MR_ASSIGN_OR_RETURN(const PartialShape pooled, PooledShape(p, both));
  MR_ASSIGN_OR_RETURN(PartialShape out, c.Merge(output, pooled, "orig_output"));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// MaxPoolGradWithArgmax(input, grad, argmax): like input.
Status MaxPoolGradWithArgmaxShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PoolShape p, PoolShapeOf(c));
  MR_ASSIGN_OR_RETURN(const PartialShape input, c.WithRank(0, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape grad, c.WithRank(1, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape argmax, c.WithRank(2, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape both, c.Merge(grad, argmax, "grad and argmax"));
  MR_RETURN_IF_ERROR(CheckPooled(p, input, both));
  c.set_output(0, input);
  return absl::OkStatus();
}

// MaxPoolGradGradWithArgmax(input, grad, argmax): like argmax; grad is like input.
Status MaxPoolGradGradWithArgmaxShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PoolShape p, PoolShapeOf(c));
  MR_ASSIGN_OR_RETURN(const PartialShape input, c.WithRank(0, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape grad, c.WithRank(1, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape argmax, c.WithRank(2, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(const PartialShape both, c.Merge(input, grad, "input and grad"));
  MR_RETURN_IF_ERROR(CheckPooled(p, both, argmax));
  c.set_output(0, argmax);
  return absl::OkStatus();
}

Status AvgPoolGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PoolShape p, PoolShapeOf(c));
  MR_ASSIGN_OR_RETURN(const PartialShape sizes, c.WithRank(0, 1));
  if (sizes.has_dim(0) && sizes.dim(0) != p.attrs.layout.rank) {
    return InvalidArgument("orig_input_shape must have ", p.attrs.layout.rank, " elements, got ", sizes.dim(0));
  }
  MR_ASSIGN_OR_RETURN(const auto given, c.ConstantInts(0));
  if (given) {
    MR_RETURN_IF_ERROR(Shape::Make(absl::MakeConstSpan(*given)).status());
  }
  MR_ASSIGN_OR_RETURN(const PartialShape grad, c.WithRank(1, p.attrs.layout.rank));
  MR_ASSIGN_OR_RETURN(PartialShape input, c.InputAsShape(0));
  if (!input.has_rank()) input = PartialShape::UnknownOfRank(p.attrs.layout.rank);
  if (input.rank() != p.attrs.layout.rank) return InvalidArgument("orig_input_shape has rank ", input.rank());
  MR_RETURN_IF_ERROR(CheckPooled(p, input, grad));
  c.set_output(0, std::move(input));
  return absl::OkStatus();
}

AttrMap PoolAttrs(const GradContext& g) { return CopyAttrs(g.node(), {"ksize", "strides", "padding", "data_format"}); }

Output Build(const GradContext& g, const char* op, std::vector<Arg> inputs) {
  Node* n = g.b().OpNode(op, std::move(inputs), PoolAttrs(g));
  return n ? n->output(0) : Output{};
}

Status MaxPoolGradient(GradContext& g) {
  g.set_dx(0, Build(g, "MaxPoolGrad", {g.x(0), g.y(), g.dy()}));
  return g.status();
}
Status MaxPoolV2Gradient(GradContext& g) {
  g.set_dx(0, Build(g, "MaxPoolGradV2", {g.x(0), g.y(), g.dy(), g.x(1), g.x(2)}));
  return g.status();
}
// Where the maximum lies does not move under small changes, so orig_input and orig_output get zeros.
Status MaxPoolGradGradient(GradContext& g) {
  g.set_dx(0, g.b().ZerosLike(g.x(0)));
  g.set_dx(1, g.b().ZerosLike(g.x(1)));
  g.set_dx(2, Build(g, "MaxPoolGradGrad", {g.x(0), g.x(1), g.dy()}));
  return g.status();
}
Status MaxPoolGradV2Gradient(GradContext& g) {
  g.set_dx(0, g.b().ZerosLike(g.x(0)));
  g.set_dx(1, g.b().ZerosLike(g.x(1)));
  g.set_dx(2, Build(g, "MaxPoolGradGradV2", {g.x(0), g.x(1), g.dy(), g.x(3), g.x(4)}));
  return g.status();
}
Status MaxPoolGradGradGradient(GradContext& g) {
  g.set_dx(0, g.b().ZerosLike(g.x(0)));
  g.set_dx(1, g.b().ZerosLike(g.x(1)));
  g.set_dx(2, Build(g, "MaxPoolGrad", {g.x(0), g.x(1), g.dy()}));
  return g.status();
}
Status MaxPool3DGradient(GradContext& g) {
  g.set_dx(0, Build(g, "MaxPool3DGrad", {g.x(0), g.y(), g.dy()}));
  return g.status();
}
Status MaxPool3DGradGradient(GradContext& g) {
  g.set_dx(0, g.b().ZerosLike(g.x(0)));
  g.set_dx(1, g.b().ZerosLike(g.x(1)));
  g.set_dx(2, Build(g, "MaxPool3DGradGrad", {g.x(0), g.x(1), g.dy()}));
  return g.status();
}
Status MaxPool3DGradGradGradient(GradContext& g) {
  g.set_dx(0, g.b().ZerosLike(g.x(0)));
  g.set_dx(1, g.b().ZerosLike(g.x(1)));
  g.set_dx(2, Build(g, "MaxPool3DGrad", {g.x(0), g.x(1), g.dy()}));
  return g.status();
}
Status AvgPool3DGradient(GradContext& g) {
  g.set_dx(0, Build(g, "AvgPool3DGrad", {ShapeOf(g.b(), g.x(0)), g.dy()}));
  return g.status();
}
Status AvgPool3DGradGradient(GradContext& g) {
  g.set_dx(1, Build(g, "AvgPool3D", {g.dy()}));
  return g.status();
}
Status MaxPoolWithArgmaxGradient(GradContext& g) {
  AttrMap attrs = CopyAttrs(g.node(), {"ksize", "strides", "padding", "include_batch_in_index"});
  Node* n = g.b().OpNode("MaxPoolGradWithArgmax", std::vector<Arg>{g.x(0), g.dy(), g.y(1)}, std::move(attrs));
  if (n) g.set_dx(0, n->output(0));
  return g.status();
}
Status AvgPoolGradient(GradContext& g) {
  g.set_dx(0, Build(g, "AvgPoolGrad", {ShapeOf(g.b(), g.x(0)), g.dy()}));
  return g.status();
}
Status AvgPoolGradGradient(GradContext& g) {
  g.set_dx(1, Build(g, "AvgPool", {g.dy()}));
  return g.status();
}

#define MR_POOL_SIZES "ksize:list(int)>=4; strides:list(int)>=4; padding in {SAME,VALID}"
#define MR_POOL_ATTRS MR_POOL_SIZES "; data_format in {NHWC,NCHW}=\"NHWC\""
#define MR_POOL_V2_ATTRS "padding in {SAME,VALID}; data_format in {NHWC,NCHW}=\"NHWC\""
constexpr char kExampleInput[] =
    "f32[1,4,5,2]{1 9 3 7 5 4 2 8 6 0 -1 12 14 13 11 -5 10 -2 -3 20 "
    "30 21 22 40 23 24 -7 31 32 33 41 -8 42 34 25 26 35 50 51 -9}";

void RegisterMaxPool(OpRegistry& r) {
  r.Add("MaxPool(input:T) -> (output:T) | T in FLT|IDX|i8|i16|u8|u16|u32|u64|qi8=f32; " MR_POOL_SIZES
        "; data_format in {NHWC,NCHW,NCHW_VECT_C}=\"NHWC\"")
      .Doc("The largest value in each window. Windows lie over rows and columns, or over channels alone.")
      .Shape(PoolShapeFn)
      .Gradient(MaxPoolGradient)
      .Example(std::string(kExampleInput) + " | ksize=[1,2,2,1]; strides=[1,2,2,1]; padding=\"SAME\"")
      .Example("!i32[1,1,1,4]{3 1 2 5} | ksize=[1,1,1,2]; strides=[1,1,1,2]; padding=\"VALID\"");
  r.Add(
       "MaxPoolV2(input:T, ksize:i32, strides:i32) -> (output:T) | T in FLT|IDX|i8|i16|u8|u16|u32|u64|qi8=f32; "
       "padding in {SAME,VALID}; data_format in {NHWC,NCHW,NCHW_VECT_C}=\"NHWC\"")
      .Doc("MaxPool with the window's sizes and strides as tensors.")
      .Shape(PoolShapeFn)
      .Gradient(MaxPoolV2Gradient)
      .Example(std::string(kExampleInput) + ", i32[4]{1 2 2 1}, i32[4]{1 2 2 1} | padding=\"VALID\"");
  r.Add(
       "MaxPoolWithArgmax(input:T) -> (output:T, argmax:Targmax) | ksize:list(int)>=4; strides:list(int)>=4; "
       "Targmax in IDX=i64; padding in {SAME,VALID}; include_batch_in_index:bool=false; T in REAL=f32")
      .Doc(
          "MaxPool that also tells where each maximum lies: ((b *) rows + y) * columns + x) * channels + c, the first "
          "one "
          "of equals.")
      .Shape(PoolShapeFn)
      .Gradient(MaxPoolWithArgmaxGradient)
      .Example(std::string(kExampleInput) + " | ksize=[1,2,2,1]; strides=[1,2,2,1]; padding=\"VALID\"");
}

void RegisterMaxPoolGrads(OpRegistry& r) {
  const std::string input(kExampleInput);
  const std::string pooled = "f32[1,2,2,2]{14 13 11 8 42 40 35 50}";
  r.Add("MaxPoolGrad(orig_input:T, orig_output:T, grad:T) -> (output:T) | " MR_POOL_ATTRS "; T in REAL=f32")
      .Doc("Gradient of MaxPool: each output's gradient goes to the first cell of its window that holds the maximum.")
      .Shape(MaxPoolGradShape)
      .Gradient(MaxPoolGradGradient)
      .Example(
          "!" + input + ", !" + pooled + ", f32[1,2,2,2]~ | ksize=[1,2,2,1]; strides=[1,2,2,1]; padding=\"VALID\"");
  r.Add("MaxPoolGradV2(orig_input:T, orig_output:T, grad:T, ksize:i32, strides:i32) -> (output:T) | " MR_POOL_V2_ATTRS
        "; T in REAL=f32")
      .Doc("MaxPoolGrad with the window's sizes and strides as tensors.")
      .Shape(MaxPoolGradShape)
      .Gradient(MaxPoolGradV2Gradient)
      .Example("!" + input + ", !" + pooled + ", f32[1,2,2,2]~, i32[4]{1 2 2 1}, i32[4]{1 2 2 1} | padding=\"VALID\"");
  r.Add("MaxPoolGradGrad(orig_input:T, orig_output:T, grad:T) -> (output:T) | " MR_POOL_ATTRS "; T in REAL")
      .Doc("Gradient of MaxPoolGrad: takes `grad` at the cells that held the maxima.")
      .Shape(MaxPoolGradGradShape)
      .Gradient(MaxPoolGradGradGradient)
      .Example(
          "!" + input + ", !" + pooled + ", f32[1,4,5,2]~ | ksize=[1,2,2,1]; strides=[1,2,2,1]; padding=\"VALID\"");
  r.Add(
       "MaxPoolGradGradV2(orig_input:T, orig_output:T, grad:T, ksize:i32, strides:i32) -> (output:T) "
       "| " MR_POOL_V2_ATTRS "; T in REAL")
      .Doc("MaxPoolGradGrad with the window's sizes and strides as tensors.")
      .Shape(MaxPoolGradGradShape)
      .NoGradient("third derivatives of a pooling with sizes as tensors are not offered; use MaxPoolGradGrad")
      .Example("!" + input + ", !" + pooled + ", f32[1,4,5,2]~, i32[4]{1 2 2 1}, i32[4]{1 2 2 1} | padding=\"VALID\"");
  r.Add("MaxPoolGradWithArgmax(input:T, grad:T, argmax:Targmax) -> (output:T) | " MR_POOL_SIZES
        "; include_batch_in_index:bool=false; Targmax in IDX; T in REAL=f32")
      .Doc("Gradient of MaxPoolWithArgmax: adds each gradient at its recorded place.")
      .Shape(MaxPoolGradWithArgmaxShape)
      .NoGradient("the recorded places make no use of the window, so no second derivative is offered")
      .Example("f32[1,2,2,1]~, f32[1,1,1,1]~, i64[1,1,1,1]{2} | ksize=[1,2,2,1]; strides=[1,2,2,1]; padding=\"VALID\"");
  r.Add("MaxPoolGradGradWithArgmax(input:T, grad:T, argmax:Targmax) -> (output:T) | " MR_POOL_SIZES
        "; include_batch_in_index:bool=false; Targmax in IDX; T in REAL")
      .Doc("Gradient of MaxPoolGradWithArgmax with respect to its gradient: takes from grad at each recorded place.")
      .Shape(MaxPoolGradGradWithArgmaxShape)
      .NoGradient("the recorded places make no use of the window, so no further derivative is offered")
      .Example("f32[1,2,2,1]~, f32[1,2,2,1]~, i64[1,1,1,1]{2} | ksize=[1,2,2,1]; strides=[1,2,2,1]; padding=\"VALID\"");
}

void RegisterAvgPool(OpRegistry& r) {
  r.Add("AvgPool(value:T) -> (output:T) | " MR_POOL_ATTRS "; T in FLT")
      .Doc("The mean of each window; cells of the padding do not count.")
      .Shape(PoolShapeFn)
      .Gradient(AvgPoolGradient)
      .Example("f32[2,5,4,3]~ | ksize=[1,3,2,1]; strides=[1,2,1,1]; padding=\"SAME\"");
  r.Add("AvgPoolGrad(orig_input_shape:i32, grad:T) -> (output:T) | " MR_POOL_ATTRS "; T in FLT")
      .Doc("Gradient of AvgPool: spreads each gradient evenly over the cells of its window.")
      .Shape(AvgPoolGradShape)
      .Gradient(AvgPoolGradGradient)
      .Example("i32[4]{2 5 4 3}, f32[2,3,4,3]~ | ksize=[1,3,2,1]; strides=[1,2,1,1]; padding=\"SAME\"");
}

#define MR_POOL_3D_ATTRS                                                               \
  "ksize:list(int)>=5; strides:list(int)>=5; padding in {SAME,VALID}; data_format in " \
  "{NDHWC,NCDHW}=\"NDHWC\""

void RegisterPool3D(OpRegistry& r) {
  const std::string input = "f32[1,2,2,3,1]{1 9 3 7 5 4 2 8 6 0 -1 12}", pooled = "f32[1,1,1,2,1]{9 12}";
  const std::string sizes = " | ksize=[1,2,2,2,1]; strides=[1,1,1,1,1]; padding=\"VALID\"";
  r.Add("MaxPool3D(input:T) -> (output:T) | " MR_POOL_3D_ATTRS "; T in f16|bf16|f32")
      .Doc("The largest value in each window of planes, rows and columns.")
      .Shape(PoolShapeFn)
      .Gradient(MaxPool3DGradient)
      .Example(input + " | ksize=[1,2,1,2,1]; strides=[1,1,2,2,1]; padding=\"SAME\"");
  r.Add("MaxPool3DGrad(orig_input:TInput, orig_output:TInput, grad:T) -> (output:T) | " MR_POOL_3D_ATTRS
        "; T in f16|bf16|f32=f32; TInput in f16|bf16|f32=f32")
      .Doc("Gradient of MaxPool3D: each output's gradient goes to the first cell of its window that holds the maximum.")
      .Shape(MaxPoolGradShape)
      .Gradient(MaxPool3DGradGradient)
      .Example("!" + input + ", !" + pooled + ", f32[1,1,1,2,1]~" + sizes);
  r.Add("MaxPool3DGradGrad(orig_input:T, orig_output:T, grad:T) -> (output:T) | " MR_POOL_3D_ATTRS "; T in REAL")
      .Doc("Gradient of MaxPool3DGrad: takes `grad` at the cells that held the maxima.")
      .Shape(MaxPoolGradGradShape)
      .Gradient(MaxPool3DGradGradGradient)
      .Example("!" + input + ", !" + pooled + ", !f32[1,2,2,3,1]{1 2 3 4 5 6 7 8 9 10 11 12}" + sizes);
  r.Add("AvgPool3D(input:T) -> (output:T) | " MR_POOL_3D_ATTRS "; T in FLT")
      .Doc("The mean of each window of planes, rows and columns; cells of the padding do not count.")
      .Shape(PoolShapeFn)
      .Gradient(AvgPool3DGradient)
      .Example("f32[2,3,4,3,2]~ | ksize=[1,2,3,2,1]; strides=[1,1,2,1,1]; padding=\"SAME\"");
  r.Add("AvgPool3DGrad(orig_input_shape:i32, grad:T) -> (output:T) | " MR_POOL_3D_ATTRS "; T in FLT")
      .Doc("Gradient of AvgPool3D: spreads each gradient evenly over the cells of its window.")
      .Shape(AvgPoolGradShape)
      .Gradient(AvgPool3DGradGradient)
      .Example("i32[5]{2 3 4 3 2}, f32[2,3,2,3,2]~ | ksize=[1,2,3,2,1]; strides=[1,1,2,1,1]; padding=\"SAME\"");
}

}  // namespace

void RegisterPoolOps(OpRegistry& registry) {
  RegisterMaxPool(registry);
  RegisterMaxPoolGrads(registry);
  RegisterAvgPool(registry);
  RegisterPool3D(registry);
}

}  // namespace millrace
