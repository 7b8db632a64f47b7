// SPDX-License-Identifier: Apache-2.0
// CPU kernels: lookup tables.
#include "kernel/device_env.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/state/lookup.h"
#include "kernels/cpu/state/lookup_table.h"

namespace millrace {
namespace {

class TableKernel : public ResourceKernel<LookupTable> {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(ResourceKernel::Init(init));
    MR_ASSIGN_OR_RETURN(types_.key, init.Attr<DType>("key_dtype"));
    MR_ASSIGN_OR_RETURN(types_.value, init.Attr<DType>("value_dtype"));
    if (!init.HasAttr("value_shape")) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const PartialShape shape, init.Attr<PartialShape>("value_shape"));
    MR_ASSIGN_OR_RETURN(types_.value_shape, shape.ToShape());
    return absl::OkStatus();
  }

 protected:
  absl::string_view TypeName() const final { return "LookupTable"; }
  bool IsSharedByNode(const KernelInit& init) const final {
    return init.Attr<bool>("use_node_name_sharing").value_or(false);
  }
  Status Verify(const LookupTable& table) const final {
    if (table.types().key == types_.key && table.types().value == types_.value) return absl::OkStatus();
    return InvalidArgument(
        "Conflicting key/value dtypes ", DTypeName(types_.key), "->", DTypeName(types_.value), " with ",
        DTypeName(table.types().key), "->", DTypeName(table.types().value), " for table ", name().name);
  }
  const TableTypes& types() const { return types_; }

 private:
  TableTypes types_;
};

class HashTableKernel final : public TableKernel {
  StatusOr<RefPtr<LookupTable>> Make(KernelContext&) override { return NewHashTable(types()); }
};

class MutableHashTableKernel final : public TableKernel {
  StatusOr<RefPtr<LookupTable>> Make(KernelContext&) override { return NewMutableHashTable(types()); }
};

class MutableHashTableOfTensorsKernel final : public TableKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(TableKernel::Init(init));
    if (types().value_shape.rank() == 1) return absl::OkStatus();
    return InvalidArgument("Default value must be a vector, got shape ", types().value_shape.ToString());
  }

 private:
  StatusOr<RefPtr<LookupTable>> Make(KernelContext&) override { return NewMutableHashTable(types()); }
};

class DenseHashTableKernel final : public TableKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(buckets_, init.Attr<int64_t>("initial_num_buckets"));
    MR_ASSIGN_OR_RETURN(max_load_, init.Attr<float>("max_load_factor"));
    return TableKernel::Init(init);
  }

 private:
  StatusOr<RefPtr<LookupTable>> Make(KernelContext& ctx) override {
    DenseTableOptions options{.buckets = buckets_, .max_load = max_load_};
    // What a client lent for the step must outlive it.
    MR_ASSIGN_OR_RETURN(options.empty_key, ctx.input(0).Clone());
    if (ctx.num_inputs() > 1) {
      MR_ASSIGN_OR_RETURN(options.deleted_key, ctx.input(1).Clone());
    }
    return NewDenseHashTable(types(), std::move(options));
  }

  int64_t buckets_ = 0;
  float max_load_ = 0;
};

Status CheckTypes(const LookupTable& table, DType key, DType value) {
  if (key == table.types().key && value == table.types().value) return absl::OkStatus();
  return InvalidArgument(
      "Conflicting key/value dtypes ", DTypeName(key), "->", DTypeName(value), " for ", table.DebugString());
}

// The shape of values for these keys: theirs without the end that a key has, then a value's.
StatusOr<Shape> ValuesShape(const LookupTable& table, const Shape& keys) {
  const absl::Span<const int64_t> dims = keys.dims();
  const absl::Span<const int64_t> key = table.types().key_shape.dims();
  if (dims.size() < key.size() || dims.subspan(dims.size() - key.size()) != key) {
    return InvalidArgument(
        "Input key shape ", keys.ToString(), " must end with that of a key, ", table.types().key_shape.ToString());
  }
  MR_ASSIGN_OR_RETURN(const Shape front, Shape::Make(dims.subspan(0, dims.size() - key.size())));
  return front.Concatenate(table.types().value_shape);
}

// Inputs 1 and 2 as keys and as values that fit the table.
Status CheckPairs(const KernelContext& ctx, const LookupTable& table) {
  MR_RETURN_IF_ERROR(CheckTypes(table, ctx.input_dtype(1), ctx.input_dtype(2)));
  MR_ASSIGN_OR_RETURN(const Shape wanted, ValuesShape(table, ctx.input(1).shape()));
  if (ctx.input(2).shape() == wanted) return absl::OkStatus();
  return InvalidArgument("Expected shape ", wanted.ToString(), " for values of keys of shape ",
                         ctx.input(1).shape().ToString(), ", got ", ctx.input(2).shape().ToString());
}

Status Find(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table, FindResource<LookupTable>(ctx, 0));
  const Tensor& keys = ctx.input(1);
  const Tensor& defaults = ctx.input(2);
  MR_RETURN_IF_ERROR(CheckTypes(*table, ctx.input_dtype(1), ctx.input_dtype(2)));
  MR_ASSIGN_OR_RETURN(const Shape shape, ValuesShape(*table, keys.shape()));
  const bool one_per_key = table->types().key_shape.IsScalar() && defaults.shape() == shape;
  if (defaults.shape() != table->types().value_shape && !one_per_key) {
    return InvalidArgument("Expected shape ", table->types().value_shape.ToString(), " for default value, got ",
                           defaults.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(0, shape));
  return table->Find(
      keys, defaults,
      [&ctx](int64_t n, double cost, absl::FunctionRef<void(int64_t, int64_t)> fn) { ctx.ParallelFor(n, cost, fn); },
      values);
}

Status Insert(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table, FindResource<LookupTable>(ctx, 0));
  MR_RETURN_IF_ERROR(CheckPairs(ctx, *table));
  return table->Insert(ctx.input(1), ctx.input(2));
}

Status Remove(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table, FindResource<LookupTable>(ctx, 0));
  MR_RETURN_IF_ERROR(CheckTypes(*table, ctx.input_dtype(1), table->types().value));
  MR_RETURN_IF_ERROR(ValuesShape(*table, ctx.input(1).shape()).status());
  return table->Remove(ctx.input(1));
}

// Whether these are buckets as a dense table exports them: a row each, of a scalar too.
bool AreBuckets(const LookupTable& table, const Tensor& keys, const Tensor& values) {
  return keys.rank() == 2 && values.rank() == 2 && keys.dim(0) == values.dim(0) &&
         keys.dim(1) == table.types().key_shape.num_elements() &&
         values.dim(1) == table.types().value_shape.num_elements();
}

Status Import(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table, FindResource<LookupTable>(ctx, 0));
  MR_RETURN_IF_ERROR(CheckTypes(*table, ctx.input_dtype(1), ctx.input_dtype(2)));
  if (!AreBuckets(*table, ctx.input(1), ctx.input(2))) MR_RETURN_IF_ERROR(CheckPairs(ctx, *table));
  return table->Import(ctx.input(1), ctx.input(2));
}

Status Initialize(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table, FindResource<LookupTable>(ctx, 0));
  if (ctx.input(1).rank() != 1) {
    return InvalidArgument("Keys must be a vector, but received shape ", ctx.input(1).shape().ToString());
  }
  if (ctx.input(1).num_elements() == 0) return InvalidArgument("keys and values cannot be empty tensors.");
  MR_RETURN_IF_ERROR(CheckPairs(ctx, *table));
  return table->Initialize(ctx.input(1), ctx.input(2));
}

Status Export(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table, FindResource<LookupTable>(ctx, 0));
  MR_RETURN_IF_ERROR(CheckTypes(*table, ctx.output_dtype(0), ctx.output_dtype(1)));
  return table->Export(ctx.mutable_output(0), ctx.mutable_output(1));
}

Status Size(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table, FindResource<LookupTable>(ctx, 0));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<int64_t>() = table->size();
  return absl::OkStatus();
}

class InitializeFromFileKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(columns_.key, init.Attr<int64_t>("key_index"));
    MR_ASSIGN_OR_RETURN(columns_.value, init.Attr<int64_t>("value_index"));
    MR_ASSIGN_OR_RETURN(columns_.vocab_size, init.Attr<int64_t>("vocab_size"));
    MR_ASSIGN_OR_RETURN(const std::string delimiter, init.Attr<std::string>("delimiter"));
    if (delimiter.size() != 1) return InvalidArgument("delimiter should be only 1 char, got \"", delimiter, "\"");
    columns_.delimiter = delimiter[0];
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table, FindResource<LookupTable>(ctx, 0));
    MR_RETURN_IF_ERROR(RequireScalar("filename", ctx.input(1)));
    const std::string path = ctx.input(1).data<TString>()->str();
    Tensor keys, values;
    MR_RETURN_IF_ERROR(ReadTableFile(EnvOf(ctx.device()), path, columns_, table->types(), &keys, &values));
    return Annotate(table->Initialize(keys, values), absl::StrCat(path, ": "));
  }

 private:
  TextFileColumns columns_;
};

}  // namespace

void RegisterLookupKernels(KernelRegistry& r) {
  const auto types = [](const char* values) {
    return std::vector<std::pair<std::string, std::vector<DType>>>{
        {"key_dtype", Types("i32|i64|str")}, {"value_dtype", Types(values)}};
  };
  for (const char* version : {"", "V2"}) {
    const auto named = [version](const char* op) { return absl::StrCat(op, version); };
    r.Add<HashTableKernel>({.op = named("HashTable"), .types = types("f32|f64|i32|i64|bool|str")});
    r.Add<MutableHashTableKernel>({.op = named("MutableHashTable"), .types = types("f32|f64|i32|i64|bool|str|var")});
    r.Add<MutableHashTableOfTensorsKernel>(
        {.op = named("MutableHashTableOfTensors"), .types = types("f32|f64|i32|i64|bool|str")});
    r.Add<DenseHashTableKernel>(
        {.op = named("MutableDenseHashTable"), .types = types("f32|f64|i32|i64|bool|str|res|var")});
    r.Add<InitializeFromFileKernel>({.op = named("InitializeTableFromTextFile")});
    r.AddFn({.op = named("InitializeTable")}, Initialize);
    r.AddFn({.op = named("LookupTableFind")}, Find);
    r.AddFn({.op = named("LookupTableInsert")}, Insert);
    r.AddFn({.op = named("LookupTableImport")}, Import);
    r.AddFn({.op = named("LookupTableExport")}, Export);
    r.AddFn({.op = named("LookupTableSize")}, Size);
  }
  r.AddFn({.op = "LookupTableRemoveV2"}, Remove);
}

}  // namespace millrace
