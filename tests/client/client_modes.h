// SPDX-License-Identifier: Apache-2.0
// For tests that are compiled twice, once returning results, once throwing (MILLRACE_EXCEPTIONS).
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <utility>

#include "millrace/status.h"

#if MILLRACE_EXCEPTIONS
#define CLIENT_TEST(name) TEST(ThrowingClientTest, name)
#else
#define CLIENT_TEST(name) TEST(ReturningClientTest, name)
#endif

inline namespace MILLRACE_CLIENT {

// The value of what must not fail.
template <typename T>
T Value(T v) {
  return v;
}
template <typename T>
T Value(millrace::Result<T> r) {
  EXPECT_TRUE(r.ok()) << r.status().message();
  return *std::move(r);
}
inline void Succeed(const millrace::Status& s) { EXPECT_TRUE(s.ok()) << s.message(); }

// How a call ends, and what it says.
struct Ending {
  TF_Code code = TF_OK;
  std::string message;
};
template <typename F>
Ending EndOf(F call) {
#if MILLRACE_EXCEPTIONS
  try {
    (void)call();
    return {};
  } catch (const millrace::Error& e) {
    return {e.code(), e.what()};
  }
#else
  const auto result = call();
  if constexpr (std::is_same_v<std::decay_t<decltype(result)>, millrace::Status>) {
    return {result.code(), result.message()};
  } else {
    return {result.status().code(), result.status().message()};
  }
#endif
}
template <typename F>
TF_Code CodeOf(F call) {
  return EndOf(call).code;
}

}  // namespace MILLRACE_CLIENT

// A call that returns Done and must not fail.
#if MILLRACE_EXCEPTIONS
#define MUST(call) call
#else
#define MUST(call) Succeed(call)
#endif
