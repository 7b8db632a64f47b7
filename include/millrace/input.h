// SPDX-License-Identifier: Apache-2.0
// Batches that threads make while steps run, and record files.
//
//   millrace::Batched batch = millrace::ShuffleBatch(scope, dataset.MakeIterator().next, {.size = 64});
//   batch.runner.Start(session, coordinator);
//   ... steps that read batch.tensors ...
#pragma once

#include <utility>

#include "millrace/c_api_files.h"
#include "millrace/function.h"
#include "millrace/queue_runner.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// How Batch and ShuffleBatch make batches.
struct BatchOptions {
  // Elements of a batch.
  int size = 32;
  // Threads that fetch elements.
  int threads = 1;
  int capacity = 0;                  // elements that wait; 0: those of 8 batches
  int min_after_dequeue = 0;         // ShuffleBatch: as many stay to choose from; 0: half of the capacity
  int64_t seed = 0;                  // 0: another order in each process
  bool smaller_final_batch = false;  // of the last elements; otherwise those that fill no batch are left out
};
// Batches, and who makes them.
struct Batched {
  // The next batch in each step that needs it: [size, ...].
  Outputs tensors;
  // To be started before the first step.
  QueueRunner runner;
};

namespace internal {

inline Batched BatchBy(const char* queue_type, const Scope& scope, const Outputs& element, const BatchOptions& o,
                       Attrs attrs) {
  Scope s = scope.SubScope("batch");
  std::vector<TensorSpec> specs;
  for (const Output& t : element) {
    specs.push_back(t ? SpecOf(s.graph(), t) : TensorSpec());
    const Shape& shape = specs.back().shape ? *specs.back().shape : Shape{-1};
    for (const int64_t d : shape) {
      if (d >= 0) continue;
      s.Note(Status(TF_INVALID_ARGUMENT, "the shape of " + t.name() + " must be known to be batched"));
      break;
    }
  }
  const std::vector<DType> types = TypesOf(specs);
  attrs.push_back({"component_types", types});
  attrs.push_back({"shapes", ShapesOf(specs)});
  attrs.push_back({"capacity", o.capacity > 0 ? o.capacity : 8 * o.size});
  const Operation queue = s.Op(queue_type, {}, attrs);
  const Operation enqueue = s.Op("QueueEnqueue", {queue, element});
  const char* const take = o.smaller_final_batch ? "QueueDequeueUpTo" : "QueueDequeueMany";
  const Operation batch = s.Op(take, {queue, o.size}, {{"component_types", types}});
  Outputs tensors;
  for (int i = 0; batch && i < batch.num_outputs(); ++i) tensors.push_back(batch[i]);
  return {tensors, QueueRunner(s, queue, std::vector<Operation>(static_cast<size_t>(o.threads), enqueue))};
}

}  // namespace internal

// `size` of the elements, which are made again and again, stacked; in order with one thread. Their shapes must be
// known. TF_OUT_OF_RANGE once the elements have ended.
inline Batched Batch(const Scope& scope, const Outputs& element, const BatchOptions& options = {}) {
  return internal::BatchBy("FIFOQueue", scope, element, options, {});
}
// The same in random order.
inline Batched ShuffleBatch(const Scope& scope, const Outputs& element, BatchOptions options = {}) {
  if (options.capacity <= 0) options.capacity = 8 * options.size;
  if (options.min_after_dequeue <= 0) options.min_after_dequeue = options.capacity / 2;
  return internal::BatchBy("RandomShuffleQueue", scope, element, options,
                           {{"min_after_dequeue", options.min_after_dequeue}, {"seed", options.seed}});
}

// A TFRecord file, which Dataset::TFRecord and TensorFlow read. `compression` is "", "ZLIB" or "GZIP".
class RecordWriter {
 public:
  // Makes the file, or begins it anew.
  explicit RecordWriter(const std::string& path, const std::string& compression = "") {
    internal::CallStatus status;
    writer_ = MR_RecordWriterOpen(path.c_str(), compression.c_str(), nullptr, status);
    status_ = status.Get();
#if MILLRACE_EXCEPTIONS
    if (!status_.ok()) throw Error(status_);
#endif
  }
  ~RecordWriter() { TryClose(); }
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  // One record, of any bytes.
  Done Write(const std::string& record) {
    if (status_.ok()) {
      internal::CallStatus status;
      MR_RecordWriterWrite(writer_, record.data(), record.size(), status);
      status_ = status.Get();
    }
    return internal::Finish(status_);
  }
  // What was written is in the file only after this. Tells the first error of the file.
  Done Close() {
    TryClose();
    return internal::Finish(status_);
  }

 private:
  void TryClose() {
    internal::CallStatus status;
    MR_RecordWriterClose(std::exchange(writer_, nullptr), status);
    if (status_.ok()) status_ = status.Get();
  }

  MR_RecordWriter* writer_ = nullptr;
  Status status_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
