// SPDX-License-Identifier: Apache-2.0
// CPU kernels: what a model that learned with one vocabulary brings to another one: which lines both have, and the rows
// and columns of a matrix in their new places.
#include "kernels/cpu/state/remap_kernels.h"

#include "absl/strings/str_split.h"
#include "base/checked.h"
#include "base/env.h"
#include "base/hash_map.h"
#include "base/stop_scope.h"
#include "io/checkpoint_reader.h"
#include "kernel/device_env.h"

namespace millrace {
namespace {

StatusOr<std::string> ScalarString(const KernelContext& ctx, int i, absl::string_view what) {
  const Tensor& t = ctx.input(i);
  if (t.rank() != 0) return InvalidArgument(what, " should be a single string, but got ", t.shape().ToString());
  if (t.data<TString>()->view().empty()) return InvalidArgument(what, " must not be empty");
  return t.data<TString>()->str();
}

StatusOr<std::vector<std::string>> LinesOf(Env& env, const std::string& path) {
  MR_ASSIGN_OR_RETURN(const std::string text, env.ReadFile(path));
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (std::string& line : lines) {
    if (line.ends_with('\r')) line.pop_back();
  }
  return lines;
}

class VocabularyKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(first_, init.Attr<int64_t>("new_vocab_offset"));
    MR_ASSIGN_OR_RETURN(count_, init.Attr<int64_t>("num_new_vocab"));
    MR_ASSIGN_OR_RETURN(old_size_, init.Attr<int64_t>("old_vocab_size"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const std::string new_path, ScalarString(ctx, 0, "new_vocab_file"));
    MR_ASSIGN_OR_RETURN(const std::string old_path, ScalarString(ctx, 1, "old_vocab_file"));
    MR_ASSIGN_OR_RETURN(const std::vector<std::string> fresh, LinesOf(EnvOf(ctx.device()), new_path));
    MR_ASSIGN_OR_RETURN(std::vector<std::string> old, LinesOf(EnvOf(ctx.device()), old_path));
    const auto lines = static_cast<int64_t>(fresh.size());
    if (count_ > lines || first_ > lines - count_) {
      return InvalidArgument("file ", new_path, " has ", lines, " lines, wanted are ", count_, " from line ", first_);
    }
    if (old_size_ >= 0 && old_size_ > static_cast<int64_t>(old.size())) {
      return InvalidArgument("file ", old_path, " has ", old.size(), " lines, old_vocab_size is ", old_size_);
    }
    if (old_size_ >= 0) old.resize(static_cast<size_t>(old_size_));
    StopNowAndThen pause;
    HashMap<absl::string_view, int64_t> places;
    for (size_t i = 0; i < old.size(); ++i) {
      pause();
      if (!places.emplace(old[i], static_cast<int64_t>(i)).second) {
        return FailedPrecondition("line ", i, " of ", old_path, " is there before: '", old[i], "'");
      }
    }
    MR_ASSIGN_OR_RETURN(Tensor * remapping, ctx.AllocateOutput(0, Shape::Vector(count_)));
    MR_ASSIGN_OR_RETURN(Tensor * present, ctx.AllocateOutput(1, Shape()));
    int32_t found = 0;
    for (int64_t i = 0; i < count_; ++i) {
      pause();
      const auto it = places.find(fresh[static_cast<size_t>(first_ + i)]);
      remapping->mutable_data<int64_t>()[i] = it == places.end() ? -1 : it->second;
      found += it != places.end();
    }
    *present->mutable_data<int32_t>() = found;
    return absl::OkStatus();
  }

 private:
  int64_t first_ = 0, count_ = 0, old_size_ = -1;
};

// New places by old ones. An old place may be wanted once.
StatusOr<HashMap<int64_t, int64_t>> NewPlaces(absl::string_view what, absl::Span<const int64_t> old) {
  HashMap<int64_t, int64_t> places;
  StopNowAndThen pause;
  for (size_t i = 0; i < old.size(); ++i) {
    pause();
    if (old[i] < 0) continue;
    const auto [it, is_new] = places.emplace(old[i], static_cast<int64_t>(i));
    if (!is_new) {
      return Unimplemented(
          what, " has ", old[i], " at ", it->second, " and at ", i, "; each old place can be taken once");
    }
  }
  return places;
}

class RemapKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(rows_, init.Attr<int64_t>("num_rows"));
    MR_ASSIGN_OR_RETURN(columns_, init.Attr<int64_t>("num_cols"));
    MR_ASSIGN_OR_RETURN(most_, init.Attr<int64_t>("max_rows_in_memory"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const absl::Span<const int64_t> rows, Remapping(ctx, 2, "row_remapping"));
    MR_ASSIGN_OR_RETURN(const absl::Span<const int64_t> columns, Remapping(ctx, 3, "col_remapping"));
    if (static_cast<int64_t>(rows.size()) != rows_) {
      return InvalidArgument("Size of row_remapping is ", rows.size(), " instead of being equal to num_rows=", rows_);
    }
    if (!columns.empty() && static_cast<int64_t>(columns.size()) != columns_) {
      return InvalidArgument(
          "Provided col_remapping, but its size is ", columns.size(), " instead of being equal to num_cols=", columns_);
    }
    MR_ASSIGN_OR_RETURN(const auto row_places, NewPlaces("row_remapping", rows));
    MR_RETURN_IF_ERROR(NewPlaces("col_remapping", columns).status());
    if (ctx.input(0).num_elements() != 1) return InvalidArgument("ckpt_path must name one checkpoint");
    MR_ASSIGN_OR_RETURN(const std::string name, ScalarString(ctx, 1, "old_tensor_name"));
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                        OpenCheckpoint(EnvOf(ctx.device()), ctx.input(0).data<TString>()->str()));
    MR_ASSIGN_OR_RETURN(const CheckpointReader::Info info, reader->Lookup(name));
    if (info.dtype != DType::kFloat || info.shape.rank() != 2) {
      return InvalidArgument("Tensor ", name, " is ", DTypeName(info.dtype), info.shape.ToString(),
                             " in the checkpoint, wanted is a matrix of float");
    }
    if (columns.empty() && columns_ != info.shape.dim(1)) {
      return InvalidArgument("Tensor ", name, " has shape ", info.shape.ToString(),
                             ", where the size of its 2nd dimension is not equal to num_cols=", columns_);
    }
    MR_RETURN_IF_ERROR(CheckInside("row_remapping", rows, info.shape.dim(0)));
    MR_RETURN_IF_ERROR(CheckInside("col_remapping", columns, info.shape.dim(1)));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({rows_, columns_}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    MR_RETURN_IF_ERROR(Initialize(ctx.input(4), rows, columns, out));
    return Load(*reader, name, rows, columns, row_places, out);
  }

 private:
  static StatusOr<absl::Span<const int64_t>> Remapping(const KernelContext& ctx, int i, absl::string_view what) {
    if (ctx.input(i).rank() == 1) return ctx.input(i).flat<int64_t>();
    return InvalidArgument(what, " must be a vector, got shape ", ctx.input(i).shape().ToString());
  }
  static Status CheckInside(absl::string_view what, absl::Span<const int64_t> old, int64_t limit) {
    for (size_t i = 0; i < old.size(); ++i) {
      if (old[i] >= limit) return InvalidArgument(what, "[", i, "] = ", old[i], ", but there are only ", limit);
    }
    return absl::OkStatus();
  }

  Status Initialize(const Tensor& values, absl::Span<const int64_t> rows, absl::Span<const int64_t> columns,
                    Tensor* out) const {
    int64_t used = 0;
    float* to = out->mutable_data<float>();
    StopNowAndThen pause;
    for (int64_t r = 0; r < rows_; ++r) {
      pause(1 + columns_);
      for (int64_t c = 0; c < columns_; ++c, ++to) {
        const bool is_old =
            rows[static_cast<size_t>(r)] >= 0 && (columns.empty() || columns[static_cast<size_t>(c)] >= 0);
        if (is_old) continue;
        if (used < values.num_elements()) *to = values.data<float>()[used];
        ++used;
      }
    }
    if (used == values.num_elements()) return absl::OkStatus();
    return InvalidArgument("initializing_values has ", values.num_elements(), " elements, missing are ", used);
  }

  Status Load(const CheckpointReader& reader, const std::string& name, absl::Span<const int64_t> rows,
              absl::Span<const int64_t> columns, const HashMap<int64_t, int64_t>& places, Tensor* out) const {
    int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
    for (const int64_t r : rows) {
      if (r >= 0) first = std::min(first, r);
      last = std::max(last, r);
    }
    while (first <= last) {
      const int64_t count = most_ > 0 ? std::min(most_, last - first + 1) : last - first + 1;
      MR_ASSIGN_OR_RETURN(const TensorSlice slice, TensorSlice::Parse(absl::StrCat(first, ",", count, ":-")));
      MR_ASSIGN_OR_RETURN(const Tensor part, reader.ReadSlice(name, slice));
      for (int64_t r = 0; r < count; ++r) {
        StopIfAsked();
        const auto it = places.find(first + r);
        if (it == places.end()) continue;
        const float* from = part.data<float>() + r * part.dim(1);
        float* to = out->mutable_data<float>() + it->second * columns_;
        for (int64_t c = 0; c < columns_; ++c) {
          const int64_t old = columns.empty() ? c : columns[static_cast<size_t>(c)];
          if (old >= 0) to[c] = from[old];
        }
      }
      first += count;
    }
    return absl::OkStatus();
  }

  int64_t rows_ = 0, columns_ = 1, most_ = -1;
};

}  // namespace

void RegisterRemapKernels(KernelRegistry& registry) {
  registry.Add<VocabularyKernel>({.op = "GenerateVocabRemapping"});
  registry.Add<RemapKernel>({.op = "LoadAndRemapMatrix"});
}

}  // namespace millrace
