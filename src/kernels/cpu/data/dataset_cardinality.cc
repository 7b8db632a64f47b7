// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/data/dataset_cardinality.h"

#include <algorithm>
#include <limits>

#include "absl/strings/strip.h"
#include "base/hash_map.h"

namespace millrace {
namespace {

using Origin = DatasetOrigin;
using Rule = int64_t (*)(const Origin&);

int64_t InputCount(const Origin& o, size_t i = 0) {
  if (i >= o.inputs.size()) return kUnknownCardinality;
  const StatusOr<DatasetRef> input = DatasetOf(o.inputs[i], "an input");
  return input.ok() ? CardinalityOf(**input) : kUnknownCardinality;
}

// A number that the op took besides, `back` inputs before the end.
int64_t Number(const Origin& o, size_t back = 0) {
  if (back >= o.inputs.size()) return 0;
  const StatusOr<int64_t> n = o.inputs[o.inputs.size() - 1 - back].IntScalar();
  return n.ok() ? *n : 0;
}

int64_t Same(const Origin& o) { return InputCount(o); }

// Of functions that may say that it is over, unless their attribute denies it.
int64_t SameIfPreserved(const Origin& o) {
  const StatusOr<bool> preserved = GetAttr<bool>(o.op->attrs, "preserve_cardinality");
  return preserved.ok() && *preserved ? InputCount(o) : kUnknownCardinality;
}

int64_t One(const Origin&) { return 1; }
int64_t Endless(const Origin&) { return kInfiniteCardinality; }

int64_t Rows(const Origin& o) {
  return o.inputs.empty() || o.inputs[0].rank() == 0 ? kUnknownCardinality : o.inputs[0].dim(0);
}

int64_t OfRange(const Origin& o) {
  const int64_t start = Number(o, 2), stop = Number(o, 1), step = Number(o);
  int64_t distance = 0;
  if (step == 0 || __builtin_sub_overflow(stop, start, &distance)) return kUnknownCardinality;
  if ((distance > 0) != (step > 0) || distance == 0) return 0;
  return distance / step + (distance % step != 0);
}

int64_t OfRepeat(const Origin& o) {
  const int64_t n = InputCount(o), times = Number(o);
  if (times == 0 || n == 0) return 0;
  if (n < 0) return n;
  int64_t all = 0;
  return times < 0 ? kInfiniteCardinality : __builtin_mul_overflow(n, times, &all) ? kUnknownCardinality : all;
}

int64_t OfTake(const Origin& o) {
  const int64_t n = InputCount(o), most = Number(o);
  if (most < 0 || n == kUnknownCardinality) return n;
  return n == kInfiniteCardinality ? most : std::min(n, most);
}

int64_t OfSkip(const Origin& o) {
  const int64_t n = InputCount(o), first = Number(o);
  return n < 0 ? n : first < 0 ? 0 : std::max<int64_t>(0, n - first);
}

int64_t OfShard(const Origin& o) {
  const int64_t n = InputCount(o), shards = Number(o, 1), index = Number(o);
  return n < 0 || shards <= 0 ? n : n / shards + (index < n % shards);
}

int64_t Batches(int64_t n, int64_t size, bool only_whole) {
  return n < 0 || size <= 0 ? n : n / size + (!only_whole && n % size != 0);
}

bool LastFlag(const Origin& o) {
  const Tensor& t = o.inputs.back();
  return t.dtype() == DType::kBool && t.num_elements() == 1 && *t.data<bool>();
}

int64_t OfBatch(const Origin& o) {
  const bool has_flag = o.op->name != "BatchDataset";
  return Batches(InputCount(o), Number(o, has_flag ? 1 : 0), has_flag && LastFlag(o));
}

int64_t OfParallelBatch(const Origin& o) { return Batches(InputCount(o), Number(o, 2), LastFlag(o)); }
int64_t AsAsserted(const Origin& o) { return Number(o); }

int64_t OfMapAndBatch(const Origin& o) { return Batches(SameIfPreserved(o), Number(o, 2), LastFlag(o)); }

int64_t OfPaddedBatch(const Origin& o) {
  if (o.inputs.size() < 2) return kUnknownCardinality;
  const StatusOr<int64_t> size = o.inputs[1].IntScalar();
  if (!size.ok()) return kUnknownCardinality;
  return Batches(InputCount(o), *size, o.op->name == "PaddedBatchDatasetV2" && LastFlag(o));
}

int64_t OfConcatenate(const Origin& o) {
  const int64_t a = InputCount(o), b = InputCount(o, 1);
  if (a == kInfiniteCardinality || b == kInfiniteCardinality) return kInfiniteCardinality;
  int64_t sum = 0;
  return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? kUnknownCardinality : sum;
}

int64_t OfZip(const Origin& o) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < o.inputs.size(); ++i) {
    const int64_t n = InputCount(o, i);
    if (n == kUnknownCardinality) return n;
    if (n >= 0) least = std::min(least, n);
  }
  return least == std::numeric_limits<int64_t>::max() ? kInfiniteCardinality : least;
}

const HashMap<absl::string_view, Rule>& Rules() {
  static const auto* rules = new HashMap<absl::string_view, Rule>{
      {"TensorDataset", One},
      {"TensorSliceDataset", Rows},
      {"RandomDataset", Endless},
      {"RangeDataset", OfRange},
      {"RepeatDataset", OfRepeat},
      {"TakeDataset", OfTake},
      {"SkipDataset", OfSkip},
      {"ShardDataset", OfShard},
      {"BatchDataset", OfBatch},
      {"BatchDatasetV2", OfBatch},
      {"ParallelBatchDataset", OfParallelBatch},
      {"PaddedBatchDataset", OfPaddedBatch},
      {"PaddedBatchDatasetV2", OfPaddedBatch},
      {"MapAndBatchDataset", OfMapAndBatch},
      {"ConcatenateDataset", OfConcatenate},
      {"ZipDataset", OfZip},
      {"MapDataset", SameIfPreserved},
      {"ParallelMapDataset", SameIfPreserved},
      {"ParallelMapDatasetV2", SameIfPreserved},
      {"ScanDataset", SameIfPreserved},
      {"AssertCardinalityDataset", AsAsserted},
      {"AssertNextDataset", Same},
      {"AutoShardDataset", Same},
      {"CacheDataset", Same},
      {"CacheDatasetV2", Same},
      {"ModelDataset", Same},
      {"OptimizeDataset", Same},
      {"PrefetchDataset", Same},
      {"ShuffleDataset", Same},
      {"ShuffleDatasetV2", Same},
      {"SleepDataset", Same},
  };
  return *rules;
}

}  // namespace

int64_t CardinalityOf(const Dataset& dataset) {
  const DatasetOrigin* origin = dataset.origin();
  if (origin == nullptr) return kUnknownCardinality;
  absl::string_view name = origin->op->name;
  absl::ConsumePrefix(&name, "Experimental");
  const auto rule = Rules().find(name);
  return rule == Rules().end() ? kUnknownCardinality : rule->second(*origin);
}

void RegisterDatasetCardinalityKernels(KernelRegistry& r) {
  for (const char* op : {"DatasetCardinality", "ExperimentalDatasetCardinality"}) {
    r.AddFn({.op = op}, [](KernelContext& ctx) -> Status {
      MR_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(ctx.input(0), "input_dataset"));
      ctx.set_output(0, Tensor::Scalar<int64_t>(CardinalityOf(*dataset)));
      return absl::OkStatus();
    });
  }
}

}  // namespace millrace
