// SPDX-License-Identifier: Apache-2.0
#include "io/v1_writer.h"

#include "absl/cleanup/cleanup.h"
#include "io/table.h"
#include "tensor/tensor_proto.h"

namespace millrace {
namespace {

template <typename T, typename V>
void Append(const Tensor& t, std::vector<V>* out) {
  const auto values = t.flat<T>();
  out->assign(values.begin(), values.end());
}

// Numbers of two bytes go as their bits.
void AppendBits(const Tensor& t, std::vector<int32_t>* out) {
  const auto* bits = static_cast<const uint16_t*>(t.raw());
  out->assign(bits, bits + t.num_elements());
}

// The elements in the field of their type, and nothing else: shape and dtype stand in the list of tensors.
StatusOr<wire::TensorProto> ValuesOf(const Tensor& t) {
  wire::TensorProto p;
  switch (t.dtype()) {
    case DType::kFloat: Append<float>(t, &p.float_val); break;
    case DType::kDouble: Append<double>(t, &p.double_val); break;
    case DType::kInt64: Append<int64_t>(t, &p.int64_val); break;
    case DType::kUInt32: Append<uint32_t>(t, &p.uint32_val); break;
    case DType::kUInt64: Append<uint64_t>(t, &p.uint64_val); break;
    case DType::kInt32:
    case DType::kQInt32: Append<int32_t>(t, &p.int_val); break;
    case DType::kInt16:
    case DType::kQInt16: Append<int16_t>(t, &p.int_val); break;
    case DType::kUInt16:
    case DType::kQUInt16: Append<uint16_t>(t, &p.int_val); break;
    case DType::kInt8:
    case DType::kQInt8: Append<int8_t>(t, &p.int_val); break;
    case DType::kUInt8:
    case DType::kQUInt8: Append<uint8_t>(t, &p.int_val); break;
    case DType::kBool: Append<bool>(t, &p.bool_val); break;
    case DType::kHalf:
    case DType::kBFloat16: AppendBits(t, &p.half_val); break;
    case DType::kComplex64: {
      const auto* parts = static_cast<const float*>(t.raw());
      p.scomplex_val.assign(parts, parts + 2 * t.num_elements());
      break;
    }
    case DType::kComplex128: {
      const auto* parts = static_cast<const double*>(t.raw());
      p.dcomplex_val.assign(parts, parts + 2 * t.num_elements());
      break;
    }
    case DType::kString:
      for (const TString& s : t.flat<TString>()) p.string_val.push_back(s.str());
      break;
    default: return InvalidArgument("a checkpoint does not hold ", DTypeName(t.dtype()));
  }
  return p;
}

}  // namespace

Status V1Writer::Add(const std::string& name, const Shape& full, const TensorSlice& slice, const Tensor& tensor) {
  if (name.empty()) return InvalidArgument("a tensor in a checkpoint needs a name");
  MR_ASSIGN_OR_RETURN(const Shape part, slice.SliceShape(full));
  if (part != tensor.shape()) {
    return InvalidArgument(
        "slice ", slice.ToString(), " of ", name, " has shape ", part.ToString(), ", got ", tensor.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(wire::TensorProto values, ValuesOf(tensor));
  const auto [at, is_new] = by_name_.try_emplace(name, tensors_.size());
  if (is_new) {
    wire::SavedSliceMeta& meta = tensors_.emplace_back();
    meta.name = name;
    meta.type = static_cast<int32_t>(tensor.dtype());
    meta.shape.Ensure() = ShapeToProto(full);
  }
  wire::SavedSliceMeta& meta = tensors_[at->second];
  MR_ASSIGN_OR_RETURN(const PartialShape known, ShapeFromProto(*meta.shape));
  if (meta.type != static_cast<int32_t>(tensor.dtype()) || known != PartialShape(full)) {
    return InvalidArgument("parts of ", name, " disagree on its shape or dtype");
  }
  wire::SavedTensorSlices saved;
  saved.data.Ensure().name = name;
  saved.data->slice.Ensure() = slice.ToProto();
  saved.data->data.Ensure() = std::move(values);
  std::string bytes = wire::Encode(saved);
  constexpr size_t kMaxBytes = size_t{1} << 31;
  if (bytes.size() >= kMaxBytes) {
    return InvalidArgument(
        "Tensor slice is too large to serialize: ", name, " has ", bytes.size(), " bytes in format V1");
  }
  if (!parts_.emplace(SliceKey(name, slice), std::move(bytes)).second) {
    return InvalidArgument("slice ", slice.ToString(), " of ", name, " is saved twice");
  }
  meta.slice.push_back(slice.ToProto());
  return absl::OkStatus();
}

Status V1Writer::Finish() {
  wire::SavedTensorSlices list;
  list.meta.Ensure().tensor = tensors_;
  list.meta->versions.Ensure().producer = 1;
  if (const absl::string_view folder = Dirname(path_); !folder.empty()) {
    MR_RETURN_IF_ERROR(env_.CreateDirs(std::string(folder)));
  }
  const std::string temporary = absl::StrCat(path_, ".tempstate", env_.Random64());
  absl::Cleanup remove = [&] { (void)env_.DeleteFile(temporary); };
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, env_.NewWritableFile(temporary));
  TableWriter table(file.get());
  MR_RETURN_IF_ERROR(table.Add("", wire::Encode(list)));
  for (const auto& [key, bytes] : parts_) MR_RETURN_IF_ERROR(table.Add(key, bytes));
  MR_RETURN_IF_ERROR(table.Finish());
  MR_RETURN_IF_ERROR(file->Sync());
  MR_RETURN_IF_ERROR(file->Close());
  MR_RETURN_IF_ERROR(env_.RenameFile(temporary, path_));
  std::move(remove).Cancel();
  const std::string folder(Dirname(path_));
  return env_.SyncDir(folder.empty() ? "." : folder);
}

}  // namespace millrace
