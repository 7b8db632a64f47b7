// SPDX-License-Identifier: Apache-2.0
// Keys stand in a vector, values in a tensor with as many rows; a hash set of row numbers finds a key's row.
#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "kernels/cpu/elementwise_objects.h"
#include "kernels/cpu/index_rows.h"
#include "kernels/cpu/lookup_table.h"

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

template <typename K>
class Pairs final : public TablePairs {
 public:
  explicit Pairs(const TableTypes& types)
      : types_(types),
        width_(types.value_shape.num_elements()),
        copier_(types.value, width_),
        rows_(0, RowHash{&keys_}, RowEqual{&keys_}) {}

  int64_t size() const override { return static_cast<int64_t>(keys_.size()); }

  Status Put(const Tensor& keys, const Tensor& values, OtherValue mode) override {
    for (int64_t i = 0; i < keys.num_elements(); ++i) {
      const K& key = keys.data<K>()[i];
      int64_t row = RowOf(key);
      if (row < 0) {
        MR_ASSIGN_OR_RETURN(row, AddRow(key));
      } else if (mode == OtherValue::kRefuse &&
                 !SameElements(types_.value, values_, row * width_, values, i * width_, width_)) {
        return FailedPrecondition("HashTable has different value for same key: key ", KeyText(key), " (number ", i,
                                  " of those given) has two values");
      }
      copier_.CopyOne(values_.mutable_raw(), row * width_, values.raw(), i * width_);
    }
    return absl::OkStatus();
  }

  void Find(const Tensor& keys, const Tensor& defaults, int64_t begin, int64_t end, Tensor* values) const override {
    const int64_t default_step = defaults.num_elements() == width_ ? 0 : width_;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = RowOf(keys.data<K>()[i]);
      if (row < 0) {
        copier_.CopyOne(values->mutable_raw(), i * width_, defaults.raw(), i * default_step);
      } else {
        copier_.CopyOne(values->mutable_raw(), i * width_, values_.raw(), row * width_);
      }
    }
  }

  // The last row takes the place of the one that goes.
  void Remove(const Tensor& keys) override {
    for (const K& key : keys.flat<K>()) {
      const int64_t row = RowOf(key);
      if (row < 0) continue;
      const int64_t last = size() - 1;
      rows_.erase(Row{row});
      if (row != last) {
        rows_.erase(Row{last});
        keys_[static_cast<size_t>(row)] = std::move(keys_.back());
        copier_.CopyOne(values_.mutable_raw(), row * width_, values_.raw(), last * width_);
      }
      keys_.pop_back();
      if (row != last) rows_.insert(Row{row});
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
  struct Row {
    int64_t at;
  };
  struct RowHash {
    using is_transparent = void;
    const std::vector<K>* keys;
    size_t operator()(Row row) const { return (*this)((*keys)[static_cast<size_t>(row.at)]); }
    size_t operator()(const K& key) const {
      if constexpr (std::is_same_v<K, TString>) {
        return absl::HashOf(key.view());
      } else {
        return absl::HashOf(key);
      }
    }
  };
  struct RowEqual {
    using is_transparent = void;
    const std::vector<K>* keys;
    bool operator()(Row a, Row b) const { return a.at == b.at; }
    bool operator()(Row a, const K& key) const { return (*keys)[static_cast<size_t>(a.at)] == key; }
    bool operator()(const K& key, Row a) const { return (*this)(a, key); }
  };

  int64_t RowOf(const K& key) const {
    const auto found = rows_.find(key);
    return found == rows_.end() ? -1 : found->at;
  }

  // All memory first, so that running out of it leaves the table as it was.
  StatusOr<int64_t> AddRow(const K& key) {
    const int64_t row = size();
    MR_RETURN_IF_ERROR(ReserveValues(row + 1));
    rows_.reserve(keys_.size() + 1);
    keys_.push_back(key);
    rows_.insert(Row{row});
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
  const RunCopier copier_;
  std::vector<K> keys_;
  Tensor values_;  // at least as many rows as there are keys
  absl::flat_hash_set<Row, RowHash, RowEqual> rows_;
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
