// SPDX-License-Identifier: Apache-2.0
// GroupByReducer: for each key of the elements what a state of them comes to. The keys come in ascending order, as in
// TensorFlow.
#include <map>

#include "kernels/cpu/data/dataset_derived.h"
#include "kernels/cpu/data/dataset_function_kernel.h"

namespace millrace {
namespace {

struct Reducer {
  DatasetRef input;
  CapturedFunction key, init;
  // Bound to the types of the first state.
  std::shared_ptr<FunctionAttr> reduce, finalize;
  Element reduce_captured, finalize_captured;
};
using ReducerDataset = Derived<Reducer>;

class ReducerIterator final : public DataIterator {
 public:
  ReducerIterator(RefPtr<const ReducerDataset> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    while (input_) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      Element next;
      MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, &next));
      if (found) {
        MR_RETURN_IF_ERROR(Add(ctx, std::move(next)));
      } else {
        input_.reset();
      }
    }
    if (states_.empty()) return false;
    const Element state = std::move(states_.begin()->second);
    states_.erase(states_.begin());
    const Reducer& r = dataset_->params();
    MR_ASSIGN_OR_RETURN(
        const CapturedFunction finalize, r.finalize->Bind(&ctx.cancellation, TypesOf(state), r.finalize_captured));
    MR_RETURN_IF_ERROR(finalize.Run(ctx, state, element));
    MR_RETURN_IF_ERROR(CheckElement(dataset_->spec(), *element));
    return true;
  }

 private:
  Status Add(DataContext& ctx, Element next) {
    const Reducer& r = dataset_->params();
    MR_RETURN_IF_ERROR(OwnMemory(&next));  // once, for both functions
    Element results;
    MR_RETURN_IF_ERROR(r.key.Run(ctx, next, &results));
    MR_ASSIGN_OR_RETURN(const int64_t key, OneInt64(results, "key_func"));
    auto state = states_.find(key);
    if (state == states_.end()) {
      Element first;
      MR_RETURN_IF_ERROR(r.init.Run(ctx, {Tensor::Scalar<int64_t>(key)}, &first));
      state = states_.emplace(key, std::move(first)).first;
    }
    const std::vector<DType> types = TypesOf(state->second);
    MR_ASSIGN_OR_RETURN(const CapturedFunction reduce,
                        r.reduce->Bind(&ctx.cancellation, Joined(types, r.input->spec().types), r.reduce_captured));
    Element after;
    MR_RETURN_IF_ERROR(reduce.Run(ctx, WithBehind(state->second, next), &after));
    MR_RETURN_IF_ERROR(CheckElement({types, {}}, after));
    state->second = std::move(after);
    return absl::OkStatus();
  }

  const RefPtr<const ReducerDataset> dataset_;
  DataIteratorPtr input_;  // null: it has ended
  std::map<int64_t, Element> states_;
};

class GroupByReducerKernel final : public FunctionsKernel {
 public:
  GroupByReducerKernel() : FunctionsKernel({"key_func", "init_func", "reduce_func", "finalize_func"}) {}
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Reducer r;
    MR_ASSIGN_OR_RETURN(r.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(r.key, Bind(ctx, 0, r.input->spec().types, "key_func_other_arguments"));
    MR_ASSIGN_OR_RETURN(r.init, Bind(ctx, 1, {DType::kInt64}, "init_func_other_arguments"));
    r.reduce = function(2);
    r.finalize = function(3);
    MR_ASSIGN_OR_RETURN(r.reduce_captured, KeptInputs(ctx, "reduce_func_other_arguments"));
    MR_ASSIGN_OR_RETURN(r.finalize_captured, KeptInputs(ctx, "finalize_func_other_arguments"));
    return DatasetRef(MakeRef<ReducerDataset>(
        spec(), std::move(r),
        [](const RefPtr<const ReducerDataset>& self, DataContext& c) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr input, self->params().input->MakeIterator(c));
          return std::make_unique<ReducerIterator>(self, std::move(input));
        }));
  }
};

}  // namespace

void RegisterDatasetReducerKernels(KernelRegistry& r) {
  for (const char* op : {"GroupByReducerDataset", "ExperimentalGroupByReducerDataset"}) {
    r.Add<GroupByReducerKernel>({.op = op});
  }
}

}  // namespace millrace
