// SPDX-License-Identifier: Apache-2.0
// Open addressing over a power of two of buckets. A key's first bucket is given by its lowest bits, if it is one
// integer, and the distance to the next ones by a mixture of all of them, so that no choice of keys makes long chains
// likely. At least one bucket is empty always, which ends every search.
#include <cmath>
#include <limits>

#include "kernels/cpu/elementwise/elementwise_objects.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/state/lookup_table.h"

namespace millrace {
namespace {

uint64_t Mixed(uint64_t h) {
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ULL;
  return h ^ h >> 33;
}

uint64_t HashOfKey(int64_t key) { return static_cast<uint64_t>(key); }
uint64_t HashOfKey(const TString& key) {
  uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : key.view()) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return Mixed(h);
}

// Of keys of n elements.
template <typename K>
uint64_t HashRow(const K* key, int64_t n) {
  if (n == 1) return HashOfKey(*key);
  uint64_t h = 0;
  for (int64_t i = 0; i < n; ++i) h = Mixed(h ^ HashOfKey(key[i])) + static_cast<uint64_t>(i);
  return h;
}
template <typename K>
bool EqualRows(const K* a, const K* b, int64_t n) {
  return n == 1 ? *a == *b : std::equal(a, a + n, b);
}

struct Buckets {
  Tensor keys;    // [count, key_width]
  Tensor values;  // [count, value_width]
  int64_t count = 0;
  int64_t used = 0;  // by pairs
  int64_t dead = 0;  // by the deleted key
};

// K is the type of a key's elements.
template <typename K>
class DenseHashTable final : public LookupTable {
 public:
  DenseHashTable(TableTypes table_types, DenseTableOptions options)
      : LookupTable(std::move(table_types)),
        options_(std::move(options)),
        empty_(options_.empty_key.data<K>()),
        deleted_(options_.deleted_key.IsInitialized() ? options_.deleted_key.data<K>() : nullptr),
        key_width_(types().key_shape.num_elements()),
        value_width_(types().value_shape.num_elements()),
        copy_key_(types().key, key_width_),
        copy_value_(types().value, value_width_) {}

  Status Start() {
    absl::MutexLock lock(&mu_);
    MR_ASSIGN_OR_RETURN(buckets_, NewBuckets(options_.buckets));
    return absl::OkStatus();
  }

  int64_t size() const override {
    absl::ReaderMutexLock lock(&mu_);
    return buckets_.used;
  }

  Status Find(const Tensor& keys, const Tensor& defaults, ParallelFor, Tensor* values) const override {
    MR_RETURN_IF_ERROR(CheckKeys(keys));
    absl::ReaderMutexLock lock(&mu_);
    const K* key = keys.data<K>();
    for (int64_t i = 0; i < Count(keys); ++i, key += key_width_) {
      const Place place = PlaceOf(buckets_, key);
      if (place.found) {
        copy_value_.CopyOne(values->mutable_raw(), i * value_width_, buckets_.values.raw(), place.at * value_width_);
      } else {
        copy_value_.CopyOne(values->mutable_raw(), i * value_width_, defaults.raw(), 0);
      }
    }
    return absl::OkStatus();
  }

  Status Insert(const Tensor& keys, const Tensor& values) override {
    MR_RETURN_IF_ERROR(CheckKeys(keys));
    absl::MutexLock lock(&mu_);
    MR_RETURN_IF_ERROR(MakeRoom(Count(keys)));
    for (int64_t i = 0; i < Count(keys); ++i) Put(buckets_, keys, i, values, i);
    return absl::OkStatus();
  }

  Status Remove(const Tensor& keys) override {
    if (deleted_ == nullptr) return Unimplemented(DebugString(), " has no key that means 'deleted'");
    MR_RETURN_IF_ERROR(CheckKeys(keys));
    absl::MutexLock lock(&mu_);
    for (int64_t i = 0; i < Count(keys); ++i) {
      const Place place = PlaceOf(buckets_, keys.data<K>() + i * key_width_);
      if (!place.found) continue;
      copy_key_.CopyOne(buckets_.keys.mutable_raw(), place.at * key_width_, options_.deleted_key.raw(), 0);
      --buckets_.used;
      ++buckets_.dead;
    }
    return absl::OkStatus();
  }

  // Takes what Export gives: buckets that hold the empty or the deleted key, too.
  Status Import(const Tensor& keys, const Tensor& values) override {
    const int64_t n = Count(keys);
    MR_ASSIGN_OR_RETURN(const int64_t count, BucketsFor(options_.buckets, n));
    MR_ASSIGN_OR_RETURN(Buckets fresh, NewBuckets(count));
    for (int64_t i = 0; i < n; ++i) {
      if (!IsNoKey(keys.data<K>() + i * key_width_)) Put(fresh, keys, i, values, i);
    }
    absl::MutexLock lock(&mu_);
    std::swap(buckets_, fresh);
    return absl::OkStatus();
  }

  Status Export(Tensor* keys, Tensor* values) const override {
    absl::ReaderMutexLock lock(&mu_);
    MR_ASSIGN_OR_RETURN(*keys, buckets_.keys.Clone());
    MR_ASSIGN_OR_RETURN(*values, buckets_.values.Clone());
    return absl::OkStatus();
  }

  Status Initialize(const Tensor&, const Tensor&) override {
    return InvalidArgument("only a HashTable is initialized; this is ", DebugString());
  }

 private:
  struct Place {
    bool found = false;
    int64_t at = 0;  // of the key, or the bucket that it would take
  };

  int64_t Count(const Tensor& keys) const { return key_width_ == 0 ? 0 : keys.num_elements() / key_width_; }
  bool IsEmpty(const K* key) const { return EqualRows(key, empty_, key_width_); }
  bool IsDeleted(const K* key) const { return deleted_ != nullptr && EqualRows(key, deleted_, key_width_); }
  bool IsNoKey(const K* key) const { return IsEmpty(key) || IsDeleted(key); }

  Status CheckKeys(const Tensor& keys) const {
    const K* key = keys.data<K>();
    for (int64_t i = 0; i < Count(keys); ++i, key += key_width_) {
      if (IsEmpty(key)) {
        return InvalidArgument("Using the empty_key as a table key is not allowed (key number ", i, ")");
      }
      if (IsDeleted(key)) {
        return InvalidArgument("Using the deleted_key as a table key is not allowed (key number ", i, ")");
      }
    }
    return absl::OkStatus();
  }

  Place PlaceOf(const Buckets& b, const K* key) const {
    const uint64_t hash = HashRow(key, key_width_);
    const uint64_t mask = static_cast<uint64_t>(b.count) - 1;
    const uint64_t step = Mixed(hash) | 1;  // odd: every bucket has its turn
    const K* keys = b.keys.data<K>();
    int64_t dead = -1;
    for (uint64_t at = hash & mask;; at = (at + step) & mask) {
      const auto bucket = static_cast<int64_t>(at);
      const K* other = keys + bucket * key_width_;
      if (EqualRows(other, key, key_width_)) return {true, bucket};
      if (IsEmpty(other)) return {false, dead >= 0 ? dead : bucket};
      if (dead < 0 && IsDeleted(other)) dead = bucket;
    }
  }

  // There must be room.
  void Put(Buckets& b, const Tensor& keys, int64_t row, const Tensor& values, int64_t value_row) const {
    const Place place = PlaceOf(b, keys.data<K>() + row * key_width_);
    if (!place.found) {
      if (IsDeleted(b.keys.data<K>() + place.at * key_width_)) --b.dead;
      ++b.used;
      copy_key_.CopyOne(b.keys.mutable_raw(), place.at * key_width_, keys.raw(), row * key_width_);
    }
    copy_value_.CopyOne(b.values.mutable_raw(), place.at * value_width_, values.raw(), value_row * value_width_);
  }

  bool Fits(int64_t pairs, int64_t count) const {
    return pairs < count &&
           static_cast<double>(pairs) <= static_cast<double>(count) * static_cast<double>(options_.max_load);
  }
  StatusOr<int64_t> BucketsFor(int64_t count, int64_t pairs) const {
    constexpr int64_t kMaxBuckets = int64_t{1} << 40;
    while (!Fits(pairs, count)) {
      if (count >= kMaxBuckets) {
        return ResourceExhausted(
            pairs, " pairs at a load of at most ", options_.max_load, " need more than ", kMaxBuckets, " buckets");
      }
      count *= 2;
    }
    return count;
  }

  StatusOr<Buckets> NewBuckets(int64_t count) const {
    Buckets b;
    MR_ASSIGN_OR_RETURN(const Shape keys, Shape::Make({count, key_width_}));
    MR_ASSIGN_OR_RETURN(const Shape values, Shape::Make({count, value_width_}));
    MR_ASSIGN_OR_RETURN(b.keys, Tensor::Make(types().key, keys));
    MR_ASSIGN_OR_RETURN(b.values, Tensor::Make(types().value, values));
    copy_key_.Copy(b.keys.mutable_raw(), 0, key_width_, options_.empty_key.raw(), 0, 0, count);
    ZeroElements(types().value, b.values.mutable_raw(), 0, b.values.num_elements());
    b.count = count;
    return b;
  }

  Status MakeRoom(int64_t more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (Fits(buckets_.used + buckets_.dead + more, buckets_.count)) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const int64_t count, BucketsFor(buckets_.count, buckets_.used + more));
    MR_ASSIGN_OR_RETURN(Buckets fresh, NewBuckets(count));
    for (int64_t i = 0; i < buckets_.count; ++i) {
      if (!IsNoKey(buckets_.keys.data<K>() + i * key_width_)) Put(fresh, buckets_.keys, i, buckets_.values, i);
    }
    std::swap(buckets_, fresh);
    return absl::OkStatus();
  }

  const DenseTableOptions options_;
  const K* const empty_;
  const K* const deleted_;  // null: there is none
  const int64_t key_width_;
  const int64_t value_width_;
  const RunCopier copy_key_;
  const RunCopier copy_value_;
  mutable absl::Mutex mu_;
  Buckets buckets_ ABSL_GUARDED_BY(mu_);
};

template <typename K>
Status CheckOptions(const TableTypes& types, const DenseTableOptions& options) {
  const Shape& key = options.empty_key.shape();
  if (key.rank() > 1 || key.num_elements() == 0) {
    return InvalidArgument("Empty key must be a scalar or a vector, got shape ", key.ToString());
  }
  if (options.deleted_key.IsInitialized()) {
    if (options.deleted_key.shape() != key) {
      return InvalidArgument("Empty and deleted keys must have same shape, got shapes: ", key.ToString(), " and ",
                             options.deleted_key.shape().ToString());
    }
    if (EqualRows(options.empty_key.data<K>(), options.deleted_key.data<K>(), key.num_elements())) {
      return InvalidArgument("Empty and deleted keys cannot be equal");
    }
  }
  if (types.value_shape.rank() > 1) {
    return InvalidArgument("Empty value must be a scalar or a vector, got shape ", types.value_shape.ToString());
  }
  if (!(options.max_load > 0) || !(options.max_load < 1)) {
    return InvalidArgument("max_load_factor must be between 0 and 1, got: ", options.max_load);
  }
  if (options.buckets < 4 || (options.buckets & (options.buckets - 1)) != 0) {
    return InvalidArgument("Number of buckets must be at least 4 and a power of 2, got: ", options.buckets);
  }
  return absl::OkStatus();
}

template <typename K>
StatusOr<RefPtr<LookupTable>> NewTable(TableTypes types, DenseTableOptions options) {
  MR_RETURN_IF_ERROR(CheckOptions<K>(types, options));
  types.key_shape = options.empty_key.shape();
  auto table = MakeRef<DenseHashTable<K>>(std::move(types), std::move(options));
  MR_RETURN_IF_ERROR(table->Start());
  return RefPtr<LookupTable>(std::move(table));
}

}  // namespace

StatusOr<RefPtr<LookupTable>> NewDenseHashTable(TableTypes types, DenseTableOptions options) {
  switch (types.key) {
    case DType::kInt32: return NewTable<int32_t>(std::move(types), std::move(options));
    case DType::kInt64: return NewTable<int64_t>(std::move(types), std::move(options));
    case DType::kString: return NewTable<TString>(std::move(types), std::move(options));
    default: return Unimplemented("a table's keys are int32, int64 or string, not ", DTypeName(types.key));
  }
}

}  // namespace millrace
