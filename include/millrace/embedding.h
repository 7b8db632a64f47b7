// SPDX-License-Identifier: Apache-2.0
// Embeddings in one table or several, such as one on each parameter server, and losses over a sample of many classes.
#pragma once

#include "millrace/train.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// Which of several tables has a row: row i is in table i modulo their number; or each has the rows that follow those of
// the one before it, the first ones one more where they cannot all have as many.
enum class PartitionStrategy { kMod, kDiv };

// Tables [rows, width] that together hold `vocabulary` rows, as many in each, or one more in the first ones: for either
// strategy. They are called name where there is one, else name/part_0 and so on; table i goes to
// devices[i modulo their number], if there are any.
inline std::vector<Variable> AddEmbedding(Model& model, const std::string& name, int64_t vocabulary, int64_t width,
                                          int64_t shards = 1, const std::vector<std::string>& devices = {}) {
  std::vector<Variable> tables;
  if (shards < 1 || vocabulary < shards) {
    model.Note(Status(TF_INVALID_ARGUMENT, "embedding " + name + ": " + std::to_string(vocabulary) +
                                               " rows cannot be in " + std::to_string(shards) + " tables"));
    return tables;
  }
  for (int64_t i = 0; i < shards; ++i) {
    const int64_t rows = (vocabulary + shards - 1 - i) / shards;
    tables.push_back(model.Weights(shards == 1 ? name : name + "/part_" + std::to_string(i), {rows, width}));
    if (devices.empty() || !tables.back().ref) continue;
    const std::string& device = devices[static_cast<size_t>(i) % devices.size()];
    Api().SetRequestedDevice(model.scope().graph().get(), tables.back().ref.get().oper, device.c_str());
  }
  return tables;
}

namespace internal {

// Rows, along the last axis, that are longer than this are made so long.
inline Output ClipRows(Scope s, Output rows, float max_norm) {
  const Output squares = s.Op("Sum", {s.Op("Square", {rows}), Tensor({-1})}, {{"keep_dims", true}});
  const Output is_long = s.Op("Greater", {squares, max_norm * max_norm});
  // The root of what is not clipped must not be in the gradient: of 0 it has none.
  const Output length = s.Op("Sqrt", {s.Op("Select", {is_long, squares, s.Op("OnesLike", {squares})})});
  const Output factor = s.Op("Select", {is_long, s.Op("RealDiv", {max_norm, length}), s.Op("OnesLike", {squares})});
  return s.Op("Mul", {rows, factor});
}

}  // namespace internal

// The rows `ids` (integers of any shape): [ids..., width]. Each is looked up where its table lies; gradients are rows.
// `max_norm` above 0: rows of a greater L2 norm are scaled down to it.
inline Output EmbeddingLookup(const Scope& scope, const std::vector<Variable>& tables, Output ids,
                              PartitionStrategy strategy = PartitionStrategy::kMod, float max_norm = 0) {
  Scope s = scope.SubScope("embedding_lookup");
  if (tables.empty() || !ids) {
    s.Note(Status(TF_INVALID_ARGUMENT, "a look-up wants tables and ids"));
    return {};
  }
  const auto at = [&](const Variable& table, Output rows) {
    const Scope there = s.ColocateWith(Operation(table.ref.get().oper));
    const Output found = Scope(there).Op("GatherV2", {table.read, rows, int32_t{0}});
    return max_norm > 0 ? internal::ClipRows(there, found, max_norm) : found;
  };
  if (tables.size() == 1) return at(tables[0], ids);
  const auto count = static_cast<int>(tables.size());
  const Attrs to_int = {{"DstT", DType::kInt32}};
  const Output flat = s.Op("Reshape", {s.Op("Cast", {ids}, to_int), Tensor({-1})});
  Output table, row;
  if (strategy == PartitionStrategy::kMod) {
    table = s.Op("FloorMod", {flat, count});
    row = s.Op("FloorDiv", {flat, count});
  } else {
    int64_t total = 0;
    for (const Variable& t : tables) {
      Shape shape;
      if (!s.graph().ShapeOf(t.ref, &shape) || shape.empty() || shape[0] < 0) {
        s.Note(Status(TF_INVALID_ARGUMENT,
                      "a look-up in tables of rows that follow each other wants their sizes; that of '" + t.name() +
                          "' is not known"));
        return {};
      }
      total += shape[0];
    }
    const auto each = static_cast<int>(total / count), extras = static_cast<int>(total % count);
    if (each == 0) {
      s.Note(Status(
          TF_INVALID_ARGUMENT, std::to_string(total) + " rows cannot be in " + std::to_string(count) + " tables"));
      return {};
    }
    const Output behind = s.Op("Sub", {flat, extras});  // the first `extras` tables have a row more
    table = s.Op("Maximum", {s.Op("FloorDiv", {flat, each + 1}), s.Op("FloorDiv", {behind, each})});
    row = s.Op("Select",
               {s.Op("Less", {table, extras}), s.Op("FloorMod", {flat, each + 1}), s.Op("FloorMod", {behind, each})});
  }
  const Output places = s.Op("Range", {0, s.Op("Size", {flat}), 1});
  const Operation rows = s.Op("DynamicPartition", {row, table}, {{"num_partitions", count}});
  const Operation back = s.Op("DynamicPartition", {places, table}, {{"num_partitions", count}});
  Outputs found, where;
  for (int i = 0; rows && back && i < count; ++i) {
    found.push_back(at(tables[static_cast<size_t>(i)], rows[i]));
    where.push_back(back[i]);
  }
  const Output all = s.Op("DynamicStitch", {where, found});
  Shape shape;
  s.graph().ShapeOf(tables[0].ref, &shape);
  const Output width = s.Const(Tensor({static_cast<int32_t>(shape.empty() ? 1 : shape.back())}));
  return s.Op("Reshape", {all, s.Op("ConcatV2", {Outputs{s.Op("Shape", {ids}), width}, 0})});
}

// How the rows of several ids become one: their sum, that over their number, or over the root of it.
enum class Combiner { kSum, kMean, kSqrtN };

// Several ids a row, as a sparse tensor has them: indices [n, 2] of int64, the rows in rising order and none without an
// id, and values [n]. `weights` [n], where given, go with the values.
struct SparseIds {
  Output indices = {}, values = {}, weights = {};
};
// Of each row, the tables' rows that its ids name, as one: [rows, width]. The sum of what weights make of them; divided
// by the sum of the weights (kMean), or by the root of the sum of their squares (kSqrtN). Weights are 1 where there are
// none. `max_norm` as of EmbeddingLookup.
inline Output EmbeddingLookupSparse(
    const Scope& scope, const std::vector<Variable>& tables, const SparseIds& ids, Combiner combiner = Combiner::kMean,
    PartitionStrategy strategy = PartitionStrategy::kMod, float max_norm = 0) {
  Scope s = scope.SubScope("embedding_lookup_sparse");
  const Output rows = EmbeddingLookup(s, tables, ids.values, strategy, max_norm);
  if (!rows || !ids.indices) {
    s.Note(Status(TF_INVALID_ARGUMENT, "a sparse look-up wants tables, indices and values"));
    return {};
  }
  const Output row = s.Op("StridedSlice", {ids.indices, Tensor({0, 0}), Tensor({0, 1}), Tensor({1, 1})},
                          {{"begin_mask", 1}, {"end_mask", 1}, {"shrink_axis_mask", 2}});
  const Output segments = s.Op("Cast", {row}, {{"DstT", DType::kInt32}});
  if (!ids.weights) {
    const char* const op =
        combiner == Combiner::kSum ? "SparseSegmentSum"
        : combiner == Combiner::kMean
            ? "SparseSegmentMean"
            : "SparseSegmentSqrtN";
    return s.Op(op, {rows, s.Op("Range", {0, s.Op("Size", {ids.values}), 1}), segments});
  }
  const Output weights = s.Op("Cast", {ids.weights}, {{"DstT", rows.dtype()}});
  const Output spread = s.Op("Reshape", {weights, Tensor({-1, 1})});
  const Output total = s.Op("SegmentSum", {s.Op("Mul", {rows, spread}), segments});
  if (combiner == Combiner::kSum) return total;
  if (combiner == Combiner::kMean) return s.Op("RealDiv", {total, s.Op("SegmentSum", {spread, segments})});
  const Output squares = s.Op("SegmentSum", {s.Op("Square", {spread}), segments});
  return s.Op("RealDiv", {total, s.Op("Sqrt", {squares})});
}

// How NceLoss and SampledSoftmaxLoss draw classes.
struct SampledOptions {
  int num_sampled = 64;  // classes that are drawn in each step, without repetition
  // All there are; it must be given.
  int num_classes = 0;
  int num_true = 1;                     // labels of each example: labels are [batch, num_true]
  const char* sampler = "LogUniform";   // for classes by falling frequency; or "Uniform", "LearnedUnigram"
  bool remove_accidental_hits = false;  // whether a drawn class that is the label counts as none
  int64_t seed = 0;                     // 0: other classes in each process
};

namespace internal {

// The logits of the labels (in the first columns) and of the drawn classes, and what they should be.
struct SampledLogits {
  Output logits, labels;
};
inline SampledLogits SampleLogits(Scope s, Output weights, Output biases, Output labels, Output inputs,
                                  const SampledOptions& o) {
  const Output own = s.Op("Reshape", {s.Op("Cast", {labels}, {{"DstT", DType::kInt64}}), Tensor({-1, o.num_true})});
  const Operation drawn = s.Op(
      (std::string(o.sampler) + "CandidateSampler").c_str(), {own},
      {{"num_true", o.num_true},
       {"num_sampled", o.num_sampled},
       {"unique", true},
       {"range_max", o.num_classes},
       {"seed", o.seed}});
  if (!drawn) return {};
  const Output flat = s.Op("Reshape", {own, Tensor({-1})}), classes = s.Op("StopGradient", {drawn[0]});
  // One look-up for both, so that its gradient is one set of rows.
  const Output ids = s.Op("ConcatV2", {Outputs{flat, classes}, 0});
  const Output rows = s.Op("GatherV2", {weights, ids, int32_t{0}}),
               offsets = s.Op("GatherV2", {biases, ids, int32_t{0}});
  const Output split = s.Op("Pack", {Outputs{s.Op("Size", {flat}), s.Const(Tensor(o.num_sampled))}});
  const Operation w = s.Op("SplitV", {rows, split, 0}, {{"num_split", 2}});
  const Operation b = s.Op("SplitV", {offsets, split, 0}, {{"num_split", 2}});
  if (!w || !b) return {};
  const auto less_log = [&](Output logits, Output expected) {
    return Output(s.Op("Sub", {logits, s.Op("Log", {s.Op("StopGradient", {expected})})}));
  };
  const Output width = s.Op("Slice", {s.Op("Shape", {weights}), Tensor({1}), Tensor({1})});
  const Output by_example =
      s.Op("Reshape", {w[0], s.Op("ConcatV2", {Outputs{s.Const(Tensor({-1, o.num_true})), width}, 0})});
  const Output products = s.Op("Mul", {s.Op("ExpandDims", {inputs, 1}), by_example});  // [batch, num_true, width]
  Output is = s.Op("Sum", {products, Tensor({2})});
  is = less_log(s.Op("Add", {is, s.Op("Reshape", {b[0], Tensor({-1, o.num_true})})}), drawn[1]);
  Output others = s.Op("BiasAdd", {s.Op("MatMul", {inputs, w[1]}, {{"transpose_b", true}}), b[1]});
  others = less_log(others, drawn[2]);
  if (o.remove_accidental_hits) {
    const Operation hits = s.Op("ComputeAccidentalHits", {own, classes}, {{"num_true", o.num_true}});
    if (!hits) return {};
    const Output at =
        s.Op("Pack", {Outputs{hits[0], s.Op("Cast", {hits[1]}, {{"DstT", DType::kInt32}})}}, {{"axis", 1}});
    others = s.Op("Add", {others, s.Op("ScatterNd", {at, hits[2], s.Op("Shape", {others})})});
  }
  const Output logits = s.Op("ConcatV2", {Outputs{is, others}, 1});
  const Output wanted = s.Op(
      "ConcatV2",
      {Outputs{s.Op("Div", {s.Op("OnesLike", {is}), static_cast<float>(o.num_true)}), s.Op("ZerosLike", {others})}, 1});
  return {logits, wanted};
}

}  // namespace internal

// The softmax cross entropy of each example over its label and a sample of the other classes, which counts for all of
// them; for training. weights [classes, width], biases [classes], labels integers [batch, num_true], inputs [batch,
// width]; [batch]. A drawn class that is the label counts as none. Several labels count as much together as one.
inline Output SampledSoftmaxLoss(const Scope& scope, Output weights, Output biases, Output labels, Output inputs,
                                 SampledOptions options) {
  options.remove_accidental_hits = true;
  Scope s = scope.SubScope("sampled_softmax_loss");
  const internal::SampledLogits l = internal::SampleLogits(s, weights, biases, labels, inputs, options);
  return s.Op("SoftmaxCrossEntropyWithLogits", {l.logits, s.Op("StopGradient", {l.labels})});
}
// Noise-contrastive estimation: whether the labels are told from the drawn classes, one by one; [batch]. Where several
// are wanted, each is to be one with a chance of 1 / num_true.
inline Output NceLoss(const Scope& scope, Output weights, Output biases, Output labels, Output inputs,
                      const SampledOptions& options) {
  Scope s = scope.SubScope("nce_loss");
  const internal::SampledLogits l = internal::SampleLogits(s, weights, biases, labels, inputs, options);
  // max(x, 0) - x z + log(1 + exp(-|x|))
  const Output product = s.Op("Mul", {l.logits, l.labels});
  const Output tail = s.Op("Log1p", {s.Op("Exp", {s.Op("Neg", {s.Op("Abs", {l.logits})})})});
  return s.Op("Sum", {s.Op("Add", {s.Op("Sub", {s.Op("Relu", {l.logits}), product}), tail}), Tensor({1})});
}

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
