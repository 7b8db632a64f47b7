// SPDX-License-Identifier: Apache-2.0
// Composites: attention over a memory (an encoder's outputs), for decoders. The keys are the memory through a dense
// layer, made once outside the decoder's loop.
#include <limits>

#include "ops/rnn_composites.h"

namespace millrace {
namespace {

using Outputs = StatusOr<std::vector<Output>>;

// Weights [batch, steps] from scores, zero beyond the lengths, and the mean of the memory [batch, steps, depth] by
// them.
Outputs Read(const GraphBuilder& b, const CompositeCall& c, Output scores) {
  const Output memory = c.x("memory");
  MR_ASSIGN_OR_RETURN(const Output lengths, LengthsOf(b, c, "memory_sequence_length"));
  if (lengths) {
    const Output steps = b.Op("GatherV2", {b.Shape(memory, DType::kInt64), b.Scalar<int64_t>(1), b.Scalar<int32_t>(0)});
    const Output times = b.Op("Range", {b.Scalar<int64_t>(0), steps, b.Scalar<int64_t>(1)});
    const Output inside = b.Op("Less", {times, b.Op("ExpandDims", {lengths, b.Scalar<int32_t>(1)})});
    const Output never = b.ScalarOf(BaseType(scores.dtype()), -std::numeric_limits<double>::infinity());
    scores = b.Op("SelectV2", {inside, scores, never});
  }
  const Output weights = b.Op("Softmax", {scores});
  const Output context = b.Op("BatchMatMulV2", {b.Op("ExpandDims", {weights, b.Scalar<int32_t>(1)}), memory});
  return std::vector<Output>{b.Op("Squeeze", {context}, {{"squeeze_dims", std::vector<int64_t>{1}}}), weights};
}

Outputs Bahdanau(const GraphBuilder& b, const CompositeCall& c) {
  const Output query = b.Op("ExpandDims", {b.MatMul(c.x("query"), c.x("query_kernel")), b.Scalar<int32_t>(1)});
  const Output features = b.Op("Tanh", {b.Add(c.x("keys"), query)});
  return Read(b, c, b.Sum(b.Mul(c.x("attention_v"), features), b.Vector<int32_t>({2})));
}

Outputs Luong(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const float scale, c.Attr<float>("scale"));
  const Output query = b.Op("ExpandDims", {c.x("query"), b.Scalar<int32_t>(1)});
  const Output products = b.Op("BatchMatMulV2", {query, c.x("keys")}, {{"adj_y", true}});
  Output scores = b.Op("Squeeze", {products}, {{"squeeze_dims", std::vector<int64_t>{1}}});
  if (scale != 1) scores = b.Mul(scores, b.ScalarOf(BaseType(scores.dtype()), static_cast<double>(scale)));
  return Read(b, c, scores);
}

}  // namespace

void RegisterAttention(CompositeRegistry& r) {
  r.Add(
       "BahdanauAttention(query:T, keys:T, memory:T, query_kernel:T, attention_v:T, memory_sequence_length:L*Tlen) -> "
       "(context:T, alignments:T) | T in FLT; Tlen in IDX=i32; L:int>=0")
      .Doc(
          "Additive attention (Bahdanau et al. 2014): scores v . tanh(keys + query query_kernel) over the memory "
          "[batch, "
          "steps, depth] and keys [batch, steps, units]; the context is the memory's mean by their softmax, within the "
          "lengths if they are given (a list of none or one vector, of 1 or more each).")
      .Expand(Bahdanau)
      .Example("f32[2,3]~, f32[2,4,5]~, f32[2,4,6]~, f32[3,5]~, f32[5]~, i32[2]{2 4} | L=1");
  r.Add(
       "LuongAttention(query:T, keys:T, memory:T, memory_sequence_length:L*Tlen) -> (context:T, alignments:T) | T in "
       "FLT; "
       "Tlen in IDX=i32; L:int>=0; scale:float=1.0")
      .Doc("Multiplicative attention (Luong et al. 2015): scores scale * (keys . query); see BahdanauAttention.")
      .Expand(Luong)
      .Example("f32[2,5]~, f32[2,4,5]~, f32[2,4,6]~, i32[2]{2 4} | L=1");
}

}  // namespace millrace
