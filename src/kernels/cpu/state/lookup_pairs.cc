// SPDX-License-Identifier: Apache-2.0
// Keys stand in a vector, values in a tensor with as many rows; an index of row numbers by hash finds a key's row. A
// look-up touches memory at three places that are far apart, so many are under way at once.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/hash/hash.h"
#include "kernels/cpu/elementwise/elementwise_objects.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/state/lookup_table.h"

namespace millrace {
namespace {

template <typename K>
std::string KeyText(const K& key) {
  if constexpr (std::is_same_v<K, TString>) {
    return absl::StrCat("\"", key.view().substr(0, 80), "\"");
  } else {
    return absl::StrCat(key);
  }
}

// Equal as bytes, or as strings; objects never are.
bool SameElements(DType dtype, const Tensor& a, int64_t a_at, const Tensor& b, int64_t b_at, int64_t n) {
  if (dtype == DType::kString) {
    return std::equal(a.data<TString>() + a_at, a.data<TString>() + a_at + n, b.data<TString>() + b_at);
  }
  if (!IsPlain(dtype)) return false;
  const auto size = static_cast<int64_t>(DTypeSize(dtype));
  return n == 0 ||
         std::memcmp(a.data<char>() + a_at * size, b.data<char>() + b_at * size, static_cast<size_t>(n * size)) == 0;
}

// Row numbers in slots by hash; a slot that is taken goes to the next one. At most three fifths of them are in use.
class RowIndex {
 public:
  static constexpr uint32_t kMaxRow = std::numeric_limits<uint32_t>::max() - 2;

  size_t bytes() const { return slots_.size() * sizeof(Slot); }
  void Prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[Home(hash)]); }
  // What a look at a few slots says: kNone, the row that it is most likely, or kUnsure.
  static constexpr int64_t kNone = -1;
  static constexpr int64_t kUnsure = -2;
  int64_t Guess(uint64_t hash) const {
    for (size_t i = 0, at = Home(hash); i < 4; ++i, at = (at + 1) & mask_) {
      const Slot slot = slots_[at];
      if (slot.row == kEmpty) return kNone;
      if (slot.tag == Tag(hash) && slot.row != kGone) return slot.row;
    }
    return kUnsure;
  }
  // The row for which same(row) holds, or -1.
  template <typename Same>
  int64_t Find(uint64_t hash, const Same& same) const {
    for (size_t at = Home(hash);; at = (at + 1) & mask_) {
      const Slot slot = slots_[at];
      if (slot.row == kEmpty) return -1;
      if (slot.tag == Tag(hash) && slot.row != kGone && same(slot.row)) return slot.row;
    }
  }
  // Room for one row more. hash_of(row) is that of the row's key.
  template <typename HashOf>
  void Reserve(size_t rows, const HashOf& hash_of) {
    if ((used_ + 1) * 5 < slots_.size() * 3) return;
    size_t count = 16;
    while ((rows + 1) * 5 >= count * 2) count *= 2;
    std::vector<Slot> fresh(count);
    fresh.swap(slots_);
    mask_ = count - 1;
    used_ = 0;
    for (const Slot& slot : fresh) {
      if (slot.row <= kMaxRow) Add(hash_of(slot.row), slot.row);
    }
  }
  void Add(uint64_t hash, int64_t row) {
    size_t at = Home(hash);
    while (slots_[at].row <= kMaxRow) at = (at + 1) & mask_;
    used_ += slots_[at].row == kEmpty;
    slots_[at] = {Tag(hash), static_cast<uint32_t>(row)};
  }
  void Remove(uint64_t hash, int64_t row) { slots_[SlotOf(hash, row)].row = kGone; }
  void Rename(uint64_t hash, int64_t row, int64_t new_row) {
    slots_[SlotOf(hash, row)].row = static_cast<uint32_t>(new_row);
  }

 private:
  static constexpr uint32_t kEmpty = kMaxRow + 1;
  static constexpr uint32_t kGone = kMaxRow + 2;
  struct Slot {
    uint32_t tag = 0;
    uint32_t row = kEmpty;
  };
  static uint32_t Tag(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  size_t Home(uint64_t hash) const { return static_cast<size_t>(hash) & mask_; }
  // The row must be there.
  size_t SlotOf(uint64_t hash, int64_t row) const {
    size_t at = Home(hash);
    while (slots_[at].row != static_cast<uint32_t>(row)) at = (at + 1) & mask_;
    return at;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(16);
  size_t mask_ = 15;
  size_t used_ = 0;  // by rows, or by rows that are gone
};

template <typename K>
class Pairs final : public TablePairs {
 public:
  explicit Pairs(const TableTypes& types)
      : types_(types),
        width_(types.value_shape.num_elements()),
        size_of_one_(IsPlain(types.value) && width_ == 1 ? DTypeSize(types.value) : 0),
        copier_(types.value, width_) {}

  int64_t size() const override { return static_cast<int64_t>(keys_.size()); }

  Status Put(const Tensor& keys, const Tensor& values, OtherValue mode) override {
    switch (size_of_one_) {
      case 4: return PutOnes<uint32_t>(keys, values, mode);
      case 8: return PutOnes<uint64_t>(keys, values, mode);
      default: break;
    }
    return PutBlocks(keys, values, mode, [&](int64_t row, int64_t i) {
      copier_.CopyOne(values_.mutable_raw(), row * width_, values.raw(), i * width_);
    });
  }

  void Find(const Tensor& keys, const Tensor& defaults, int64_t begin, int64_t end, Tensor* values) const override {
    if (size_of_one_ == 8) {
      FindOnes<uint64_t>(keys.data<K>(), defaults, begin, end, values);
    } else if (size_of_one_ == 4) {
      FindOnes<uint32_t>(keys.data<K>(), defaults, begin, end, values);
    } else if (types_.value == DType::kString && width_ == 1) {
      FindOnes<TString>(keys.data<K>(), defaults, begin, end, values);
    } else {
      const int64_t default_step = defaults.num_elements() == width_ ? 0 : width_;
      FindBlocks(keys.data<K>(), begin, end, [&](int64_t i, int64_t row) {
        copier_.CopyOne(values->mutable_raw(), i * width_, (row < 0 ? defaults : values_).raw(),
                        row < 0 ? i * default_step : row * width_);
      });
    }
  }

  // The last row takes the place of the one that goes.
  void Remove(const Tensor& keys) override {
    for (const K& key : keys.flat<K>()) {
      const int64_t row = RowOf(key);
      if (row < 0) continue;
      const int64_t last = size() - 1;
      rows_.Remove(HashOf(key), row);
      if (row != last) {
        rows_.Rename(HashOf(keys_.back()), last, row);
        keys_[static_cast<size_t>(row)] = std::move(keys_.back());
        copier_.CopyOne(values_.mutable_raw(), row * width_, values_.raw(), last * width_);
      }
      keys_.pop_back();
    }
  }

  Status Export(Tensor* keys, Tensor* values) const override {
    MR_ASSIGN_OR_RETURN(*keys, Tensor::Make(types_.key, Shape::Vector(size())));
    std::copy(keys_.begin(), keys_.end(), keys->mutable_data<K>());
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Vector(size()).Concatenate(types_.value_shape));
    MR_ASSIGN_OR_RETURN(*values, Tensor::Make(types_.value, shape));
    copier_.Copy(values->mutable_raw(), 0, width_, values_.raw(), 0, width_, size());
    return absl::OkStatus();
  }

 private:
  static uint64_t HashOf(const K& key) {
    if constexpr (std::is_same_v<K, TString>) {
      return absl::HashOf(key.view());
    } else {
      return absl::HashOf(key);
    }
  }
  template <typename E>
  Status PutOnes(const Tensor& keys, const Tensor& values, OtherValue mode) {
    const E* const from = values.data<E>();
    return PutBlocks(keys, values, mode, [&](int64_t row, int64_t i) { values_.mutable_data<E>()[row] = from[i]; });
  }
  // Calls copy(row, i) for value i.
  template <typename Copy>
  Status PutBlocks(const Tensor& keys, const Tensor& values, OtherValue mode, const Copy& copy) {
    constexpr int64_t kBlock = 32;
    uint64_t hashes[kBlock];
    const int64_t n = keys.num_elements();
    for (int64_t block = 0; block < n; block += kBlock) {
      const int64_t size = std::min(kBlock, n - block);
      const K* const some = keys.data<K>() + block;
      for (int64_t i = 0; i < size; ++i) rows_.Prefetch(hashes[i] = HashOf(some[i]));
      for (int64_t i = 0; i < size; ++i) {
        int64_t row = RowOf(some[i], hashes[i]);
        if (row < 0) {
          MR_ASSIGN_OR_RETURN(row, AddRow(some[i], hashes[i]));
        } else if (mode == OtherValue::kRefuse) {
          MR_RETURN_IF_ERROR(CheckSame(row, some[i], values, block + i));
        }
        copy(row, block + i);
      }
    }
    return absl::OkStatus();
  }
  template <typename E>
  void FindOnes(const K* keys, const Tensor& defaults, int64_t begin, int64_t end, Tensor* values) const {
    E* const to = values->mutable_data<E>();
    const E *const found = values_.IsInitialized() ? values_.data<E>() : nullptr, *const other = defaults.data<E>();
    const int64_t default_step = defaults.num_elements() == 1 ? 0 : 1;
    FindBlocks(
        keys, begin, end, [=](int64_t i, int64_t row) { to[i] = row < 0 ? other[i * default_step] : found[row]; });
  }

  // Calls copy(i, row of key i or -1). Where memory is far, first all the slots of a block are asked for, then the keys
  // and values, then they are looked at.
  template <typename Copy>
  void FindBlocks(const K* keys, int64_t begin, int64_t end, const Copy& copy) const {
    constexpr int64_t kBlock = 32;
    constexpr size_t kCached = 1 << 20;  // bytes of slots that a processor finds without being told
    const char* const values = values_.IsInitialized() ? static_cast<const char*>(values_.raw()) : nullptr;
    const auto row_bytes = static_cast<size_t>(width_) * DTypeSize(types_.value);
    uint64_t hashes[kBlock];
    int64_t rows[kBlock];
    if (!std::is_same_v<K, TString> && rows_.bytes() <= kCached) {
      for (int64_t i = begin; i < end; ++i) copy(i, RowOf(keys[i]));
      return;
    }
    for (int64_t block = begin; block < end; block += kBlock) {
      const int64_t n = std::min(kBlock, end - block);
      for (int64_t i = 0; i < n; ++i) rows_.Prefetch(hashes[i] = HashOf(keys[block + i]));
      for (int64_t i = 0; i < n; ++i) {
        rows[i] = rows_.Guess(hashes[i]);
        const size_t row = rows[i] < 0 ? 0 : static_cast<size_t>(rows[i]);
        __builtin_prefetch(keys_.data() + row);
        if (values != nullptr) __builtin_prefetch(values + row * row_bytes);
      }
      for (int64_t i = 0; i < n; ++i) {
        int64_t row = rows[i];
        if (row == RowIndex::kUnsure || (row >= 0 && !(keys_[static_cast<size_t>(row)] == keys[block + i]))) {
          row = RowOf(keys[block + i], hashes[i]);
        }
        copy(block + i, row);
      }
    }
  }

  int64_t RowOf(const K& key) const { return RowOf(key, HashOf(key)); }
  int64_t RowOf(const K& key, uint64_t hash) const {
    return rows_.Find(hash, [&](uint32_t row) { return keys_[row] == key; });
  }

  Status CheckSame(int64_t row, const K& key, const Tensor& values, int64_t i) const {
    if (SameElements(types_.value, values_, row * width_, values, i * width_, width_)) return absl::OkStatus();
    return FailedPrecondition("HashTable has different value for same key: key ", KeyText(key), " (number ", i,
                              " of those given) has two values");
  }

  // All memory first, so that running out of it leaves the table as it was.
  StatusOr<int64_t> AddRow(const K& key, uint64_t hash) {
    const int64_t row = size();
    if (row > static_cast<int64_t>(RowIndex::kMaxRow)) return ResourceExhausted("a table has at most 2^32 - 2 pairs");
    MR_RETURN_IF_ERROR(ReserveValues(row + 1));
    rows_.Reserve(keys_.size(), [&](uint32_t r) { return HashOf(keys_[r]); });
    keys_.push_back(key);
    rows_.Add(hash, row);
    return row;
  }

  Status ReserveValues(int64_t rows) {
    const int64_t capacity = values_.IsInitialized() ? values_.dim(0) : 0;
    if (rows <= capacity) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({std::max(rows, capacity + capacity / 2 + 16), width_}));
    MR_ASSIGN_OR_RETURN(Tensor grown, Tensor::Make(types_.value, shape));
    if (size() > 0) copier_.Copy(grown.mutable_raw(), 0, width_, values_.raw(), 0, width_, size());
    values_ = std::move(grown);
    return absl::OkStatus();
  }

  const TableTypes types_;
  const int64_t width_;
  const size_t size_of_one_;  // bytes of a value that is one plain element, else 0
  const RunCopier copier_;
  std::vector<K> keys_;
  Tensor values_;  // at least as many rows as there are keys
  RowIndex rows_;
};

}  // namespace

StatusOr<std::unique_ptr<TablePairs>> TablePairs::Make(const TableTypes& types) {
  switch (types.key) {
    case DType::kInt32: return std::make_unique<Pairs<int32_t>>(types);
    case DType::kInt64: return std::make_unique<Pairs<int64_t>>(types);
    case DType::kString: return std::make_unique<Pairs<TString>>(types);
    default: return Unimplemented("a table's keys are int32, int64 or string, not ", DTypeName(types.key));
  }
}

}  // namespace millrace
