// SPDX-License-Identifier: Apache-2.0
// Version, status and buffers.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "capi/internal.h"
#include "graph/unknown_op.h"

namespace millrace::capi {

void Report(TF_Status* status, const Status& s) noexcept {
  if (status == nullptr) return;
  if (!status->payloads.empty()) status->payloads.clear();
  status->message.clear();
  if (s.ok()) {
    status->code = TF_OK;
    return;
  }
  status->code = static_cast<TF_Code>(s.raw_code());
  try {
    status->message.assign(s.message().data(), s.message().size());
  } catch (...) {
    // Without memory for the message the code must do.
  }
}

Status NoSuchOutput(TF_Output o, const char* what, int position) {
  const std::string where = position < 0 ? what : absl::StrCat(what, " ", position);
  if (o.oper == nullptr) return InvalidArgument(where, ": operation is NULL");
  const Node* node = AsNode(o.oper);
  if (!node->op()) return millrace::Annotate(millrace::UnknownOp(*node), where + ": ");
  return InvalidArgument(
      where, ": operation '", node->name(), "' has ", node->num_outputs(), " outputs, no output ", o.index);
}

Status CheckArray(const void* array, int count, const char* what) {
  if (count < 0) return InvalidArgument("the number of ", what, " is negative: ", count);
  if (count > 0 && array == nullptr) return NullArgument(what);
  return absl::OkStatus();
}

namespace {

void FreeBytes(void* data, size_t) { std::free(data); }

void* CopyBytes(const void* data, size_t size) {
  void* copy = std::malloc(size > 0 ? size : 1);
  if (copy == nullptr) throw std::bad_alloc();
  if (size > 0) std::memcpy(copy, data, size);
  return copy;
}

TF_Code CodeOfErrno(int error) {
  switch (error) {
    case 0: return TF_OK;
    case EINVAL:
    case ENAMETOOLONG:
    case E2BIG:
    case EDESTADDRREQ:
    case EDOM:
    case EFAULT:
    case EILSEQ:
    case ENOPROTOOPT:
    case ENOTSOCK:
    case ENOTTY:
    case EPROTOTYPE:
    case ESPIPE: return TF_INVALID_ARGUMENT;
    case ETIMEDOUT: return TF_DEADLINE_EXCEEDED;
    case ENODEV:
    case ENOENT:
    case ENXIO:
    case ESRCH: return TF_NOT_FOUND;
    case EEXIST:
    case EADDRNOTAVAIL:
    case EALREADY: return TF_ALREADY_EXISTS;
    case EPERM:
    case EACCES:
    case EROFS: return TF_PERMISSION_DENIED;
    case ENOTEMPTY:
    case EISDIR:
    case ENOTDIR:
    case EADDRINUSE:
    case EBADF:
    case EBUSY:
    case ECHILD:
    case EISCONN:
    case ENOTBLK:
    case ENOTCONN:
    case EPIPE:
    case ETXTBSY: return TF_FAILED_PRECONDITION;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case EMLINK:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM: return TF_RESOURCE_EXHAUSTED;
    case EFBIG:
    case EOVERFLOW:
    case ERANGE: return TF_OUT_OF_RANGE;
    case ENOSYS:
    case ENOTSUP:
    case EAFNOSUPPORT:
    case EPFNOSUPPORT:
    case EPROTONOSUPPORT:
    case EXDEV: return TF_UNIMPLEMENTED;
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNABORTED:
    case ECONNRESET:
    case EINTR:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETRESET:
    case ENETUNREACH:
    case ENOLCK:
    case ENOLINK: return TF_UNAVAILABLE;
    case EDEADLK:
    case ESTALE: return TF_ABORTED;
    case ECANCELED: return TF_CANCELLED;
    default: return TF_UNKNOWN;
  }
}

}  // namespace

Status FillBuffer(TF_Buffer* buffer, const std::string& bytes, const char* what) {
  if (buffer == nullptr) return NullArgument(what);
  if (buffer->data != nullptr) return InvalidArgument(what, " must be an empty buffer");
  buffer->data = CopyBytes(bytes.data(), bytes.size());
  buffer->length = bytes.size();
  buffer->data_deallocator = FreeBytes;
  return absl::OkStatus();
}

TF_Buffer* MakeBuffer(const std::string& bytes) {
  auto buffer = std::make_unique<TF_Buffer>();
  buffer->data = CopyBytes(bytes.data(), bytes.size());
  buffer->length = bytes.size();
  buffer->data_deallocator = FreeBytes;
  return buffer.release();
}

}  // namespace millrace::capi

using millrace::capi::Try;

extern "C" {

const char* TF_Version(void) { return "2.21.0"; }
const char* MR_Version(void) { return MILLRACE_VERSION; }

TF_Status* TF_NewStatus(void) { return new (std::nothrow) TF_Status(); }
void TF_DeleteStatus(TF_Status* s) { delete s; }

void TF_SetStatus(TF_Status* s, TF_Code code, const char* msg) {
  if (s == nullptr) return;
  millrace::capi::Report(s, absl::OkStatus());
  s->code = code;
  if (code == TF_OK || msg == nullptr) return;
  Try(0, [&] { return s->message.assign(msg), 0; });
}

void TF_SetPayload(TF_Status* s, const char* key, const char* value) {
  if (s == nullptr || s->code == TF_OK || key == nullptr || value == nullptr) return;
  Try(0, [&] {
    for (auto& [k, v] : s->payloads) {
      if (k == key) return v.assign(value), 0;
    }
    s->payloads.emplace_back(key, value);
    return 0;
  });
}

void TF_ForEachPayload(const TF_Status* s, TF_PayloadVisitor visitor, void* capture) {
  if (s == nullptr || visitor == nullptr) return;
  for (const auto& [key, value] : s->payloads) visitor(key.c_str(), value.c_str(), capture);
}

void TF_SetStatusFromIOError(TF_Status* s, int error_code, const char* context) {
  const TF_Code code = millrace::capi::CodeOfErrno(error_code);
  if (code == TF_OK) return TF_SetStatus(s, TF_OK, "");
  Try(0, [&] {
    const std::string text = absl::StrCat(context ? context : "", context ? ": " : "", std::strerror(error_code));
    return TF_SetStatus(s, code, text.c_str()), 0;
  });
}

TF_Code TF_GetCode(const TF_Status* s) { return s ? s->code : TF_OK; }
const char* TF_Message(const TF_Status* s) { return s ? s->message.c_str() : ""; }

TF_Buffer* TF_NewBuffer(void) { return new (std::nothrow) TF_Buffer{nullptr, 0, nullptr}; }

TF_Buffer* TF_NewBufferFromString(const void* proto, size_t proto_len) {
  if (proto == nullptr && proto_len > 0) return nullptr;
  return Try<TF_Buffer*>(nullptr, [&] {
    auto buffer = std::make_unique<TF_Buffer>();
    buffer->data = millrace::capi::CopyBytes(proto, proto_len);
    buffer->length = proto_len;
    buffer->data_deallocator = millrace::capi::FreeBytes;
    return buffer.release();
  });
}

void TF_DeleteBuffer(TF_Buffer* buffer) {
  if (buffer == nullptr) return;
  if (buffer->data_deallocator != nullptr) {
    buffer->data_deallocator(const_cast<void*>(buffer->data), buffer->length);
  }
  delete buffer;
}

TF_Buffer TF_GetBuffer(TF_Buffer* buffer) { return buffer ? *buffer : TF_Buffer{nullptr, 0, nullptr}; }

}  // extern "C"
