// SPDX-License-Identifier: Apache-2.0
// TF_TString is our TString; and the older length-prefixed form.
#include <cstring>

#include "capi/encoded_strings.h"
#include "capi/internal.h"
#include "tensor/tstring.h"

using millrace::TString;

static_assert(sizeof(TF_TString) == sizeof(TString) && alignof(TF_TString) == alignof(TString));

namespace {

TString* Our(TF_TString* t) { return reinterpret_cast<TString*>(t); }
const TString* Our(const TF_TString* t) { return reinterpret_cast<const TString*>(t); }

}  // namespace

extern "C" {

void TF_StringInit(TF_TString* t) {
  if (t) std::memset(static_cast<void*>(t), 0, sizeof(*t));
}

void TF_StringCopy(TF_TString* dst, const char* src, size_t size) {
  if (dst == nullptr || (src == nullptr && size > 0)) return;
  millrace::capi::Try(0, [&] { return Our(dst)->Assign(absl::string_view(src, size)), 0; });
}

void TF_StringAssignView(TF_TString* dst, const char* src, size_t size) {
  if (dst == nullptr || (src == nullptr && size > 0)) return;
  Our(dst)->AssignView(absl::string_view(src, size));
}

const char* TF_StringGetDataPointer(const TF_TString* tstr) { return tstr ? Our(tstr)->data() : nullptr; }
TF_TString_Type TF_StringGetType(const TF_TString* str) {
  return str ? static_cast<TF_TString_Type>(Our(str)->kind()) : TF_TSTR_SMALL;
}
size_t TF_StringGetSize(const TF_TString* tstr) { return tstr ? Our(tstr)->size() : 0; }
size_t TF_StringGetCapacity(const TF_TString* str) { return str ? Our(str)->capacity() : 0; }
void TF_StringDealloc(TF_TString* tstr) {
  if (tstr) Our(tstr)->Clear();
}

size_t TF_StringEncodedSize(size_t len) { return millrace::capi::EncodedSize(len); }

size_t TF_StringEncode(const char* src, size_t src_len, char* dst, size_t dst_len, TF_Status* status) {
  return millrace::capi::GuardedOr<size_t>(status, 0, [&]() -> millrace::StatusOr<size_t> {
    if (src_len > 0) MR_CAPI_REQUIRE(src);
    MR_CAPI_REQUIRE(dst);
    const size_t size = TF_StringEncodedSize(src_len);
    if (size < src_len || size > dst_len) {
      return millrace::InvalidArgument("dst_len is ", dst_len, ", but ", src_len, " characters need ", size, " bytes");
    }
    millrace::capi::EncodeString(absl::string_view(src, src_len), dst);
    return size;
  });
}

size_t TF_StringDecode(const char* src, size_t src_len, const char** dst, size_t* dst_len, TF_Status* status) {
  return millrace::capi::GuardedOr<size_t>(status, 0, [&]() -> millrace::StatusOr<size_t> {
    MR_CAPI_REQUIRE(src);
    MR_CAPI_REQUIRE(dst);
    MR_CAPI_REQUIRE(dst_len);
    absl::string_view s;
    MR_ASSIGN_OR_RETURN(const size_t used, millrace::capi::DecodeString(absl::MakeSpan(src, src_len), &s));
    *dst = s.data();
    *dst_len = s.size();
    return used;
  });
}

}  // extern "C"
