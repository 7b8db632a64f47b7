// SPDX-License-Identifier: Apache-2.0
// The two tables of scalar keys: one that is written once, and one that changes.
#include "kernels/cpu/state/lookup_table.h"

namespace millrace {
namespace {

void FindIn(const TablePairs& pairs, const Tensor& keys, const Tensor& defaults, LookupTable::ParallelFor parallel,
            Tensor* values) {
  constexpr double kNanosPerKey = 40;
  parallel(keys.num_elements(), kNanosPerKey,
           [&](int64_t begin, int64_t end) { pairs.Find(keys, defaults, begin, end, values); });
}

// Pairs are made aside and shown when they are complete: who reads them needs no lock.
class HashTable final : public LookupTable {
 public:
  using LookupTable::LookupTable;

  int64_t size() const override {
    const TablePairs* pairs = shown_.load(std::memory_order_acquire);
    return pairs ? pairs->size() : 0;
  }
  Status Find(const Tensor& keys, const Tensor& defaults, ParallelFor parallel, Tensor* values) const override {
    const TablePairs* pairs = shown_.load(std::memory_order_acquire);
    if (!pairs) return NotInitialized();
    FindIn(*pairs, keys, defaults, parallel, values);
    return absl::OkStatus();
  }
  Status Insert(const Tensor&, const Tensor&) override {
    return Unimplemented("Insert not supported by HashTable implementations: it is written once");
  }
  Status Remove(const Tensor&) override {
    return Unimplemented("Remove not supported by HashTable implementations: it is written once");
  }
  Status Import(const Tensor& keys, const Tensor& values) override { return Initialize(keys, values); }
  Status Export(Tensor* keys, Tensor* values) const override {
    const TablePairs* pairs = shown_.load(std::memory_order_acquire);
    return pairs ? pairs->Export(keys, values) : NotInitialized();
  }
  Status Initialize(const Tensor& keys, const Tensor& values) override {
    absl::MutexLock lock(&mu_);
    if (pairs_) {
      if (pairs_->size() == keys.num_elements()) return absl::OkStatus();
      return FailedPrecondition("Table was already initialized with different data: it has ", pairs_->size(),
                                " pairs, got ", keys.num_elements());
    }
    MR_ASSIGN_OR_RETURN(std::unique_ptr<TablePairs> pairs, TablePairs::Make(types()));
    MR_RETURN_IF_ERROR(pairs->Put(keys, values, TablePairs::OtherValue::kRefuse));
    pairs_ = std::move(pairs);
    shown_.store(pairs_.get(), std::memory_order_release);
    return absl::OkStatus();
  }

 private:
  static Status NotInitialized() { return FailedPrecondition("Table not initialized."); }

  absl::Mutex mu_;
  std::unique_ptr<const TablePairs> pairs_ ABSL_GUARDED_BY(mu_);
  std::atomic<const TablePairs*> shown_{nullptr};
};

class MutableHashTable final : public LookupTable {
 public:
  MutableHashTable(TableTypes types, std::unique_ptr<TablePairs> pairs)
      : LookupTable(std::move(types)), pairs_(std::move(pairs)) {}

  int64_t size() const override {
    absl::ReaderMutexLock lock(&mu_);
    return pairs_->size();
  }
  Status Find(const Tensor& keys, const Tensor& defaults, ParallelFor parallel, Tensor* values) const override {
    absl::ReaderMutexLock lock(&mu_);
    FindIn(*pairs_, keys, defaults, parallel, values);
    return absl::OkStatus();
  }
  Status Insert(const Tensor& keys, const Tensor& values) override {
    absl::MutexLock lock(&mu_);
    return pairs_->Put(keys, values, TablePairs::OtherValue::kReplace);
  }
  Status Remove(const Tensor& keys) override {
    absl::MutexLock lock(&mu_);
    pairs_->Remove(keys);
    return absl::OkStatus();
  }
  Status Import(const Tensor& keys, const Tensor& values) override {
    MR_ASSIGN_OR_RETURN(std::unique_ptr<TablePairs> pairs, TablePairs::Make(types()));
    MR_RETURN_IF_ERROR(pairs->Put(keys, values, TablePairs::OtherValue::kReplace));
    absl::MutexLock lock(&mu_);
    pairs_.swap(pairs);
    return absl::OkStatus();
  }
  Status Export(Tensor* keys, Tensor* values) const override {
    absl::ReaderMutexLock lock(&mu_);
    return pairs_->Export(keys, values);
  }
  Status Initialize(const Tensor&, const Tensor&) override {
    return InvalidArgument("only a HashTable is initialized; this is ", DebugString());
  }

 private:
  mutable absl::Mutex mu_;
  std::unique_ptr<TablePairs> pairs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::string LookupTable::DebugString() const {
  return absl::StrCat("a table from ", DTypeName(types_.key), types_.key_shape.ToString(), " to ",
                      DTypeName(types_.value), types_.value_shape.ToString());
}

RefPtr<LookupTable> NewHashTable(TableTypes types) { return MakeRef<HashTable>(std::move(types)); }

StatusOr<RefPtr<LookupTable>> NewMutableHashTable(TableTypes types) {
  MR_ASSIGN_OR_RETURN(std::unique_ptr<TablePairs> pairs, TablePairs::Make(types));
  return RefPtr<LookupTable>(MakeRef<MutableHashTable>(std::move(types), std::move(pairs)));
}

}  // namespace millrace
