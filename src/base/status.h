// SPDX-License-Identifier: Apache-2.0
// Status is absl::Status. Expected failures are return values; no exception crosses a folder.
// The error makers take pieces that absl::StrCat accepts, so a message reads in one line at the place of failure.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace millrace {

using absl::Status;
using absl::StatusOr;

#define MR_ERROR_MAKER(Name)                         \
  template <typename... Args>                        \
  [[nodiscard]] Status Name(const Args&... args) {   \
    return absl::Name##Error(absl::StrCat(args...)); \
  }
MR_ERROR_MAKER(Cancelled)
MR_ERROR_MAKER(Unknown)
MR_ERROR_MAKER(InvalidArgument)
MR_ERROR_MAKER(DeadlineExceeded)
MR_ERROR_MAKER(NotFound)
MR_ERROR_MAKER(AlreadyExists)
MR_ERROR_MAKER(PermissionDenied)
MR_ERROR_MAKER(ResourceExhausted)
MR_ERROR_MAKER(FailedPrecondition)
MR_ERROR_MAKER(Aborted)
MR_ERROR_MAKER(OutOfRange)
MR_ERROR_MAKER(Unimplemented)
MR_ERROR_MAKER(Internal)
MR_ERROR_MAKER(Unavailable)
MR_ERROR_MAKER(DataLoss)
#undef MR_ERROR_MAKER

// The same code, with `prefix` before the message. OK stays OK.
inline Status Annotate(const Status& s, absl::string_view prefix) {
  return s.ok() ? s : Status(s.code(), absl::StrCat(prefix, s.message()));
}

#define MR_RETURN_IF_ERROR(expr)                                  \
  do {                                                            \
    ::absl::Status mr_status_ = (expr);                           \
    if (__builtin_expect(!mr_status_.ok(), 0)) return mr_status_; \
  } while (0)

#define MR_CONCAT_INNER_(a, b) a##b
#define MR_CONCAT_(a, b) MR_CONCAT_INNER_(a, b)
#define MR_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr)                     \
  auto tmp = (expr);                                                  \
  if (__builtin_expect(!tmp.ok(), 0)) return std::move(tmp).status(); \
  lhs = *std::move(tmp)
// MR_ASSIGN_OR_RETURN(auto x, F());  or  MR_ASSIGN_OR_RETURN(x, F());
#define MR_ASSIGN_OR_RETURN(lhs, ...) MR_ASSIGN_OR_RETURN_IMPL_(MR_CONCAT_(mr_or_, __LINE__), lhs, (__VA_ARGS__))

}  // namespace millrace
