// SPDX-License-Identifier: Apache-2.0
// CPU kernels: checkpoints and the strings that name them.
#include "absl/strings/str_format.h"
#include "base/env.h"
#include "io/bundle_writer.h"
#include "io/checkpoint_reader.h"
#include "io/v1_writer.h"
#include "kernel/device_env.h"
#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/state/remap_kernels.h"

namespace millrace {
namespace {

StatusOr<std::string> OneString(const KernelContext& ctx, int i, absl::string_view what) {
  const Tensor& t = ctx.input(i);
  if (t.num_elements() != 1) return InvalidArgument(what, " must be a scalar, got shape ", t.shape().ToString());
  return t.data<TString>()->str();
}

StatusOr<absl::Span<const TString>> Strings(const KernelContext& ctx, int i, int n, absl::string_view what) {
  const Tensor& t = ctx.input(i);
  if (t.rank() != 1 || t.dim(0) != n) {
    return InvalidArgument(what, " must be a vector of ", n, " strings, got shape ", t.shape().ToString());
  }
  return t.flat<TString>();
}

Status SaveV2(KernelContext& ctx) {
  const int n = ctx.num_inputs() - 3;
  MR_ASSIGN_OR_RETURN(const std::string prefix, OneString(ctx, 0, "prefix"));
  MR_ASSIGN_OR_RETURN(const auto names, Strings(ctx, 1, n, "tensor_names"));
  MR_ASSIGN_OR_RETURN(const auto slices, Strings(ctx, 2, n, "shape_and_slices"));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<BundleWriter> writer, BundleWriter::Open(EnvOf(ctx.device()), prefix));
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<size_t>(i);
    const Tensor& tensor = ctx.input(3 + i);
    if (slices[k].empty()) {
      MR_RETURN_IF_ERROR(writer->Add(names[k].str(), tensor));
      continue;
    }
    MR_ASSIGN_OR_RETURN(const ShapeAndSlice part, ParseShapeAndSlice(slices[k]));
    MR_RETURN_IF_ERROR(writer->AddSlice(names[k].str(), part.full, part.slice, tensor));
  }
  return writer->Finish();
}

StatusOr<Tensor> RestoreOne(const CheckpointReader& reader, const std::string& name, absl::string_view slice,
                            DType dtype) {
  MR_ASSIGN_OR_RETURN(const CheckpointReader::Info info, reader.Lookup(name));
  if (info.dtype != dtype) {
    return InvalidArgument(
        "tensor ", name, " is ", DTypeName(info.dtype), " in the checkpoint, wanted is ", DTypeName(dtype));
  }
  if (slice.empty()) return reader.Read(name);
  MR_ASSIGN_OR_RETURN(const ShapeAndSlice part, ParseShapeAndSlice(slice));
  if (part.full != info.shape) {
    return InvalidArgument(
        "tensor ", name, " has shape ", info.shape.ToString(), " in the checkpoint, wanted is ", part.full.ToString());
  }
  return reader.ReadSlice(name, part.slice);
}

Status RestoreV2(KernelContext& ctx) {
  const int n = ctx.num_outputs();
  MR_ASSIGN_OR_RETURN(const std::string prefix, OneString(ctx, 0, "prefix"));
  MR_ASSIGN_OR_RETURN(const auto names, Strings(ctx, 1, n, "tensor_names"));
  MR_ASSIGN_OR_RETURN(const auto slices, Strings(ctx, 2, n, "shape_and_slices"));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader, OpenCheckpoint(EnvOf(ctx.device()), prefix));
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<size_t>(i);
    MR_ASSIGN_OR_RETURN(Tensor value, RestoreOne(*reader, names[k].str(), slices[k], ctx.output_dtype(i)));
    ctx.set_output(i, std::move(value));
  }
  return absl::OkStatus();
}

// SaveSlices has the slices as input 2.
template <bool kSlices>
Status SaveV1(KernelContext& ctx) {
  constexpr int kFirst = kSlices ? 3 : 2;
  const int n = ctx.num_inputs() - kFirst;
  MR_ASSIGN_OR_RETURN(const std::string path, OneString(ctx, 0, "filename"));
  MR_ASSIGN_OR_RETURN(const auto names, Strings(ctx, 1, n, "tensor_names"));
  absl::Span<const TString> slices;
  if (kSlices) {
    MR_ASSIGN_OR_RETURN(slices, Strings(ctx, 2, n, "shapes_and_slices"));
  }
  V1Writer writer(EnvOf(ctx.device()), path);
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<size_t>(i);
    const Tensor& tensor = ctx.input(kFirst + i);
    ShapeAndSlice part{tensor.shape(), TensorSlice::Full(tensor.rank()), tensor.shape()};
    if (kSlices && !slices[k].empty()) {
      MR_ASSIGN_OR_RETURN(part, ParseShapeAndSlice(slices[k]));
    }
    MR_RETURN_IF_ERROR(writer.Add(names[k].str(), part.full, part.slice, tensor));
  }
  return writer.Finish();
}

// RestoreSlice has the slice as input 2.
template <bool kSlice>
Status RestoreV1(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const std::string pattern, OneString(ctx, 0, "file_pattern"));
  MR_ASSIGN_OR_RETURN(const std::string name, OneString(ctx, 1, "tensor_name"));
  std::string slice;
  if (kSlice) {
    MR_ASSIGN_OR_RETURN(slice, OneString(ctx, 2, "shape_and_slice"));
  }
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader, OpenCheckpoint(EnvOf(ctx.device()), pattern));
  MR_ASSIGN_OR_RETURN(Tensor value, RestoreOne(*reader, name, slice, ctx.output_dtype(0)));
  ctx.set_output(0, std::move(value));
  return absl::OkStatus();
}

class MergeV2CheckpointsKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(delete_old_, init.Attr<bool>("delete_old_dirs"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const std::string destination, OneString(ctx, 1, "destination_prefix"));
    if (ctx.input(0).rank() != 1) return InvalidArgument("checkpoint_prefixes must be a vector");
    if (ctx.input(0).num_elements() == 0) return InvalidArgument("checkpoint_prefixes must name at least one file");
    std::vector<std::string> prefixes;
    for (const TString& s : ctx.input(0).flat<TString>()) prefixes.push_back(s.str());
    return MergeBundles(EnvOf(ctx.device()), prefixes, destination, delete_old_);
  }

 private:
  bool delete_old_ = true;
};

Status ShardedFilename(KernelContext& ctx) {
  for (int i = 0; i < 3; ++i) {
    if (ctx.input(i).rank() != 0) return InvalidArgument("each of basename, shard and num_shards must be a scalar");
  }
  MR_ASSIGN_OR_RETURN(const std::string base, OneString(ctx, 0, "basename"));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<TString>() =
      absl::StrFormat("%s-%05d-of-%05d", base, *ctx.input(1).data<int32_t>(), *ctx.input(2).data<int32_t>());
  return absl::OkStatus();
}

Status ShardedFilespec(KernelContext& ctx) {
  if (ctx.input(0).rank() != 0 || ctx.input(1).rank() != 0) {
    return InvalidArgument("each of basename and num_shards must be a scalar");
  }
  MR_ASSIGN_OR_RETURN(const std::string base, OneString(ctx, 0, "basename"));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<TString>() =
      absl::StrFormat("%s-%s-of-%05d", base, std::string(5, '?'), *ctx.input(1).data<int32_t>());
  return absl::OkStatus();
}

class StringJoinKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(separator_, init.Attr<std::string>("separator"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    Shape shape;
    bool has_shape = false;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Shape& s = ctx.input(i).shape();
      if (s.IsScalar()) continue;
      if (has_shape && s != shape) {
        return InvalidArgument("strings to join have shapes ", shape.ToString(), " and ", s.ToString());
      }
      shape = s;
      has_shape = true;
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    TString* to = out->mutable_data<TString>();
    ctx.ParallelFor(shape.num_elements(), 60 * (1 + ctx.num_inputs()), [&](int64_t begin, int64_t end) {
      std::string joined;
      for (int64_t e = begin; e < end; ++e) {
        joined.clear();
        for (int i = 0; i < ctx.num_inputs(); ++i) {
          if (i > 0) joined += separator_;
          const Tensor& t = ctx.input(i);
          absl::StrAppend(&joined, t.data<TString>()[t.shape().IsScalar() ? 0 : e].view());
        }
        to[e] = joined;
      }
    });
    return absl::OkStatus();
  }

 private:
  std::string separator_;
};

}  // namespace

void RegisterIoKernels(KernelRegistry& registry) {
  registry.AddFn({.op = "SaveV2"}, SaveV2);
  registry.AddFn({.op = "RestoreV2"}, RestoreV2);
  registry.AddFn({.op = "Save"}, SaveV1<false>);
  registry.AddFn({.op = "SaveSlices"}, SaveV1<true>);
  registry.AddFn({.op = "Restore"}, RestoreV1<false>);
  registry.AddFn({.op = "RestoreSlice"}, RestoreV1<true>);
  registry.AddFn({.op = "ShardedFilespec"}, ShardedFilespec);
  registry.Add<MergeV2CheckpointsKernel>({.op = "MergeV2Checkpoints"});
  registry.AddFn({.op = "ShardedFilename"}, ShardedFilename);
  registry.Add<StringJoinKernel>({.op = "StringJoin"});
  RegisterRemapKernels(registry);
}

}  // namespace millrace
