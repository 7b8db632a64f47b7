// SPDX-License-Identifier: Apache-2.0
// MapAndBatch: batches of what a function gives, with several calls at once. An element that fails is one of its batch,
// which fails with it; the next batch begins where it would have begun without.
#include <algorithm>

#include "kernels/cpu/data/dataset_calls.h"
#include "kernels/cpu/data/dataset_function_kernel.h"

namespace millrace {
namespace {

struct MapAndBatch {
  DatasetRef input;
  CapturedFunction function;
  int64_t batch = 1;
  size_t calls = 1;
  bool drop_remainder = false;
  bool keeps_count = false;  // a call may not end the sequence
};

class MapAndBatchDataset final : public Dataset {
 public:
  MapAndBatchDataset(ElementSpec spec, MapAndBatch params) : Dataset(std::move(spec)), params_(std::move(params)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext& ctx) const override {
    MR_ASSIGN_OR_RETURN(DataIteratorPtr input, params_.input->MakeIterator(ctx));
    return std::make_unique<Iterator>(ctx.env, RefPtr<const MapAndBatchDataset>::Share(this), std::move(input));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    Iterator(Env& env, RefPtr<const MapAndBatchDataset> d, DataIteratorPtr input)
        : dataset_(std::move(d)), input_(std::move(input)), calls_(env, dataset_->params_.function) {}
    StatusOr<bool> Next(DataContext& ctx, Element* element) override {
      const MapAndBatch& p = dataset_->params_;
      for (; taken_ < p.batch && !ended_; ++taken_) {
        MR_RETURN_IF_ERROR(ctx.KeepGoing());
        MR_RETURN_IF_ERROR(calls_.Fill(ctx, p.calls, &input_));
        if (calls_.empty()) {
          ended_ = true;
          break;
        }
        MR_ASSIGN_OR_RETURN(const auto call, calls_.Take(ctx));
        if (absl::IsOutOfRange(call->status) && !p.keeps_count) {  // the function says that it is over
          ended_ = true;
          break;
        }
        if (absl::IsOutOfRange(call->status)) {
          call->status = InvalidArgument("Function invocation produced OutOfRangeError: ", call->status.message());
        }
        failed_.Update(call->status);
        if (failed_.ok()) rows_.push_back(std::move(call->results));
      }
      taken_ = 0;
      std::vector<Element> rows = std::exchange(rows_, {});
      MR_RETURN_IF_ERROR(std::exchange(failed_, absl::OkStatus()));
      if (rows.empty() || (p.drop_remainder && static_cast<int64_t>(rows.size()) < p.batch)) return false;
      MR_RETURN_IF_ERROR(CheckRows(rows));
      MR_ASSIGN_OR_RETURN(*element, StackElementRows(rows, dataset_->spec().types));
      MR_RETURN_IF_ERROR(CheckElement(dataset_->spec(), *element));
      return true;
    }

   private:
    static Status CheckRows(const std::vector<Element>& rows) {
      for (const Element& row : rows) {
        for (size_t c = 0; c < std::min(row.size(), rows[0].size()); ++c) {
          if (row[c].num_elements() == rows[0][c].num_elements()) continue;
          return InvalidArgument(
              "Cannot add tensor to the batch: number of elements does not match. Shapes are: [tensor]: ",
              row[c].shape().ToString(), ", [batch]: ", rows[0][c].shape().ToString());
        }
      }
      return absl::OkStatus();
    }

    const RefPtr<const MapAndBatchDataset> dataset_;
    DataIteratorPtr input_;  // null: it has ended
    // Of the batch that is being made, which a cancelled call leaves as it is.
    int64_t taken_ = 0;
    std::vector<Element> rows_;
    Status failed_;  // of the first element that failed
    bool ended_ = false;
    ParallelCalls calls_;
  };

  const MapAndBatch params_;
};

class MapAndBatchKernel final : public FunctionsKernel {
 public:
  MapAndBatchKernel() : FunctionsKernel({"f"}) {}
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(keeps_count_, init.Attr<bool>("preserve_cardinality"));
    return FunctionsKernel::Init(init);
  }

 private:
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MapAndBatch p;
    MR_ASSIGN_OR_RETURN(p.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(p.function, Bind(ctx, 0, p.input->spec().types, "other_arguments"));
    const int settings = ctx.num_inputs() - 3;
    MR_ASSIGN_OR_RETURN(p.batch, ScalarInput(ctx, settings, "batch_size"));
    if (p.batch <= 0) return InvalidArgument("batch_size must be greater than zero.");
    MR_ASSIGN_OR_RETURN(int64_t calls, ScalarInput(ctx, settings + 1, "num_parallel_calls"));
    if (calls == kAutotune) calls = kAutotunedCalls;
    if (calls <= 0) return InvalidArgument("num_parallel_calls must be greater than zero.");
    p.calls = static_cast<size_t>(std::min(calls, kMaxCalls));
    MR_ASSIGN_OR_RETURN(p.drop_remainder, FlagInput(ctx, settings + 2, "drop_remainder"));
    p.keeps_count = keeps_count_;
    return DatasetRef(MakeRef<MapAndBatchDataset>(spec(), std::move(p)));
  }
  bool keeps_count_ = false;
};

}  // namespace

void RegisterDatasetMapAndBatchKernels(KernelRegistry& r) {
  for (const char* op : {"MapAndBatchDataset", "ExperimentalMapAndBatchDataset"}) r.Add<MapAndBatchKernel>({.op = op});
}

}  // namespace millrace
