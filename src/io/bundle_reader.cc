// SPDX-License-Identifier: Apache-2.0
#include "io/bundle_reader.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "io/bundle_format.h"
#include "io/crc32c.h"
#include "io/string_blob.h"
#include "io/table.h"
#include "tensor/tensor_proto.h"

namespace millrace {
namespace {

// Keys of slices begin with a zero byte, names of tensors do not.
bool IsSliceKey(absl::string_view key) { return !key.empty() && key.front() == '\0'; }

StatusOr<Shape> ShapeOf(const wire::BundleEntryProto& proto) {
  if (!proto.shape) return Shape();
  MR_ASSIGN_OR_RETURN(const PartialShape partial, ShapeFromProto(*proto.shape));
  return partial.ToShape();
}

StatusOr<std::vector<TensorSlice>> SlicesOf(const wire::BundleEntryProto& proto, const Shape& shape) {
  std::vector<TensorSlice> slices;
  for (const wire::TensorSliceProto& p : proto.slices) {
    MR_ASSIGN_OR_RETURN(TensorSlice slice, TensorSlice::FromProto(p));
    MR_RETURN_IF_ERROR(slice.SliceShape(shape).status());
    slices.push_back(std::move(slice));
  }
  return slices;
}

void SwapBytes(Tensor* t) {
  const size_t element = IsComplex(t->dtype()) ? DTypeSize(t->dtype()) / 2 : DTypeSize(t->dtype());
  char* p = static_cast<char*>(t->mutable_raw());
  for (size_t at = 0; element > 1 && at < t->TotalBytes(); at += element) std::reverse(p + at, p + at + element);
}

}  // namespace

StatusOr<std::unique_ptr<BundleReader>> BundleReader::Open(Env& env, const std::string& prefix) {
  MR_ASSIGN_OR_RETURN(
      std::unique_ptr<RandomAccessFile> file, env.NewRandomAccessFile(bundle_format::IndexPath(prefix)));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<TableReader> table, TableReader::Open(std::move(file)));
  std::unique_ptr<BundleReader> reader(new BundleReader(env, prefix));
  bool has_header = false;
  MR_RETURN_IF_ERROR(table->ForEach([&](absl::string_view key, absl::string_view value) -> Status {
    if (!key.empty()) return has_header ? reader->AddEntry(key, value) : DataLoss("checkpoint has no header");
    MR_ASSIGN_OR_RETURN(const wire::BundleHeaderProto header, bundle_format::DecodeHeader(value));
    has_header = true;
    reader->num_shards_ = header.num_shards;
    reader->swap_bytes_ = header.endianness == wire::BundleHeaderProto::kBig;
    return absl::OkStatus();
  }));
  if (!has_header) return DataLoss("checkpoint ", prefix, " has no header");
  MR_RETURN_IF_ERROR(reader->CheckOverlaps());
  return reader;
}

// What is wrong with one tensor is told to whom asks for that tensor; the others can be read.
Status BundleReader::AddEntry(absl::string_view key, absl::string_view value) {
  wire::BundleEntryProto proto;
  if (const Status s = wire::Decode(value, &proto); !s.ok()) return DataLoss("broken checkpoint entry: ", s.message());
  Entry& entry = entries_[std::string(key)];
  const auto bad = [&](const auto&... why) {
    entry.bad = DataLoss("checkpoint entry of \"", key, "\": ", why...);
    return absl::OkStatus();
  };
  entry.raw_dtype = proto.dtype;
  entry.crc = proto.crc32c;
  if (proto.shard_id < 0 || proto.shard_id >= num_shards_) {
    return bad("shard ", proto.shard_id, " of ", num_shards_);
  }
  int64_t end = 0;
  if (proto.offset < 0 || proto.size < 0 || !CheckedAdd(proto.offset, proto.size, &end)) {
    return bad("offset ", proto.offset, " size ", proto.size);
  }
  entry.shard = proto.shard_id;
  entry.offset = static_cast<uint64_t>(proto.offset);
  entry.size = static_cast<uint64_t>(proto.size);
  const auto dtype = DTypeFromNumber(proto.dtype);
  if (!dtype || (!IsPlain(*dtype) && *dtype != DType::kString)) return bad("unsupported dtype ", proto.dtype);
  entry.dtype = *dtype;
  const StatusOr<Shape> shape = ShapeOf(proto);
  if (!shape.ok()) return bad(shape.status().message());
  entry.shape = *shape;
  auto slices = SlicesOf(proto, *shape);
  if (!slices.ok()) return bad(slices.status().message());
  entry.slices = *std::move(slices);
  if (!entry.slices.empty()) return absl::OkStatus();
  int64_t bytes = 0;
  if (IsPlain(*dtype) &&
      (!CheckedMul(shape->num_elements(), static_cast<int64_t>(DTypeSize(*dtype)), &bytes) || bytes != proto.size)) {
    return bad(proto.size, " bytes for ", DTypeName(*dtype), shape->ToString());
  }
  return absl::OkStatus();
}

// Without this a small data file could stand for any number of large tensors.
Status BundleReader::CheckOverlaps() const {
  std::vector<std::tuple<int32_t, uint64_t, uint64_t>> ranges;
  for (const auto& [key, e] : entries_) {
    if (e.bad.ok() && e.slices.empty() && e.size > 0) ranges.emplace_back(e.shard, e.offset, e.offset + e.size);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    const auto& [shard, begin, end] = ranges[i];
    if (shard == std::get<0>(ranges[i - 1]) && begin < std::get<2>(ranges[i - 1])) {
      return DataLoss("entries of checkpoint ", prefix_, " share bytes of shard ", shard);
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> BundleReader::Names() const {
  std::vector<std::string> names;
  for (const auto& [key, entry] : entries_) {
    if (!IsSliceKey(key)) names.push_back(key);
  }
  return names;
}

StatusOr<const BundleReader::Entry*> BundleReader::Find(const std::string& key) const {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return NotFound("key ", key, " not found in checkpoint ", prefix_);
  MR_RETURN_IF_ERROR(it->second.bad);
  return &it->second;
}

StatusOr<CheckpointReader::Info> BundleReader::Lookup(const std::string& name) const {
  MR_ASSIGN_OR_RETURN(const Entry* entry, Find(name));
  return Info{entry->dtype, entry->shape};
}

StatusOr<std::shared_ptr<RandomAccessFile>> BundleReader::Shard(int32_t shard) const {
  absl::MutexLock lock(&mu_);
  std::shared_ptr<RandomAccessFile>& file = shards_[shard];
  if (!file) {
    auto opened = env_.NewRandomAccessFile(bundle_format::DataPath(prefix_, shard, num_shards_));
    if (absl::IsNotFound(opened.status())) return DataLoss("checkpoint lacks a data file: ", opened.status().message());
    MR_RETURN_IF_ERROR(opened.status());
    file = *std::move(opened);
  }
  return file;
}

Status BundleReader::CheckData(const std::string& key, const Entry& entry) const {
  MR_ASSIGN_OR_RETURN(const auto file, Shard(entry.shard));
  if (entry.offset > file->size() || entry.size > file->size() - entry.offset) {
    return DataLoss("data of \"", key, "\" goes past the end of shard ", entry.shard, " of checkpoint ", prefix_);
  }
  return absl::OkStatus();
}

StatusOr<Tensor> BundleReader::ReadEntry(const std::string& key, const Entry& entry) const {
  MR_RETURN_IF_ERROR(CheckData(key, entry));
  MR_ASSIGN_OR_RETURN(const auto file, Shard(entry.shard));
  const auto size = static_cast<size_t>(entry.size);
  if (entry.dtype == DType::kString) {
    if (swap_bytes_) return Unimplemented("strings of a checkpoint with the other byte order (", key, ")");
    std::string blob(size, '\0');
    MR_RETURN_IF_ERROR(file->Read(entry.offset, size, blob.data()));
    auto strings = DecodeStrings(blob, entry.shape, UnmaskCrc(entry.crc));
    if (!strings.ok()) return Annotate(strings.status(), absl::StrCat("tensor ", key, ": "));
    return strings;
  }
  MR_ASSIGN_OR_RETURN(Tensor result, Tensor::Make(entry.dtype, entry.shape));
  char* bytes = static_cast<char*>(result.mutable_raw());
  MR_RETURN_IF_ERROR(file->Read(entry.offset, size, bytes));
  if (UnmaskCrc(entry.crc) != Crc32c(absl::string_view(bytes, size))) {
    return DataLoss("checksum of \"", key, "\" in checkpoint ", prefix_, " does not match");
  }
  if (swap_bytes_) SwapBytes(&result);
  if (entry.dtype == DType::kBool) {
    for (size_t i = 0; i < size; ++i) bytes[i] = bytes[i] != 0;
  }
  return result;
}

StatusOr<Tensor> BundleReader::ReadBox(const std::string& name, const Entry& entry,
                                       const std::vector<TensorSlice::Extent>& want) const {
  std::vector<StoredPart> parts;
  if (entry.slices.empty()) {
    MR_RETURN_IF_ERROR(CheckData(name, entry));
    MR_ASSIGN_OR_RETURN(StoredPart whole, [&]() -> StatusOr<StoredPart> {
      MR_ASSIGN_OR_RETURN(auto box, TensorSlice::Full(entry.shape.rank()).Resolve(entry.shape));
      return StoredPart{std::move(box), 0};
    }());
    parts.push_back(std::move(whole));
    return AssembleParts(name, entry.dtype, want, parts, [&](const StoredPart&) { return ReadEntry(name, entry); });
  }
  for (size_t i = 0; i < entry.slices.size(); ++i) {
    MR_ASSIGN_OR_RETURN(auto box, entry.slices[i].Resolve(entry.shape));
    if (CommonElements(box, want) == 0) continue;
    const std::string key = SliceKey(name, entry.slices[i]);
    const StatusOr<const Entry*> part = Find(key);
    if (!part.ok()) return DataLoss("slice ", entry.slices[i].ToString(), " of ", name, ": ", part.status().message());
    MR_ASSIGN_OR_RETURN(const Shape shape, entry.slices[i].SliceShape(entry.shape));
    if ((*part)->dtype != entry.dtype || (*part)->shape != shape || !(*part)->slices.empty()) {
      return DataLoss("slice ", entry.slices[i].ToString(), " of ", name, " has another dtype or shape than it should");
    }
    MR_RETURN_IF_ERROR(CheckData(name, **part));
    parts.push_back({std::move(box), i});
  }
  return AssembleParts(name, entry.dtype, want, parts, [&](const StoredPart& part) -> StatusOr<Tensor> {
    const std::string key = SliceKey(name, entry.slices[part.index]);
    MR_ASSIGN_OR_RETURN(const Entry* stored, Find(key));
    return ReadEntry(name, *stored);
  });
}

StatusOr<Tensor> BundleReader::Read(const std::string& name) const {
  MR_ASSIGN_OR_RETURN(const Entry* entry, Find(name));
  if (entry->slices.empty()) return ReadEntry(name, *entry);
  MR_ASSIGN_OR_RETURN(const auto all, TensorSlice::Full(entry->shape.rank()).Resolve(entry->shape));
  return ReadBox(name, *entry, all);
}

StatusOr<Tensor> BundleReader::ReadSlice(const std::string& name, const TensorSlice& slice) const {
  MR_ASSIGN_OR_RETURN(const Entry* entry, Find(name));
  MR_ASSIGN_OR_RETURN(const auto want, slice.Resolve(entry->shape));
  return ReadBox(name, *entry, want);
}

}  // namespace millrace
