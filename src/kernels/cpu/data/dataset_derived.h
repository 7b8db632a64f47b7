// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "kernels/cpu/data/dataset.h"

namespace millrace {

// A data set whose iterators are made by a function of it.
template <typename Params>
class Derived final : public Dataset {
 public:
  using NewIterator = StatusOr<DataIteratorPtr> (*)(const RefPtr<const Derived>& self, DataContext& ctx);
  Derived(ElementSpec spec, Params params, NewIterator new_iterator)
      : Dataset(std::move(spec)), params_(std::move(params)), new_iterator_(new_iterator) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext& ctx) const override {
    return new_iterator_(RefPtr<const Derived>::Share(this), ctx);
  }
  const Params& params() const { return params_; }

 private:
  const Params params_;
  const NewIterator new_iterator_;
};

// Every `shards`-th element from the one at `index` on. require_non_empty: InvalidArgument where a shard has none.
DatasetRef ShardOf(DatasetRef input, int64_t shards, int64_t index, bool require_non_empty);

}  // namespace millrace
