// SPDX-License-Identifier: Apache-2.0
// Composites: attention over a memory (an encoder's outputs), for decoders. The keys are the memory through a dense
// layer, made once outside the decoder's loop.
#include <limits>

#include "ops/rnn/rnn_attention.h"
#include "ops/rnn/rnn_composites.h"

namespace millrace {

Output AdditiveScores(const GraphBuilder& b, Output query, Output keys, Output v, Output bias) {
  Output sum = b.Add(keys, b.Op("ExpandDims", {query, b.Scalar<int32_t>(1)}));
  if (bias) sum = b.Add(sum, bias);
  return b.Sum(b.Mul(v, b.Op("Tanh", {sum})), b.Vector<int32_t>({2}));
}

Output MultiplicativeScores(const GraphBuilder& b, Output query, Output keys) {
  const Output row = b.Op("ExpandDims", {query, b.Scalar<int32_t>(1)});
  const Output products = b.Op("BatchMatMulV2", {row, keys}, {{"adj_y", true}});
  return b.Op("Squeeze", {products}, {{"squeeze_dims", std::vector<int64_t>{1}}});
}

Output ReadMemory(const GraphBuilder& b, Output weights, Output memory) {
  const Output context = b.Op("BatchMatMulV2", {b.Op("ExpandDims", {weights, b.Scalar<int32_t>(1)}), memory});
  return b.Op("Squeeze", {context}, {{"squeeze_dims", std::vector<int64_t>{1}}});
}

Output WithinLengths(const GraphBuilder& b, Output memory, Output lengths) {
  const Output steps = b.Op("GatherV2", {b.Shape(memory, DType::kInt64), b.Scalar<int64_t>(1), b.Scalar<int32_t>(0)});
  const Output times = b.Op("Range", {b.Scalar<int64_t>(0), steps, b.Scalar<int64_t>(1)});
  return b.Op("Less", {times, b.Op("ExpandDims", {lengths, b.Scalar<int32_t>(1)})});
}

namespace {

using Outputs = StatusOr<std::vector<Output>>;

// Weights from scores, zero beyond the lengths, and the mean of the memory by them.
Outputs Read(const GraphBuilder& b, const CompositeCall& c, Output scores) {
  const Output memory = c.x("memory");
  MR_ASSIGN_OR_RETURN(const Output lengths, LengthsOf(b, c, "memory_sequence_length"));
  if (lengths) {
    const Output never = b.ScalarOf(BaseType(scores.dtype()), -std::numeric_limits<double>::infinity());
    scores = b.Op("SelectV2", {WithinLengths(b, memory, lengths), scores, never});
  }
  const Output weights = b.Op("Softmax", {scores});
  return std::vector<Output>{ReadMemory(b, weights, memory), weights};
}

Outputs Bahdanau(const GraphBuilder& b, const CompositeCall& c) {
  const Output query = b.MatMul(c.x("query"), c.x("query_kernel"));
  return Read(b, c, AdditiveScores(b, query, c.x("keys"), c.x("attention_v"), Output()));
}

Outputs Luong(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const float scale, c.Attr<float>("scale"));
  Output scores = MultiplicativeScores(b, c.x("query"), c.x("keys"));
  if (scale != 1) scores = b.Mul(scores, b.ScalarOf(BaseType(scores.dtype()), static_cast<double>(scale)));
  return Read(b, c, scores);
}

// A finite number stands for "never", so that an example without a memory reads zeros and not NaN.
Outputs Memory(const GraphBuilder& b, const CompositeCall& c) {
  Output memory = c.x("memory");
  const Output kernel = c.x("kernel");
  const PartialShape shape = memory.shape();
  if (shape.has_rank() && shape.rank() != 3) {
    return InvalidArgument("AttentionMemory: memory must be [batch, steps, depth], got ", shape.ToString());
  }
  const DType t = BaseType(memory.dtype());
  MR_ASSIGN_OR_RETURN(const Output lengths, LengthsOf(b, c, "memory_sequence_length"));
  const Output zero = b.ScalarOf(t, 0);
  const Output begin = b.Vector<int32_t>({0}), end = b.Vector<int32_t>({2}), one = b.Vector<int32_t>({1});
  const Output rows = b.Op("StridedSlice", {b.Shape(memory), begin, end, one});
  Output mask;
  if (lengths) {
    const Output inside = WithinLengths(b, memory, lengths);
    mask = b.Op("SelectV2", {inside, zero, b.ScalarOf(t, t == DType::kHalf ? -3e4 : -1e30)});
    memory = b.Op("SelectV2", {b.Op("ExpandDims", {inside, b.Scalar<int32_t>(2)}), memory, zero});
  } else {
    mask = b.Op("Fill", {rows, zero});
  }
  const Output depth = b.Op("StridedSlice", {b.Shape(kernel), begin, one, one});
  const Output units = b.Op("StridedSlice", {b.Shape(kernel), one, end, one});
  const Output axis = b.Scalar<int32_t>(0);
  const Output flat = b.Reshape(memory, b.Op("ConcatV2", {std::vector<Output>{b.Vector<int32_t>({-1}), depth}, axis}));
  const Output keys = b.Reshape(b.MatMul(flat, kernel), b.Op("ConcatV2", {std::vector<Output>{rows, units}, axis}));
  MR_RETURN_IF_ERROR(b.status());
  MR_RETURN_IF_ERROR(
      b.graph().RefineShape(keys, PartialShape::Of({shape.dim(0), shape.dim(1), kernel.shape().dim(1)})));
  return std::vector<Output>{memory, keys, mask};
}

}  // namespace

void RegisterAttention(CompositeRegistry& r) {
  r.Add(
       "BahdanauAttention(query:T, keys:T, memory:T, query_kernel:T, attention_v:T, memory_sequence_length:L*Tlen) -> "
       "(context:T, alignments:T) | T in FLT; Tlen in IDX=i32; L:int>=0")
      .Doc(
          "Additive attention (Bahdanau et al. 2014): scores v . tanh(keys + query query_kernel) over the memory "
          "[batch, steps, depth] and keys [batch, steps, units]; the context is the memory's mean by their softmax, "
          "within the lengths if they are given (a list of none or one vector, of 1 or more each).")
      .Expand(Bahdanau)
      .Example("f32[2,3]~, f32[2,4,5]~, f32[2,4,6]~, f32[3,5]~, f32[5]~, i32[2]{2 4} | L=1");
  r.Add(
       "LuongAttention(query:T, keys:T, memory:T, memory_sequence_length:L*Tlen) -> (context:T, alignments:T) | T in "
       "FLT; Tlen in IDX=i32; L:int>=0; scale:float=1.0")
      .Doc("Multiplicative attention (Luong et al. 2015): scores scale * (keys . query); see BahdanauAttention.")
      .Expand(Luong)
      .Example("f32[2,5]~, f32[2,4,5]~, f32[2,4,6]~, i32[2]{2 4} | L=1");
  r.Add(
       "AttentionMemory(memory:T, kernel:T, memory_sequence_length:L*Tlen) -> (values:T, keys:T, mask:T) | T in FLT; "
       "Tlen in IDX=i32; L:int>=0")
      .Doc(
          "What the cell AttentionWrapper takes in place of three parameters, made once before its loop: the memory "
          "[batch, steps, depth] with zeros beyond the lengths (a list of none or one vector), its keys (the values by "
          "the kernel), and what is added to scores to leave steps beyond the lengths out.")
      .Expand(Memory)
      .Example("f32[2,4,3]~, f32[3,5]~, i32[2]{2 4} | L=1");
}

}  // namespace millrace
