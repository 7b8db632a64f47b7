// SPDX-License-Identifier: Apache-2.0
// Data sets that functions of the graph generate: one makes a state, one gives an element from it each time it is
// called until it says OutOfRange, one puts the state away.
#include "kernels/cpu/data/dataset.h"
#include "kernels/cpu/data/dataset_wait.h"

namespace millrace {
namespace {

struct Generator {
  std::shared_ptr<FunctionAttr> first, next, last;
  Element first_captured, next_captured, last_captured;
};

// Runs `function` on `state`, to which it is bound by its types.
Status Call(FunctionAttr& function, const Element& captured, const Element& state, DataContext& ctx, Element* results) {
  std::vector<DType> types;
  for (const Tensor& t : state) types.push_back(t.dtype());
  MR_ASSIGN_OR_RETURN(const CapturedFunction bound, function.Bind(&ctx.cancellation, types, captured));
  return bound.Run(ctx, state, results);
}

class GeneratorDataset final : public Dataset {
 public:
  GeneratorDataset(ElementSpec spec, Generator generator)
      : Dataset(std::move(spec)), generator_(std::move(generator)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext& ctx) const override {
    return std::make_unique<Iterator>(ctx.env, RefPtr<const GeneratorDataset>::Share(this));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    Iterator(Env& env, RefPtr<const GeneratorDataset> d) : env_(env), dataset_(std::move(d)) {}
    ~Iterator() override {
      CancellationManager never;
      DataContext ctx{never, env_};
      Finish(ctx).IgnoreError();
    }
    StatusOr<bool> Next(DataContext& ctx, Element* element) override {
      const Generator& g = dataset_->generator_;
      if (finished_) return false;
      if (!begun_) {
        MR_RETURN_IF_ERROR(Call(*g.first, g.first_captured, {}, ctx, &state_));
        begun_ = true;
      }
      const Status s = Call(*g.next, g.next_captured, state_, ctx, element);
      if (absl::IsOutOfRange(s)) {
        MR_RETURN_IF_ERROR(Finish(ctx));
        return false;
      }
      MR_RETURN_IF_ERROR(s);
      MR_RETURN_IF_ERROR(CheckElement(dataset_->spec(), *element));
      return true;
    }

   private:
    Status Finish(DataContext& ctx) {
      if (!begun_ || finished_) return absl::OkStatus();
      finished_ = true;
      Element unused;
      return Call(*dataset_->generator_.last, dataset_->generator_.last_captured, state_, ctx, &unused);
    }

    Env& env_;
    const RefPtr<const GeneratorDataset> dataset_;
    Element state_;
    bool begun_ = false, finished_ = false;
  };
  const Generator generator_;
};

class GeneratorKernel final : public DatasetKernel, public UsesFunctions {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(first_->Init(init, "init_func"));
    MR_RETURN_IF_ERROR(next_->Init(init, "next_func"));
    MR_RETURN_IF_ERROR(last_->Init(init, "finalize_func"));
    return DatasetKernel::Init(init);
  }
  void SetFunctions(std::shared_ptr<FunctionSource> functions) override {
    for (const auto& f : {first_, next_, last_}) f->SetSource(functions);
  }

 private:
  std::shared_ptr<FunctionSource> functions() const override { return first_->source(); }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Generator g{first_, next_, last_, {}, {}, {}};
    MR_ASSIGN_OR_RETURN(g.first_captured, KeptInputs(ctx, "init_func_other_args"));
    MR_ASSIGN_OR_RETURN(g.next_captured, KeptInputs(ctx, "next_func_other_args"));
    MR_ASSIGN_OR_RETURN(g.last_captured, KeptInputs(ctx, "finalize_func_other_args"));
    return DatasetRef(MakeRef<GeneratorDataset>(spec(), std::move(g)));
  }

  // Shared with the data sets, which may outlive the kernel.
  const std::shared_ptr<FunctionAttr> first_ = std::make_shared<FunctionAttr>();
  const std::shared_ptr<FunctionAttr> next_ = std::make_shared<FunctionAttr>();
  const std::shared_ptr<FunctionAttr> last_ = std::make_shared<FunctionAttr>();
};

// A function of the rows of its arguments, one row after the other; the results are the rows of the outputs.
class MapDefunKernel final : public AsyncKernel, public UsesFunctions {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(arguments_, init.Attr<std::vector<DType>>("Targuments"));
    MR_ASSIGN_OR_RETURN(row_.types, init.Attr<std::vector<DType>>("output_types"));
    MR_ASSIGN_OR_RETURN(row_.shapes, init.Attr<std::vector<PartialShape>>("output_shapes"));
    return function_.Init(init, "f");
  }
  void SetFunctions(std::shared_ptr<FunctionSource> functions) override { function_.SetSource(std::move(functions)); }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ReadOnWaitingThread(ctx, std::move(done), [this, &ctx](DataContext& data) { return Map(ctx, data); });
  }

 private:
  Status Map(KernelContext& ctx, DataContext& data) {
    MR_ASSIGN_OR_RETURN(const Element arguments, KeptInputs(ctx, "arguments"));
    MR_ASSIGN_OR_RETURN(Element captured, KeptInputs(ctx, "captured_inputs"));
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].rank() == 0 || arguments[i].dim(0) != arguments[0].dim(0)) {
        return InvalidArgument("All inputs must have the same dimension 0; arguments[", i, "] has shape ",
                               arguments[i].shape().ToString(), ", arguments[0] ", arguments[0].shape().ToString());
      }
    }
    MR_ASSIGN_OR_RETURN(
        const CapturedFunction function, function_.Bind(&data.cancellation, arguments_, std::move(captured)));
    const int64_t n = arguments[0].dim(0);
    std::vector<Element> results;
    for (int64_t r = 0; r < n; ++r) {
      MR_RETURN_IF_ERROR(data.KeepGoing());
      Element row, result;
      for (const Tensor& t : arguments) {
        MR_ASSIGN_OR_RETURN(const Tensor one, t.Rows(r, r + 1));
        MR_ASSIGN_OR_RETURN(Tensor value, one.Reshaped(t.shape().WithoutDim(0)));
        MR_ASSIGN_OR_RETURN(value, value.Clone());  // rows lie anywhere; a copy lies as kernels like it
        row.push_back(std::move(value));
      }
      MR_RETURN_IF_ERROR(function.Run(data, std::move(row), &result));
      MR_RETURN_IF_ERROR(CheckElement(row_, result));
      results.push_back(std::move(result));
    }
    if (n == 0) return EmptyOutputs(ctx);
    MR_ASSIGN_OR_RETURN(Element stacked, StackElementRows(results, row_.types));
    for (size_t i = 0; i < stacked.size(); ++i) ctx.set_output(static_cast<int>(i), std::move(stacked[i]));
    return absl::OkStatus();
  }

  Status EmptyOutputs(KernelContext& ctx) const {
    for (size_t i = 0; i < row_.shapes.size(); ++i) {
      if (!row_.shapes[i].has_rank())
        return InvalidArgument("there are no rows, and output ", i, " has an unknown rank");
      std::vector<int64_t> dims = row_.shapes[i].dims();
      for (int64_t& d : dims) d = std::max<int64_t>(d, 0);
      dims.insert(dims.begin(), 0);
      MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(absl::Span<const int64_t>(dims)));
      MR_RETURN_IF_ERROR(ctx.AllocateOutput(static_cast<int>(i), shape).status());
    }
    return absl::OkStatus();
  }

  std::vector<DType> arguments_;
  ElementSpec row_;
  FunctionAttr function_;
};

}  // namespace

void RegisterDatasetGeneratorKernels(KernelRegistry& r) {
  r.Add<GeneratorKernel>({.op = "GeneratorDataset"});
  r.Add<MapDefunKernel>({.op = "MapDefun"});
}

}  // namespace millrace
