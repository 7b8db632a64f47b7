// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/data/dataset.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

#include "kernels/cpu/dataflow/queue_elements.h"
#include "kernels/cpu/engine/resource_handle.h"

namespace millrace {

StatusOr<DatasetRef> DatasetOf(const Tensor& variant, absl::string_view what) {
  if (variant.dtype() != DType::kVariant || variant.rank() != 0) {
    return InvalidArgument(
        what, " must be a scalar of dtype variant, got ", DTypeName(variant.dtype()), variant.shape().ToString());
  }
  const auto* dataset = variant.data<Variant>()->As<Dataset>();
  if (dataset == nullptr) return InvalidArgument(what, " is a variant that holds no data set");
  return DatasetRef::Share(dataset);
}

Tensor TensorOf(DatasetRef dataset) {
  auto tensor = Tensor::Make(DType::kVariant, Shape());
  if (!tensor.ok()) return Tensor();
  Dataset* value = const_cast<Dataset*>(dataset.get());  // a variant gives it out as const
  *tensor->mutable_data<Variant>() = Variant(RefPtr<VariantValue>::Share(value));
  return *std::move(tensor);
}

Status CheckSpec(const ElementSpec& want, const ElementSpec& got) {
  if (want.types.size() != got.types.size()) {
    return InvalidArgument(
        "Number of components does not match: expected ", want.types.size(), " types but got ", got.types.size(), ".");
  }
  for (size_t i = 0; i < want.types.size(); ++i) {
    if (want.types[i] != got.types[i]) {
      return InvalidArgument("Data type mismatch at component ", i, ": expected ", DTypeName(want.types[i]),
                             " but got ", DTypeName(got.types[i]), ".");
    }
    if (i >= want.shapes.size() || i >= got.shapes.size()) continue;
    if (!want.shapes[i].Merge(got.shapes[i]).ok()) {
      return InvalidArgument("Incompatible shapes at component ", i, ": expected ", want.shapes[i].ToString(),
                             " but got ", got.shapes[i].ToString(), ".");
    }
  }
  return absl::OkStatus();
}

Status CheckElement(const ElementSpec& want, const Element& got) {
  ElementSpec spec;
  for (const Tensor& t : got) {
    spec.types.push_back(t.dtype());
    spec.shapes.emplace_back(t.shape());
  }
  return CheckSpec(want, spec);
}

namespace {

// Row i of `to`, which is as large as `from`. Objects.
void SetRow(Tensor& from, int64_t i, Tensor* to) {
  const int64_t n = from.num_elements();
  const auto assign = [&]<typename T>(T*) {
    const T* source = from.data<T>();
    T* target = to->mutable_data<T>() + i * n;
    for (int64_t k = 0; k < n; ++k) target[k] = source[k];
  };
  switch (from.dtype()) {
    case DType::kString: return assign(static_cast<TString*>(nullptr));
    case DType::kVariant: return assign(static_cast<Variant*>(nullptr));
    case DType::kResource: return assign(static_cast<ResourceHandle*>(nullptr));
    default: return;
  }
}

}  // namespace

namespace {

// Copies, and asks for the same part of a later row. The processor fetches long rows ahead by itself.
void CopyRow(char* to, const char* from, const char* later, size_t bytes) {
  constexpr size_t kLine = 64, kLong = 8192;
  if (bytes > kLong) {
    for (size_t i = 0; i < 8 * kLine; i += kLine) __builtin_prefetch(later + i);
    std::memcpy(to, from, bytes);
    return;
  }
  size_t i = 0;
  for (; i + kLine <= bytes; i += kLine) {
    __builtin_prefetch(later + i);
    std::memcpy(to + i, from + i, kLine);
  }
  if (i == bytes) return;
  __builtin_prefetch(later + i);
  std::memcpy(to + i, from + i, bytes - i);
}

// The rows of plain numbers, here and there in memory: while one is copied, one that comes after it is on its way.
void CopyRows(const std::vector<Element>& elements, size_t c, Tensor* stacked) {
  const size_t rows = elements.size();
  if (stacked->num_elements() == 0) return;
  constexpr size_t kOnTheirWay = 8192, kMostAhead = 16;
  const size_t bytes = stacked->TotalBytes() / rows;
  const size_t ahead = std::clamp<size_t>(kOnTheirWay / bytes, 2, kMostAhead);
  const auto row = [&](size_t i) { return static_cast<const char*>(elements[std::min(i, rows - 1)][c].raw()); };
  char* to = static_cast<char*>(stacked->mutable_raw());
  for (size_t i = 1; i < ahead; ++i) __builtin_prefetch(row(i));
  for (size_t i = 0; i < rows; ++i, to += bytes) CopyRow(to, row(i), row(i + ahead), bytes);
}

}  // namespace

Status OwnMemory(Element* element) {
  for (Tensor& t : *element) {
    if (t.buffer() == nullptr || t.TotalBytes() >= t.buffer()->size()) continue;
    MR_ASSIGN_OR_RETURN(t, t.Clone());
  }
  return absl::OkStatus();
}

Status OutputElement(KernelContext& ctx, const ElementSpec& spec, Element element) {
  MR_RETURN_IF_ERROR(CheckElement(spec, element));
  MR_RETURN_IF_ERROR(OwnMemory(&element));
  for (size_t i = 0; i < element.size(); ++i) ctx.set_output(static_cast<int>(i), std::move(element[i]));
  return absl::OkStatus();
}

StatusOr<Element> StackElementRows(std::vector<Element>& elements, const std::vector<DType>& types) {
  Element batch;
  const int64_t rows = static_cast<int64_t>(elements.size());
  for (size_t c = 0; c < types.size(); ++c) {
    for (size_t i = 0; i < elements.size(); ++i) {
      const Element& e = elements[i];
      if (e.size() != types.size()) return InvalidArgument("an element has ", e.size(), " components");
      if (e[c].dtype() != types[c] || e[c].shape() != elements.front()[c].shape()) {
        return InvalidArgument(
            "Cannot batch tensors with different shapes in component ", c, ". First element had shape ",
            elements.front()[c].shape().ToString(), " and element ", i, " had shape ", e[c].shape().ToString(), ".");
      }
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, (rows > 0 ? elements.front()[c].shape() : Shape()).WithInserted(0, rows));
    MR_ASSIGN_OR_RETURN(Tensor stacked, Tensor::Make(types[c], shape));
    if (IsPlain(types[c])) {
      CopyRows(elements, c, &stacked);
    } else {
      for (int64_t i = 0; i < rows; ++i) SetRow(elements[static_cast<size_t>(i)][c], i, &stacked);
    }
    batch.push_back(std::move(stacked));
  }
  return batch;
}

Status CapturedFunction::Run(DataContext& ctx, Element args, Element* results) const {
  MR_RETURN_IF_ERROR(OwnMemory(&args));
  args.insert(args.end(), captured_.begin(), captured_.end());
  Status s = function_->Run(args, {ctx.cancellation, ctx.inter_op_threads, ctx.trace}, results);
  return !s.ok() && ctx.cancellation.IsCancelled() ? Cancelled(s.message()) : s;
}

Status DatasetKernel::Init(const KernelInit& init) {
  op_ = std::make_shared<const DatasetOrigin::Op>(DatasetOrigin::Op{init.op.name, init.attrs});
  for (const char* name : {"output_types", "Toutput_types"}) {
    if (!init.HasAttr(name)) continue;
    MR_ASSIGN_OR_RETURN(spec_.types, init.Attr<std::vector<DType>>(name));
  }
  if (init.HasAttr("output_shapes")) {
    MR_ASSIGN_OR_RETURN(spec_.shapes, init.Attr<std::vector<PartialShape>>("output_shapes"));
    if (spec_.shapes.size() != spec_.types.size()) {
      return InvalidArgument(
          "there are ", spec_.types.size(), " output_types, but ", spec_.shapes.size(), " output_shapes");
    }
  }
  return absl::OkStatus();
}

namespace {

// Those among the inputs, captured ones too.
template <typename Visit>
void ForEachDataset(const KernelContext& ctx, Visit visit) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Tensor& t = ctx.input(i);
    if (t.dtype() != DType::kVariant) continue;
    for (int64_t k = 0; k < t.num_elements(); ++k) {
      const auto* dataset = t.data<Variant>()[k].As<Dataset>();
      if (dataset != nullptr) visit(*dataset);
    }
  }
}

// Of the highest of them.
int HeightOfInputs(const KernelContext& ctx) {
  int height = 0;
  ForEachDataset(ctx, [&](const Dataset& input) { height = std::max(height, input.height()); });
  return height;
}

// As pipelines are told by: of MapDataset "Map".
std::string TransformationName(absl::string_view op) {
  absl::ConsumePrefix(&op, "Experimental");
  return absl::StrReplaceAll(op, {{"Dataset", ""}});
}

// The inputs, if keeping them beyond the step copies little; else nothing.
std::unique_ptr<DatasetOrigin> OriginOf(const KernelContext& ctx, std::shared_ptr<const DatasetOrigin::Op> op,
                                        std::shared_ptr<FunctionSource> functions) {
  constexpr size_t kMostCopied = 64 << 10;
  auto origin = std::make_unique<DatasetOrigin>();
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    Tensor t = ctx.input(i);
    const bool is_lent = t.buffer() != nullptr && !t.buffer()->writable();
    if (is_lent && t.TotalBytes() > kMostCopied) return nullptr;
    if (!KeepBeyondStep(&t).ok()) return nullptr;
    origin->inputs.push_back(std::move(t));
  }
  origin->op = std::move(op);
  origin->functions = std::move(functions);
  return origin;
}

}  // namespace

StatusOr<std::vector<NextAssertion>> DatasetKernel::Assertions(const KernelContext& ctx) const {
  std::vector<NextAssertion> all;
  ForEachDataset(ctx, [&](const Dataset& input) {
    for (const NextAssertion& a : input.assertions()) {
      all.push_back(a);
      if (a.found.size() < a.wanted.size()) all.back().found.push_back(TransformationName(op_->name));
    }
  });
  return all;
}

Status CheckAssertions(const Dataset& last) {
  for (const auto& [wanted, found] : last.assertions()) {
    if (wanted.size() > found.size()) {
      return InvalidArgument(
          "Asserted next ", wanted.size(), " transformations but encountered only ", found.size(), ".");
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] == found[i]) continue;
      return InvalidArgument("Asserted ", wanted[i], " transformation at offset ", i, " but encountered ", found[i],
                             " transformation instead.");
    }
  }
  return absl::OkStatus();
}

Status DatasetKernel::Compute(KernelContext& ctx) {
  if (op_ == nullptr) return Internal("a kernel of a data set has an Init without DatasetKernel::Init");
  const int height = 1 + HeightOfInputs(ctx);
  if (height > Dataset::kMaxHeight) {
    return ResourceExhausted("more than ", Dataset::kMaxHeight, " data sets lie one over the other");
  }
  std::unique_ptr<DatasetOrigin> origin = OriginOf(ctx, op_, functions());
  MR_ASSIGN_OR_RETURN(std::vector<NextAssertion> assertions, Assertions(ctx));
  MR_ASSIGN_OR_RETURN(DatasetRef dataset, Make(ctx));
  if (dataset->HasOneRef()) {  // else it is an input, which is passed on
    auto* made = const_cast<Dataset*>(dataset.get());
    made->height_ = height;
    made->assertions_ = std::move(assertions);
    if (origin) {
      origin->given = origin->inputs;
      made->SetDrawnInputs(&origin->inputs);
    }
    made->origin_ = std::move(origin);
  }
  Tensor handle = TensorOf(std::move(dataset));
  if (!handle.IsInitialized()) return ResourceExhausted("no memory for a data set");
  ctx.set_output(0, std::move(handle));
  return absl::OkStatus();
}

Status FunctionAttr::Init(const KernelInit& init, absl::string_view attr) {
  MR_ASSIGN_OR_RETURN(attr_, init.Attr<FuncAttr>(attr));
  return absl::OkStatus();
}

// Compiled outside of the lock, perhaps by several at once: the first that is kept is everybody's.
StatusOr<CapturedFunction> FunctionAttr::Bind(CancellationManager* cancellation, const std::vector<DType>& arg_types,
                                              Element captured) {
  if (!source_ || cancellation == nullptr) return Unimplemented("function '", attr_.name, "' cannot be run here");
  std::vector<DType> types = arg_types;
  for (const Tensor& t : captured) types.push_back(t.dtype());
  // A data set that is made again begins with functions that remember nothing, as does every step that makes one.
  const auto may_share = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return compiled_ && compiled_for_ == types && (!compiled_->KeepsState() || source_->IsInsideFunction());
  };
  {
    absl::MutexLock lock(&mu_);
    if (may_share()) return CapturedFunction(compiled_, std::move(captured));
  }
  MR_ASSIGN_OR_RETURN(RefPtr<StepFunction> made, source_->Compile(attr_, types, *cancellation));
  absl::MutexLock lock(&mu_);
  if (!may_share()) {
    compiled_ = std::move(made);
    compiled_for_ = std::move(types);
  }
  return CapturedFunction(compiled_, std::move(captured));
}

StatusOr<Element> KeptInputs(const KernelContext& ctx, absl::string_view arg) {
  const ArgRange range = ctx.input_arg(arg);
  Element kept;
  for (int i = range.begin; i < range.end; ++i) {
    kept.push_back(ctx.input(i));
    MR_RETURN_IF_ERROR(KeepBeyondStep(&kept.back()));
  }
  return kept;
}

StatusOr<int64_t> ScalarInput(const KernelContext& ctx, int i, absl::string_view what) {
  const Tensor& t = ctx.input(i);
  if (t.rank() != 0) return InvalidArgument(what, " must be a scalar, got shape ", t.shape().ToString());
  return t.IntScalar();
}

StatusOr<bool> FlagInput(const KernelContext& ctx, int i, absl::string_view what) {
  if (ctx.input(i).rank() != 0) return InvalidArgument(what, " must be a scalar");
  return *ctx.input(i).data<bool>();
}

Status OutputAnonymous(KernelContext& ctx, absl::string_view type_name, RefPtr<Resource> resource) {
  static std::atomic<int64_t> serial{0};
  const ResourceName name{
      ResourceManager::kDefaultContainer, absl::StrCat("_anonymous_", serial.fetch_add(1, std::memory_order_relaxed))};
  MR_RETURN_IF_ERROR(OutputHandle(ctx, 0, name, type_name, std::move(resource)));
  return ctx.num_outputs() < 2 ? absl::OkStatus() : ctx.AllocateOutput(1, Shape()).status();
}

void RegisterDatasetKernels(KernelRegistry& registry) {
  RegisterDatasetSourceKernels(registry);
  RegisterDatasetSequenceKernels(registry);
  RegisterDatasetBatchKernels(registry);
  RegisterDatasetShuffleKernels(registry);
  RegisterDatasetFunctionKernels(registry);
  RegisterDatasetPrefetchKernels(registry);
  RegisterDatasetIteratorKernels(registry);
  RegisterSavedIteratorKernels(registry);
  RegisterDatasetCacheKernels(registry);
  RegisterDatasetDeviceKernels(registry);
  RegisterDatasetGeneratorKernels(registry);
  RegisterDatasetStatefulKernels(registry);
  RegisterDatasetRowKernels(registry);
  RegisterDatasetReducerKernels(registry);
  RegisterDatasetHintKernels(registry);
  RegisterDatasetFileKernels(registry);
  RegisterDatasetStatsKernels(registry);
  RegisterDatasetCsvKernels(registry);
  RegisterDatasetMapAndBatchKernels(registry);
  RegisterDatasetParallelInterleaveKernels(registry);
  RegisterDatasetCardinalityKernels(registry);
  RegisterDatasetAutoShardKernels(registry);
  RegisterDatasetBranchKernels(registry);
  RegisterDatasetSnapshotKernels(registry);
}

}  // namespace millrace
