// SPDX-License-Identifier: Apache-2.0
// CPU kernels: Batch and BatchFunction, which let several steps fill one batch.
#include "kernels/cpu/dataflow/batch_kernels.h"

#include <atomic>
#include <utility>

#include "base/checked.h"
#include "kernel/device_env.h"
#include "kernel/step_function.h"
#include "kernels/cpu/dataflow/batch_queue.h"
#include "kernels/cpu/dataflow/queue_elements.h"

namespace millrace {
namespace {

// Ids tell the steps of this process apart.
int64_t NextId() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

StatusOr<std::vector<Tensor>> Kept(const KernelContext& ctx, absl::string_view arg) {
  const ArgRange range = ctx.input_arg(arg);
  std::vector<Tensor> kept;
  for (int i = range.begin; i < range.end; ++i) {
    kept.push_back(ctx.input(i));
    MR_RETURN_IF_ERROR(KeepBeyondStep(&kept.back()));
  }
  return kept;
}

// The base of both: finds the queue, and gives it the step's rows.
class BatchKernelBase : public AsyncKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(name_, ResourceNameOf(init));
    MR_ASSIGN_OR_RETURN(line_, init.Attr<std::string>("batching_queue"));
    MR_ASSIGN_OR_RETURN(options_.threads, init.Attr<int64_t>("num_batch_threads"));
    MR_ASSIGN_OR_RETURN(options_.max_batch_size, init.Attr<int64_t>("max_batch_size"));
    MR_ASSIGN_OR_RETURN(options_.max_batches, init.Attr<int64_t>("max_enqueued_batches"));
    MR_ASSIGN_OR_RETURN(const int64_t micros, init.Attr<int64_t>("batch_timeout_micros"));
    MR_ASSIGN_OR_RETURN(options_.sizes, init.Attr<std::vector<int64_t>>("allowed_batch_sizes"));
    for (const auto& [what, value] :
         {std::pair{"num_batch_threads", options_.threads}, std::pair{"max_batch_size", options_.max_batch_size},
          std::pair{"max_enqueued_batches", options_.max_batches}}) {
      if (value < 1) return InvalidArgument(what, " must be positive; was ", value);
    }
    if (micros < 0) return InvalidArgument("batch_timeout_micros must not be negative; was ", micros);
    options_.timeout = absl::Microseconds(micros);
    for (size_t i = 0; i < options_.sizes.size(); ++i) {
      if (options_.sizes[i] < 1) return InvalidArgument("allowed_batch_sizes entries must be positive");
      if (i > 0 && options_.sizes[i] <= options_.sizes[i - 1]) {
        return InvalidArgument("allowed_batch_sizes entries must be monotonically increasing");
      }
    }
    if (!options_.sizes.empty() && options_.sizes.back() != options_.max_batch_size) {
      return InvalidArgument("final entry in allowed_batch_sizes must equal max_batch_size");
    }
    return absl::OkStatus();
  }
  bool IsExpensive() const final { return false; }

  void ComputeAsync(KernelContext& ctx, DoneCallback done) final {
    auto task = std::make_shared<BatchQueue::Task>();
    StatusOr<RefPtr<BatchQueue>> queue = Prepare(ctx, *task);
    if (!queue.ok()) return std::move(done)(queue.status());
    if (const Status added = (*queue)->Add(line_, task); !added.ok()) return std::move(done)(added);
    const auto deliver = [&ctx](std::vector<Tensor> outputs) -> Status {
      if (static_cast<int>(outputs.size()) != ctx.num_outputs()) {
        return InvalidArgument("the batch has ", outputs.size(), " outputs, wanted ", ctx.num_outputs());
      }
      for (int i = 0; i < ctx.num_outputs(); ++i) {
        Tensor& output = outputs[static_cast<size_t>(i)];
        if (output.dtype() != ctx.output_dtype(i)) {
          return InvalidArgument("output ", i, " of the batch is ", DTypeName(output.dtype()), ", wanted ",
                                 DTypeName(ctx.output_dtype(i)));
        }
        ctx.set_output(i, std::move(output));
      }
      return absl::OkStatus();
    };
    (*queue)->WhenOver(std::move(task), deliver, ctx.step().cancellation, std::move(done));
  }

 protected:
  virtual StatusOr<BatchQueue::Work> WorkOf(KernelContext& ctx) = 0;

 private:
  StatusOr<RefPtr<BatchQueue>> Prepare(KernelContext& ctx, BatchQueue::Task& task) {
    MR_ASSIGN_OR_RETURN(task.inputs, Kept(ctx, "in_tensors"));
    for (const Tensor& input : task.inputs) {
      if (input.rank() == 0) return InvalidArgument("Batching input tensors must have at least one dimension");
      if (input.dim(0) != task.inputs.front().dim(0)) {
        return InvalidArgument(
            "Batching input tensors supplied in a given op invocation must have equal 0th-dimension size, got shapes ",
            task.inputs.front().shape().ToString(), " and ", input.shape().ToString());
      }
    }
    task.share = {NextId(), task.inputs.front().dim(0)};
    MR_ASSIGN_OR_RETURN(task.work, WorkOf(ctx));
    return ctx.resources().LookupOrCreate<BatchQueue>(
        name_.container, name_.name, [&] { return MakeRef<BatchQueue>(EnvOf(ctx.device()), name_.name, options_); });
  }

  ResourceName name_;
  std::string line_;
  BatchQueue::Options options_;
};

// The last task's step gets the batch and, for each task, a row [id, first row, row behind the last]; others get
// nothing of it.
StatusOr<std::vector<std::vector<Tensor>>> ToLast(CancellationManager&, std::vector<Tensor> batched,
                                                  const std::vector<BatchQueue::Share>& shares) {
  MR_ASSIGN_OR_RETURN(const Shape index_shape, Shape::Make({static_cast<int64_t>(shares.size()), 3}));
  MR_ASSIGN_OR_RETURN(Tensor index, Tensor::Make(DType::kInt64, index_shape));
  int64_t* row = index.mutable_data<int64_t>();
  int64_t at = 0;
  for (const BatchQueue::Share& share : shares) {
    *row++ = share.id;
    *row++ = at;
    *row++ = at += share.rows;
  }
  std::vector<Tensor> nothing;
  for (const Tensor& tensor : batched) {
    MR_ASSIGN_OR_RETURN(Tensor none, tensor.Rows(0, 0));
    nothing.push_back(std::move(none));
  }
  MR_ASSIGN_OR_RETURN(Tensor no_index, index.Rows(0, 0));
  nothing.push_back(std::move(no_index));
  batched.push_back(std::move(index));
  std::vector<std::vector<Tensor>> outputs(shares.size(), nothing);
  outputs.back() = std::move(batched);
  for (size_t i = 0; i < shares.size(); ++i) outputs[i].push_back(Tensor::Scalar(shares[i].id));
  return outputs;
}

class BatchKernel final : public BatchKernelBase {
  StatusOr<BatchQueue::Work> WorkOf(KernelContext&) override { return BatchQueue::Work(ToLast); }
};

// The rows of each task among those of the results, behind which may be those of the padding.
StatusOr<std::vector<std::vector<Tensor>>> SplitResults(
    const std::vector<Tensor>& results, int64_t rows, const std::vector<BatchQueue::Share>& shares) {
  std::vector<std::vector<Tensor>> outputs(shares.size());
  for (const Tensor& result : results) {
    if (result.rank() == 0) return FailedPrecondition("Batched output tensor has 0 dimensions");
    if (result.dim(0) != rows) {
      return FailedPrecondition(
          "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the input "
          "tensors: ",
          result.dim(0), ", not ", rows);
    }
    int64_t at = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      MR_ASSIGN_OR_RETURN(Tensor part, result.Rows(at, at + shares[i].rows));
      outputs[i].push_back(std::move(part));
      at += shares[i].rows;
    }
  }
  return outputs;
}

class BatchFunctionKernel final : public BatchKernelBase, public UsesFunctions {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(function_, init.Attr<FuncAttr>("f"));
    argument_types_ = init.signature.input_types;
    return BatchKernelBase::Init(init);
  }
  void SetFunctions(std::shared_ptr<FunctionSource> functions) override { source_ = std::move(functions); }

 private:
  StatusOr<BatchQueue::Work> WorkOf(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<StepFunction> function, Compiled(*ctx.step().cancellation));
    MR_ASSIGN_OR_RETURN(const std::vector<Tensor> captured, Kept(ctx, "captured_tensors"));
    return BatchQueue::Work(
        [function, captured](
            CancellationManager& cancellation, std::vector<Tensor> batched,
            const std::vector<BatchQueue::Share>& shares) -> StatusOr<std::vector<std::vector<Tensor>>> {
          const int64_t rows = batched.front().dim(0);
          std::vector<Tensor> arguments = std::move(batched), results;
          arguments.insert(arguments.end(), captured.begin(), captured.end());
          MR_RETURN_IF_ERROR(function->Run(arguments, {cancellation}, &results));
          return SplitResults(results, rows, shares);
        });
  }

  StatusOr<RefPtr<StepFunction>> Compiled(CancellationManager& cancellation) {
    if (!source_) return Unimplemented("function '", function_.name, "' cannot be run here");
    absl::MutexLock lock(&mu_);
    if (!compiled_) {
      MR_ASSIGN_OR_RETURN(compiled_, source_->Compile(function_, argument_types_, cancellation));
    }
    return compiled_;
  }

  FuncAttr function_;
  std::vector<DType> argument_types_;
  std::shared_ptr<FunctionSource> source_;
  absl::Mutex mu_;
  RefPtr<StepFunction> compiled_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

void RegisterBatchKernels(KernelRegistry& r) {
  r.Add<BatchKernel>({.op = "Batch"});
  r.Add<BatchFunctionKernel>({.op = "BatchFunction"});
  RegisterUnbatchKernels(r);
}

}  // namespace millrace
