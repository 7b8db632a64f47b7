// SPDX-License-Identifier: Apache-2.0
#include "io/v1_checkpoint.h"

#include <map>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "io/table.h"
#include "tensor/tensor_proto.h"
#include "wire/checkpoint.h"

namespace millrace {
namespace {

bool Matches(absl::string_view pattern, absl::string_view name) {
  // After a mismatch the last * takes one character more; earlier ones need not be tried again.
  size_t p = 0, n = 0, star = absl::string_view::npos, star_n = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_n = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++star_n;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

StatusOr<std::vector<std::string>> MatchingFiles(Env& env, const std::string& pattern) {
  if (env.FileExists(pattern)) return std::vector<std::string>{pattern};
  const std::string folder(Dirname(pattern));
  std::vector<std::string> files;
  const StatusOr<std::vector<std::string>> names = env.ListDir(folder.empty() ? "." : folder);
  if (names.ok()) {
    for (const std::string& name : *names) {
      if (Matches(Basename(pattern), name)) files.push_back(JoinPath(folder, name));
    }
  }
  if (files.empty()) {
    return NotFound("Unsuccessful TensorSliceReader constructor: Failed to find any matching files for ", pattern,
                    ": no checkpoint, neither an index file nor a V1 file");
  }
  return files;
}

// Number of values in the field that holds the elements of this dtype; complex numbers take two.
size_t ValueCount(const wire::TensorProto& p, DType dtype) {
  switch (dtype) {
    case DType::kFloat: return p.float_val.size();
    case DType::kDouble: return p.double_val.size();
    case DType::kInt64: return p.int64_val.size();
    case DType::kBool: return p.bool_val.size();
    case DType::kString: return p.string_val.size();
    case DType::kComplex64: return p.scomplex_val.size() / 2;
    case DType::kComplex128: return p.dcomplex_val.size() / 2;
    case DType::kHalf:
    case DType::kBFloat16: return p.half_val.size();
    case DType::kUInt32: return p.uint32_val.size();
    case DType::kUInt64: return p.uint64_val.size();
    default: return p.int_val.size();
  }
}

class V1Reader final : public CheckpointReader {
 public:
  Status AddFile(Env& env, const std::string& path) {
    MR_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, env.NewRandomAccessFile(path));
    MR_ASSIGN_OR_RETURN(std::unique_ptr<TableReader> table, TableReader::Open(std::move(file)));
    MR_ASSIGN_OR_RETURN(const auto bytes, table->Find(""));
    wire::SavedTensorSlices saved;
    if (!bytes) return DataLoss("checkpoint ", path, " has no list of tensors");
    if (const Status s = wire::Decode(*bytes, &saved); !s.ok() || !saved.meta) {
      return DataLoss("checkpoint ", path, " has a broken list of tensors: ", s.message());
    }
    if (saved.meta->versions && saved.meta->versions->min_consumer > 1) {
      return InvalidArgument("checkpoint ", path, " needs a newer reader");
    }
    tables_.push_back(std::move(table));
    for (const wire::SavedSliceMeta& meta : saved.meta->tensor) MR_RETURN_IF_ERROR(AddTensor(meta));
    return absl::OkStatus();
  }

  std::vector<std::string> Names() const override {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors_) names.push_back(name);
    return names;
  }
  StatusOr<Info> Lookup(const std::string& name) const override {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) return NotFound("tensor ", name, " not found in checkpoint");
    return it->second.info;
  }
  StatusOr<Tensor> Read(const std::string& name) const override {
    MR_ASSIGN_OR_RETURN(const Info info, Lookup(name));
    return ReadSlice(name, TensorSlice::Full(info.shape.rank()));
  }
  StatusOr<Tensor> ReadSlice(const std::string& name, const TensorSlice& slice) const override {
    MR_ASSIGN_OR_RETURN(const Info info, Lookup(name));
    MR_ASSIGN_OR_RETURN(const auto want, slice.Resolve(info.shape));
    const std::vector<Part>& stored = tensors_.at(name).parts;
    // Elements are in the file one by one, so they are read before memory is taken for the whole.
    std::vector<StoredPart> parts;
    std::vector<Tensor> values;
    for (const Part& part : stored) {
      MR_ASSIGN_OR_RETURN(auto box, part.slice.Resolve(info.shape));
      if (CommonElements(box, want) == 0 && info.shape.num_elements() > 0) continue;
      MR_ASSIGN_OR_RETURN(Tensor value, ReadPart(name, info, part));
      parts.push_back({std::move(box), values.size()});
      values.push_back(std::move(value));
    }
    return AssembleParts(
        name, info.dtype, want, parts, [&](const StoredPart& part) -> StatusOr<Tensor> { return values[part.index]; });
  }

 private:
  struct Part {
    TensorSlice slice;
    size_t table = 0;
  };
  struct Stored {
    Info info;
    std::vector<Part> parts;
  };

  Status AddTensor(const wire::SavedSliceMeta& meta) {
    const auto bad = [&](const auto&... why) { return DataLoss("checkpoint entry of \"", meta.name, "\": ", why...); };
    const auto dtype = DTypeFromNumber(meta.type);
    if (!dtype || (!IsPlain(*dtype) && *dtype != DType::kString)) return bad("unsupported dtype ", meta.type);
    const StatusOr<PartialShape> partial =
        meta.shape ? ShapeFromProto(*meta.shape) : StatusOr<PartialShape>(PartialShape::Scalar());
    if (!partial.ok()) return bad(partial.status().message());
    const StatusOr<Shape> shape = partial->ToShape();
    if (!shape.ok()) return bad(shape.status().message());
    const auto [it, is_new] = tensors_.try_emplace(meta.name);
    Stored& stored = it->second;
    if (is_new) {
      stored.info = {*dtype, *shape};
    } else if (stored.info.dtype != *dtype || stored.info.shape != *shape) {
      return bad("files disagree on its shape or dtype");
    }
    for (const wire::TensorSliceProto& proto : meta.slice) {
      StatusOr<TensorSlice> slice = TensorSlice::FromProto(proto);
      if (!slice.ok()) return bad(slice.status().message());
      if (const Status s = slice->SliceShape(*shape).status(); !s.ok()) return bad(s.message());
      stored.parts.push_back({*std::move(slice), tables_.size() - 1});
    }
    return absl::OkStatus();
  }

  StatusOr<Tensor> ReadPart(const std::string& name, const Info& info, const Part& part) const {
    const auto bad = [&](const auto&... why) {
      return DataLoss("slice ", part.slice.ToString(), " of \"", name, "\": ", why...);
    };
    MR_ASSIGN_OR_RETURN(const auto bytes, tables_[part.table]->Find(SliceKey(name, part.slice)));
    if (!bytes) return bad("missing");
    wire::SavedTensorSlices saved;
    if (const Status s = wire::Decode(*bytes, &saved); !s.ok()) return bad(s.message());
    if (!saved.data || !saved.data->data || saved.data->name != name) return bad("has no data of this tensor");
    wire::TensorProto& proto = *saved.data->data;
    MR_ASSIGN_OR_RETURN(const Shape shape, part.slice.SliceShape(info.shape));
    // Values only: shape and dtype come from the list, and no value stands for several elements.
    if (static_cast<uint64_t>(shape.num_elements()) != ValueCount(proto, info.dtype)) {
      return bad(ValueCount(proto, info.dtype), " values for shape ", shape.ToString());
    }
    proto.dtype = static_cast<int32_t>(info.dtype);
    proto.tensor_shape.Ensure() = ShapeToProto(shape);
    proto.tensor_content.clear();
    StatusOr<Tensor> value = TensorFromProto(proto);
    if (!value.ok()) return bad(value.status().message());
    return value;
  }

  std::vector<std::unique_ptr<TableReader>> tables_;
  std::map<std::string, Stored> tensors_;
};

}  // namespace

StatusOr<std::unique_ptr<CheckpointReader>> OpenV1Checkpoint(Env& env, const std::string& pattern) {
  MR_ASSIGN_OR_RETURN(const std::vector<std::string> files, MatchingFiles(env, pattern));
  auto reader = std::make_unique<V1Reader>();
  for (const std::string& file : files) MR_RETURN_IF_ERROR(reader->AddFile(env, file));
  return std::unique_ptr<CheckpointReader>(std::move(reader));
}

}  // namespace millrace
