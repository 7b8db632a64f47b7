// SPDX-License-Identifier: Apache-2.0
#include "cluster/wire_codec.h"

#include <optional>

#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

#include "cluster/tensor_codec.h"
#include "tensor/allocator.h"

namespace millrace {
namespace {

constexpr size_t kMaxHeader = size_t{1} << 30;
constexpr size_t kFreeMemory = size_t{1} << 20;
constexpr size_t kMemoryPerByte = 64;

enum WireType : uint32_t { kVarint = 0, kBits64 = 1, kBytes = 2, kBits32 = 5 };

constexpr uint32_t kFiller = 4095;  // a field of no message

// Until a place for elements of tensors.
size_t BytesToPlace(size_t offset) { return (0 - offset) % Allocator::kAlignment; }

// Of a tensor, in the header.
enum TensorField : uint32_t { kDType = 1, kDim = 2, kOffset = 3, kNumBytes = 4 };

void AppendVarint(uint64_t value, std::string* out) {
  char buffer[10];
  char* const end = buffer + protozero::write_varint(buffer, value);
  out->append(buffer, static_cast<size_t>(end - buffer));
}

bool ReadVarint(absl::string_view* in, uint64_t* value) {
  const char* next = in->data();
  try {
    *value = protozero::decode_varint(&next, in->data() + in->size());
  } catch (const protozero::exception&) {
    return false;
  }
  in->remove_prefix(static_cast<size_t>(next - in->data()));
  return true;
}

// Puts back what a field was.
template <typename Field>
class Restore {
 public:
  explicit Restore(Field& field) : field_(field), was_(field) {}
  ~Restore() { field_ = was_; }

 private:
  Field& field_;
  const Field was_;
};

}  // namespace

void WireEncoder::PutNumber(uint32_t number, uint64_t value) {
  AppendVarint(uint64_t{number} << 3 | kVarint, &header_);
  AppendVarint(value, &header_);
}

void WireEncoder::PutBytes(uint32_t number, absl::string_view bytes) {
  AppendVarint(uint64_t{number} << 3 | kBytes, &header_);
  AppendVarint(bytes.size(), &header_);
  header_.append(bytes.data(), bytes.size());
}

void WireEncoder::PutStatus(uint32_t number, const Status& s) {
  std::string outer = std::exchange(header_, {});
  PutNumber(1, static_cast<uint64_t>(s.code()));
  PutBytes(2, s.message());
  const std::string inner = std::exchange(header_, std::move(outer));
  PutBytes(number, inner);
}

void WireEncoder::PutTensor(uint32_t number, const Tensor& t) {
  std::string outer = std::exchange(header_, {});
  if (t.IsInitialized()) {
    if (IsWorthPlacing(t)) {
      has_places_ = true;
      tensors_.Append(std::string(BytesToPlace(tensors_.size()), '\0'));
    }
    const size_t offset = tensors_.size();
    Fail(AppendElements(t, &tensors_));
    PutNumber(kDType, static_cast<uint64_t>(t.dtype()));
    for (const int64_t d : t.shape().dims()) PutNumber(kDim, static_cast<uint64_t>(d));
    PutNumber(kOffset, offset);
    PutNumber(kNumBytes, tensors_.size() - offset);
  }
  const std::string inner = std::exchange(header_, std::move(outer));
  PutBytes(number, inner);
}

StatusOr<absl::Cord> WireEncoder::Finish() && {
  MR_RETURN_IF_ERROR(status_);
  if (has_places_) FillHeader();
  if (header_.size() > kMaxHeader) {
    return ResourceExhausted(
        "a message has ", header_.size(), " bytes beside its tensors, at most ", kMaxHeader, " travel");
  }
  std::string start;
  start.reserve(kLengthBytes + header_.size());
  AppendLength(header_.size(), &start);
  start.append(header_);
  absl::Cord frame(std::move(start));
  frame.Append(std::move(tensors_));
  return frame;
}

void WireEncoder::FillHeader() {
  constexpr size_t kFieldBytes = 4;  // of its number and its length
  size_t bytes = BytesToPlace(kLengthBytes + header_.size());
  if (bytes == 0) return;
  if (bytes < kFieldBytes) bytes += Allocator::kAlignment;
  PutBytes(kFiller, std::string(bytes - kFieldBytes, '\0'));
}

Status WireDecoder::Split(const absl::Cord& frame, std::string* header) {
  if (frame.size() < kLengthBytes) return InvalidArgument("a message of ", frame.size(), " bytes is none");
  std::string start;
  absl::CopyCordToString(frame.Subcord(0, kLengthBytes), &start);
  const uint64_t length = ReadLength(start.data());
  if (length > frame.size() - kLengthBytes || length > kMaxHeader) {
    return InvalidArgument("a message of ", frame.size(), " bytes says that its header has ", length);
  }
  absl::CopyCordToString(frame.Subcord(kLengthBytes, length), header);
  tensors_ = frame.Subcord(kLengthBytes + length, frame.size());
  tensor_bytes_left_ = tensors_.size();
  memory_left_ = kFreeMemory + kMemoryPerByte * static_cast<size_t>(length);
  return absl::OkStatus();
}

bool WireDecoder::Next(absl::string_view* in) {
  const auto fail = [&] {
    Fail(InvalidArgument("a message ends within a field, or has a field of no known form"));
    return false;
  };
  uint64_t key = 0;
  if (!ReadVarint(in, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff) return fail();
  at_ = {static_cast<uint32_t>(key >> 3), (key & 7) == kVarint, 0, {}};
  switch (key & 7) {
    case kVarint: return ReadVarint(in, &at_.varint) || fail();
    case kBytes: {
      uint64_t size = 0;
      if (!ReadVarint(in, &size) || size > in->size()) return fail();
      at_.bytes = in->substr(0, size);
      in->remove_prefix(size);
      return true;
    }
    case kBits64:
    case kBits32: {  // no field has this form
      const size_t size = (key & 7) == kBits64 ? 8 : 4;
      if (size > in->size()) return fail();
      in->remove_prefix(size);
      return false;
    }
    default: return fail();
  }
}

bool WireDecoder::Take(size_t bytes) {
  if (bytes <= memory_left_) {
    memory_left_ -= bytes;
    return true;
  }
  Fail(ResourceExhausted("a message stands for more memory than its size allows"));
  return false;
}

uint64_t WireDecoder::GetNumber() {
  if (!at_.is_varint) Fail(InvalidArgument("field ", at_.number, " of a message is no number"));
  return at_.varint;
}

absl::string_view WireDecoder::bytes() {
  if (at_.is_varint) Fail(InvalidArgument("field ", at_.number, " of a message is a number, want bytes"));
  return at_.bytes;
}

void WireDecoder::GetStatus(Status* s) {
  absl::string_view in = bytes();
  const Restore<Field> outer(at_);
  uint64_t code = 0;
  std::string message;
  while (!in.empty() && status_.ok()) {
    if (!Next(&in)) continue;
    if (at_.number == 1) code = GetNumber();
    if (at_.number == 2) message = std::string(bytes());
  }
  const bool is_known = code <= static_cast<uint64_t>(absl::StatusCode::kUnauthenticated);
  *s = Status(is_known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown, message);
}

void WireDecoder::GetTensor(Tensor* t) {
  absl::string_view in = bytes();
  if (in.empty()) return;  // uninitialised
  const Restore<Field> outer(at_);
  uint64_t number = 0, offset = 0, size = 0;
  std::vector<int64_t> dims;
  while (!in.empty() && status_.ok()) {
    if (!Next(&in)) continue;
    switch (at_.number) {
      case kDType: number = GetNumber(); break;
      case kDim:
        if (dims.size() > static_cast<size_t>(kMaxRank))
          return Fail(InvalidArgument("a tensor has too many dimensions"));
        dims.push_back(static_cast<int64_t>(GetNumber()));
        break;
      case kOffset: offset = GetNumber(); break;
      case kNumBytes: size = GetNumber(); break;
      default: break;
    }
  }
  if (!status_.ok()) return;
  const std::optional<DType> dtype = number <= INT32_MAX ? DTypeFromNumber(static_cast<int32_t>(number)) : std::nullopt;
  if (!dtype) return Fail(InvalidArgument("a tensor has dtype ", number, ", which is none"));
  const StatusOr<Shape> shape = Shape::Make(absl::MakeConstSpan(dims));
  if (!shape.ok()) return Fail(shape.status());
  // All tensors together are at most what there is, so that no byte stands for two.
  if (offset > tensors_.size() || size > tensors_.size() - offset || size > tensor_bytes_left_) {
    return Fail(InvalidArgument("a tensor of ", size, " bytes is said to begin at ", offset, " of ", tensors_.size()));
  }
  tensor_bytes_left_ -= size;
  // Who holds its bytes holds the whole frame.
  const bool is_most = size >= tensors_.size() / 2;
  StatusOr<Tensor> made = TensorFromElements(*dtype, *shape, tensors_.Subcord(offset, size), is_most);
  if (!made.ok()) return Fail(made.status());
  *t = *std::move(made);
}

}  // namespace millrace
