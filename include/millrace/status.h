// SPDX-License-Identifier: Apache-2.0
// How the C++ client reports errors: as Result<T>, or, with MILLRACE_EXCEPTIONS defined as 1 before the first include,
// by throwing millrace::Error. The two forms live in different inline namespaces, so that a program may use both, in
// different source files.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "millrace/c_api.h"

#ifndef MILLRACE_EXCEPTIONS
#define MILLRACE_EXCEPTIONS 0
#endif
#if MILLRACE_EXCEPTIONS
#define MILLRACE_CLIENT throwing
#else
#define MILLRACE_CLIENT returning
#endif

namespace millrace {
inline namespace MILLRACE_CLIENT {

// The library's functions, also where TensorFlow's of the same names are loaded.
inline const MR_Api& Api() {
  static const MR_Api& api = *MR_GetApi();
  return api;
}

// How a call went: TF_OK, or the kind of error and what is wrong, where, got and wanted.
class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  // An error of this kind (or TF_OK).
  Status(TF_Code code, std::string message) : code_(code), message_(std::move(message)) {}
  // Whether there is no error.
  bool ok() const { return code_ == TF_OK; }
  // The kind of error, TF_INVALID_ARGUMENT and so on.
  TF_Code code() const { return code_; }
  // What is wrong; empty where nothing is.
  const std::string& message() const { return message_; }

 private:
  TF_Code code_ = TF_OK;
  std::string message_;
};

// What is thrown with MILLRACE_EXCEPTIONS; what() is the status's message.
class Error : public std::runtime_error {
 public:
  // Of a status that is not ok.
  explicit Error(const Status& s) : std::runtime_error(s.message()), code_(s.code()) {}
  // The kind of error.
  TF_Code code() const { return code_; }

 private:
  TF_Code code_;
};

// A value, or why there is none. Reading the value of a failed result gives a default-constructed one.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}        // NOLINT: like the value itself
  Result(Status error) : status_(std::move(error)) {}  // NOLINT: like the error itself
  // Whether there is a value.
  bool ok() const { return status_.ok(); }
  // The same, for `if (result)`.
  explicit operator bool() const { return ok(); }
  // Why there is no value.
  const Status& status() const { return status_; }
  // The value; look at ok() before.
  const T& operator*() const& { return value_; }
  T& operator*() & { return value_; }
  T operator*() && { return std::move(value_); }  // a value, so that a loop over *f() is sound
  // A member of the value; look at ok() before.
  const T* operator->() const { return &value_; }
  T* operator->() { return &value_; }

 private:
  Status status_;
  T value_{};
};

// What functions return: with exceptions T and void, without a Result<T> and a Status.
#if MILLRACE_EXCEPTIONS
template <typename T>
using Returned = T;
using Done = void;
#else
template <typename T>
using Returned = Result<T>;  // T, when errors are thrown
using Done = Status;         // void, when errors are thrown
#endif

namespace internal {

// A TF_Status for the calls of one function.
class CallStatus {
 public:
  CallStatus() : s_(Api().NewStatus()) {}
  ~CallStatus() { Api().DeleteStatus(s_); }
  CallStatus(const CallStatus&) = delete;
  CallStatus& operator=(const CallStatus&) = delete;
  operator TF_Status*() const { return s_; }  // NOLINT: passed where a TF_Status* goes
  bool ok() const { return Api().GetCode(s_) == TF_OK; }
  Status Get() const { return ok() ? Status() : Status(Api().GetCode(s_), Api().Message(s_)); }

 private:
  TF_Status* s_;
};

template <typename T>
Returned<T> Give(const Status& status, T value) {
#if MILLRACE_EXCEPTIONS
  if (!status.ok()) throw Error(status);
#else
  if (!status.ok()) return status;
#endif
  return value;
}

inline Done Finish(const Status& status) {
#if MILLRACE_EXCEPTIONS
  if (!status.ok()) throw Error(status);
#else
  return status;
#endif
}

}  // namespace internal
}  // namespace MILLRACE_CLIENT
}  // namespace millrace
