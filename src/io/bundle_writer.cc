// SPDX-License-Identifier: Apache-2.0
#include "io/bundle_writer.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "io/bundle_format.h"
#include "io/crc32c.h"
#include "io/string_blob.h"
#include "tensor/tensor_proto.h"

namespace millrace {

BundleWriter::BundleWriter(Env& env, std::string prefix, std::string data_path, std::unique_ptr<WritableFile> data)
    : env_(env), prefix_(std::move(prefix)), data_path_(std::move(data_path)), data_(std::move(data)) {}

StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Open(Env& env, const std::string& prefix) {
  if (prefix.empty()) return InvalidArgument("\"", prefix, "\" is no prefix of a checkpoint");
  if (const std::string folder = bundle_format::FolderOf(prefix); folder != ".") {
    MR_RETURN_IF_ERROR(env.CreateDirs(folder));
  }
  std::string path = absl::StrFormat("%s.tempstate%016x", bundle_format::DataPath(prefix, 0, 1), env.Random64());
  MR_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, env.NewWritableFile(path));
  return std::unique_ptr<BundleWriter>(new BundleWriter(env, prefix, std::move(path), std::move(file)));
}

BundleWriter::~BundleWriter() {
  if (finished_) return;
  data_.reset();
  (void)env_.DeleteFile(data_path_);
}

Status BundleWriter::AddEntry(const std::string& key, const Tensor& tensor) {
  wire::BundleEntryProto entry;
  entry.dtype = static_cast<int32_t>(tensor.dtype());
  entry.shape.Ensure() = ShapeToProto(tensor.shape());
  entry.offset = offset_;
  uint32_t crc = 0;
  std::string strings;
  absl::string_view bytes;
  if (tensor.dtype() == DType::kString) {
    strings = EncodeStrings(tensor, &crc);
    bytes = strings;
  } else if (IsPlain(tensor.dtype())) {
    bytes = absl::string_view(static_cast<const char*>(tensor.raw()), tensor.TotalBytes());
    crc = Crc32c(bytes);
  } else {
    return InvalidArgument("checkpoints hold no ", DTypeName(tensor.dtype()), " (", key, ")");
  }
  entry.size = static_cast<int64_t>(bytes.size());
  entry.crc32c = MaskCrc(crc);
  const Status written = data_->Append(bytes);
  failed_ |= !written.ok();
  offset_ += entry.size;
  entries_[key] = std::move(entry);
  return written;
}

Status BundleWriter::Add(const std::string& name, const Tensor& tensor) {
  if (name.empty()) return InvalidArgument("a tensor of a checkpoint needs a name");
  if (entries_.contains(name)) return InvalidArgument("tensor \"", name, "\" is added twice");
  return AddEntry(name, tensor);
}

Status BundleWriter::AddSlice(const std::string& name, const Shape& full, const TensorSlice& slice,
                              const Tensor& tensor) {
  MR_ASSIGN_OR_RETURN(const Shape part, slice.SliceShape(full));
  if (part != tensor.shape()) {
    return InvalidArgument("slice ", slice.ToString(), " of ", name, " ", full.ToString(), " needs shape ",
                           part.ToString(), ", got ", tensor.shape().ToString());
  }
  if (slice.Covers(full)) return Add(name, tensor);
  if (name.empty()) return InvalidArgument("a tensor of a checkpoint needs a name");
  const std::string key = SliceKey(name, slice);
  if (entries_.contains(key)) return InvalidArgument("slice ", slice.ToString(), " of ", name, " is added twice");
  if (const auto it = entries_.find(name); it != entries_.end()) {
    const wire::BundleEntryProto& whole = it->second;
    if (whole.slices.empty() || whole.dtype != static_cast<int32_t>(tensor.dtype()) ||
        !wire::Equal(*whole.shape, ShapeToProto(full))) {
      return InvalidArgument("slices of ", name, " disagree on its shape or dtype");
    }
  }
  MR_RETURN_IF_ERROR(AddEntry(key, tensor));
  wire::BundleEntryProto& whole = entries_[name];
  whole.dtype = static_cast<int32_t>(tensor.dtype());
  whole.shape.Ensure() = ShapeToProto(full);
  whole.slices.push_back(slice.ToProto());
  return absl::OkStatus();
}

Status BundleWriter::Finish() {
  if (finished_ || failed_) return FailedPrecondition("checkpoint ", prefix_, " failed before, or is finished");
  MR_RETURN_IF_ERROR(data_->Sync());
  MR_RETURN_IF_ERROR(data_->Close());
  MR_RETURN_IF_ERROR(bundle_format::Commit(env_, prefix_, {data_path_}, entries_));
  finished_ = true;
  return absl::OkStatus();
}

}  // namespace millrace
