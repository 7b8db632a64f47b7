// SPDX-License-Identifier: Apache-2.0
// Data sets that put elements through functions of the graph.
#include <algorithm>

#include "kernels/cpu/data/dataset.h"
#include "kernels/cpu/data/dataset_order.h"
#include "kernels/cpu/data/dataset_wait.h"

namespace millrace {
namespace {

constexpr int64_t kMaxCycle = 1 << 20;

class FunctionDatasetKernel : public DatasetKernel, public UsesFunctions {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(function_.Init(init, init.HasAttr("predicate") ? "predicate" : "f"));
    return DatasetKernel::Init(init);
  }
  void SetFunctions(std::shared_ptr<FunctionSource> functions) override { function_.SetSource(std::move(functions)); }

 protected:
  std::shared_ptr<FunctionSource> functions() const override { return function_.source(); }
  StatusOr<CapturedFunction> Bind(const KernelContext& ctx, const Dataset& input) {
    MR_ASSIGN_OR_RETURN(Element captured, KeptInputs(ctx, "other_arguments"));
    return function_.Bind(ctx.step().cancellation, input.spec().types, std::move(captured));
  }

 private:
  FunctionAttr function_;
};

// A pass over `input` that calls `function`: what map and filter are made of.
struct Mapping {
  DatasetRef input;
  CapturedFunction function;
  bool keeps_count = false;  // a call may not end the sequence
};

template <typename Iterator>
class MappingDataset final : public Dataset {
 public:
  MappingDataset(ElementSpec spec, Mapping mapping) : Dataset(std::move(spec)), mapping_(std::move(mapping)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext& ctx) const override {
    MR_ASSIGN_OR_RETURN(DataIteratorPtr input, mapping_.input->MakeIterator(ctx));
    return std::make_unique<Iterator>(RefPtr<const MappingDataset>::Share(this), std::move(input));
  }
  const Mapping& mapping() const { return mapping_; }

 private:
  const Mapping mapping_;
};

class MapIterator final : public DataIterator {
 public:
  MapIterator(RefPtr<const MappingDataset<MapIterator>> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    Element args;
    MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, &args));
    if (!found) return false;
    const Mapping& m = dataset_->mapping();
    const Status s = m.function.Run(ctx, std::move(args), element);
    if (absl::IsOutOfRange(s)) {  // the function says that it is over
      if (m.keeps_count) return InvalidArgument("Function invocation produced OutOfRangeError: ", s.message());
      return false;
    }
    MR_RETURN_IF_ERROR(s);
    MR_RETURN_IF_ERROR(CheckElement(dataset_->spec(), *element));
    return true;
  }

 private:
  const RefPtr<const MappingDataset<MapIterator>> dataset_;
  const DataIteratorPtr input_;
};

class FilterIterator final : public DataIterator {
 public:
  FilterIterator(RefPtr<const MappingDataset<FilterIterator>> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    while (true) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, element));
      if (!found) return false;
      MR_RETURN_IF_ERROR(OwnMemory(element));  // once, for the function and for who reads it here
      Element results;
      MR_RETURN_IF_ERROR(dataset_->mapping().function.Run(ctx, *element, &results));
      if (results.size() != 1 || results[0].dtype() != DType::kBool || results[0].num_elements() != 1) {
        return InvalidArgument("Filter predicate `f` must return a scalar bool.");
      }
      if (*results[0].data<bool>()) return true;
    }
  }

 private:
  const RefPtr<const MappingDataset<FilterIterator>> dataset_;
  const DataIteratorPtr input_;
};

template <typename Iterator>
class MappingKernel final : public FunctionDatasetKernel {
  Status Init(const KernelInit& init) override {
    if (init.HasAttr("preserve_cardinality")) {
      MR_ASSIGN_OR_RETURN(keeps_count_, init.Attr<bool>("preserve_cardinality"));
    }
    if (init.HasAttr("deterministic")) MR_RETURN_IF_ERROR(ElementOrderOf(init).status());
    return FunctionDatasetKernel::Init(init);
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Mapping m;
    MR_ASSIGN_OR_RETURN(m.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(m.function, Bind(ctx, *m.input));
    const ArgRange calls = ctx.input_arg("num_parallel_calls");
    if (calls.end > calls.begin) MR_RETURN_IF_ERROR(CheckParallelCalls(ctx, calls.begin));
    m.keeps_count = keeps_count_;
    return DatasetRef(MakeRef<MappingDataset<Iterator>>(spec(), std::move(m)));
  }
  bool keeps_count_ = false;
};

// Elements of the data sets that a function makes, `cycle` of them open at once, `block` elements from each in turn.
class InterleaveDataset final : public Dataset {
 public:
  InterleaveDataset(ElementSpec spec, Mapping mapping, int64_t cycle, int64_t block)
      : Dataset(std::move(spec)), mapping_(std::move(mapping)), cycle_(static_cast<size_t>(cycle)), block_(block) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext& ctx) const override {
    MR_ASSIGN_OR_RETURN(DataIteratorPtr input, mapping_.input->MakeIterator(ctx));
    return std::make_unique<Iterator>(RefPtr<const InterleaveDataset>::Share(this), std::move(input));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    Iterator(RefPtr<const InterleaveDataset> d, DataIteratorPtr input)
        : dataset_(std::move(d)), input_(std::move(input)), open_(dataset_->cycle_) {}
    StatusOr<bool> Next(DataContext& ctx, Element* element) override {
      while (input_ || num_open_ > 0) {
        MR_RETURN_IF_ERROR(ctx.KeepGoing());
        DataIteratorPtr& current = open_[at_];
        if (current) {
          MR_ASSIGN_OR_RETURN(const bool found, current->Next(ctx, element));
          if (found) {
            if (++taken_ == dataset_->block_) Advance();
            return true;
          }
          current.reset();
          --num_open_;
          Advance();
        } else if (input_) {
          MR_RETURN_IF_ERROR(OpenNext(ctx, &current));
        } else {
          Advance();
        }
      }
      return false;
    }

   private:
    void Advance() {
      taken_ = 0;
      at_ = (at_ + 1) % open_.size();
    }
    Status OpenNext(DataContext& ctx, DataIteratorPtr* current) {
      Element args, results;
      MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, &args));
      if (!found) {
        input_.reset();
        return absl::OkStatus();
      }
      MR_RETURN_IF_ERROR(dataset_->mapping_.function.Run(ctx, std::move(args), &results));
      if (results.size() != 1) return InvalidArgument("Function must return a single scalar of dtype DT_VARIANT.");
      MR_ASSIGN_OR_RETURN(const DatasetRef made, DatasetOf(results[0], "what the function returns"));
      MR_RETURN_IF_ERROR(CheckSpec(dataset_->spec(), made->spec()));
      MR_ASSIGN_OR_RETURN(*current, made->MakeIterator(ctx));
      ++num_open_;
      return absl::OkStatus();
    }

    const RefPtr<const InterleaveDataset> dataset_;
    DataIteratorPtr input_;  // null: it has ended
    std::vector<DataIteratorPtr> open_;
    size_t at_ = 0;
    size_t num_open_ = 0;
    int64_t taken_ = 0;
  };

  const Mapping mapping_;
  const size_t cycle_;
  const int64_t block_;
};

class InterleaveKernel final : public FunctionDatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Mapping m;
    MR_ASSIGN_OR_RETURN(m.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(m.function, Bind(ctx, *m.input));
    int64_t cycle = 1, block = 1;
    const ArgRange lengths = ctx.input_arg("cycle_length");
    if (lengths.end > lengths.begin) {
      MR_ASSIGN_OR_RETURN(cycle, ScalarInput(ctx, lengths.begin, "cycle_length"));
      MR_ASSIGN_OR_RETURN(block, ScalarInput(ctx, lengths.begin + 1, "block_length"));
      if (cycle == -1) cycle = 4;
      if (cycle <= 0) return InvalidArgument("cycle_length must be greater than zero.");
      if (cycle > kMaxCycle) return InvalidArgument("cycle_length is ", cycle, ", more than ", kMaxCycle);
      if (block <= 0) return InvalidArgument("block_length must be greater than zero.");
    }
    return DatasetRef(MakeRef<InterleaveDataset>(spec(), std::move(m), cycle, block));
  }
};

// state = f(state, element) over all elements.
class ReduceKernel final : public AsyncKernel, public UsesFunctions {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(spec_.types, init.Attr<std::vector<DType>>("output_types"));
    MR_ASSIGN_OR_RETURN(spec_.shapes, init.Attr<std::vector<PartialShape>>("output_shapes"));
    MR_ASSIGN_OR_RETURN(state_types_, init.Attr<std::vector<DType>>("Tstate"));
    if (state_types_ != spec_.types) return InvalidArgument("Tstate and output_types must be equal");
    return function_.Init(init, "f");
  }
  void SetFunctions(std::shared_ptr<FunctionSource> functions) override { function_.SetSource(std::move(functions)); }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ReadOnWaitingThread(ctx, std::move(done), [this, &ctx](DataContext& data) { return Reduce(ctx, data); });
  }

 private:
  Status Reduce(KernelContext& ctx, DataContext& data) {
    MR_ASSIGN_OR_RETURN(const DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(Element state, KeptInputs(ctx, "initial_state"));
    MR_ASSIGN_OR_RETURN(Element captured, KeptInputs(ctx, "other_arguments"));
    std::vector<DType> types = state_types_;
    types.insert(types.end(), input->spec().types.begin(), input->spec().types.end());
    MR_ASSIGN_OR_RETURN(
        const CapturedFunction function, function_.Bind(&data.cancellation, types, std::move(captured)));
    MR_ASSIGN_OR_RETURN(const DataIteratorPtr iterator, input->MakeIterator(data));
    while (true) {
      MR_RETURN_IF_ERROR(data.KeepGoing());
      Element element;
      MR_ASSIGN_OR_RETURN(const bool found, iterator->Next(data, &element));
      if (!found) break;
      state.insert(state.end(), element.begin(), element.end());
      Element next;
      MR_RETURN_IF_ERROR(function.Run(data, std::move(state), &next));
      MR_RETURN_IF_ERROR(CheckElement({state_types_, {}}, next));
      state = std::move(next);
    }
    MR_RETURN_IF_ERROR(CheckElement(spec_, state));
    for (size_t i = 0; i < state.size(); ++i) ctx.set_output(static_cast<int>(i), std::move(state[i]));
    return absl::OkStatus();
  }

  ElementSpec spec_;
  std::vector<DType> state_types_;
  FunctionAttr function_;
};

}  // namespace

void RegisterDatasetFunctionKernels(KernelRegistry& r) {
  for (const char* op : {"MapDataset", "ExperimentalMapDataset"}) r.Add<MappingKernel<MapIterator>>({.op = op});
  for (const char* op : {"FilterDataset", "ParallelFilterDataset"}) r.Add<MappingKernel<FilterIterator>>({.op = op});
  for (const char* op : {"FlatMapDataset", "InterleaveDataset"}) {
    r.Add<InterleaveKernel>({.op = op});
  }
  r.Add<ReduceKernel>({.op = "ReduceDataset"});
}

}  // namespace millrace
