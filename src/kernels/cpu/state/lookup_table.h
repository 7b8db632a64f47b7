// SPDX-License-Identifier: Apache-2.0
// Lookup tables: from keys to values. A table of scalar keys keeps its pairs in the order in which the keys came, so
// that what it exports does not depend on chance. Every table is thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/env.h"
#include "kernels/cpu/engine/resource_handle.h"

namespace millrace {

struct TableTypes {
  DType key = DType::kInvalid;
  DType value = DType::kInvalid;
  Shape key_shape;
  Shape value_shape;
};

class LookupTable : public Resource {
 public:
  explicit LookupTable(TableTypes types) : types_(std::move(types)) {}
  const TableTypes& types() const { return types_; }

  // What Find may use beyond its arguments.
  using ParallelFor = absl::FunctionRef<void(int64_t n, double cost, absl::FunctionRef<void(int64_t, int64_t)>)>;

  virtual int64_t size() const = 0;
  // Keys and values have the table's dtypes and shapes [..., key_shape] and [..., value_shape]. `defaults` is one
  // value, or as many as there are keys.
  virtual Status Find(const Tensor& keys, const Tensor& defaults, ParallelFor parallel, Tensor* values) const = 0;
  virtual Status Insert(const Tensor& keys, const Tensor& values) = 0;
  virtual Status Remove(const Tensor& keys) = 0;
  // These pairs instead of those it has.
  virtual Status Import(const Tensor& keys, const Tensor& values) = 0;
  virtual Status Export(Tensor* keys, Tensor* values) const = 0;
  // Gives a table that does not change its pairs, once: later, only as many pairs as it has are accepted, and the first
  // ones stay.
  virtual Status Initialize(const Tensor& keys, const Tensor& values) = 0;

  std::string DebugString() const override;

 private:
  const TableTypes types_;
};

// The pairs of a table with scalar keys: int32, int64 or string. Not thread-safe; reading is.
class TablePairs {
 public:
  static StatusOr<std::unique_ptr<TablePairs>> Make(const TableTypes& types);
  virtual ~TablePairs() = default;

  virtual int64_t size() const = 0;
  enum class OtherValue { kReplace, kRefuse };
  // The last value of a key counts, or FailedPrecondition where it is not the first.
  virtual Status Put(const Tensor& keys, const Tensor& values, OtherValue mode) = 0;
  // Values of keys [begin, end).
  virtual void Find(const Tensor& keys, const Tensor& defaults, int64_t begin, int64_t end, Tensor* values) const = 0;
  virtual void Remove(const Tensor& keys) = 0;
  virtual Status Export(Tensor* keys, Tensor* values) const = 0;
};

RefPtr<LookupTable> NewHashTable(TableTypes types);                   // written once, read without a lock
StatusOr<RefPtr<LookupTable>> NewMutableHashTable(TableTypes types);  // any value shape
struct DenseTableOptions {
  Tensor empty_key;
  Tensor deleted_key;  // uninitialised: nothing can be removed
  int64_t buckets = 0;
  float max_load = 0;
};
// Keys of any shape in one array of buckets, with two keys that mean "none" and "none any more".
StatusOr<RefPtr<LookupTable>> NewDenseHashTable(TableTypes types, DenseTableOptions options);

// A file of lines to a table's pairs.
struct TextFileColumns {
  static constexpr int64_t kLineNumber = -1;
  static constexpr int64_t kWholeLine = -2;
  int64_t key = 0;
  int64_t value = 0;
  int64_t vocab_size = -1;  // lines to read; -1: all
  char delimiter = '\t';
};
// InvalidArgument names file and line.
Status ReadTableFile(Env& env, const std::string& path, const TextFileColumns& columns, const TableTypes& types,
                     Tensor* keys, Tensor* values);

}  // namespace millrace
