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

}  // namespace millrace
