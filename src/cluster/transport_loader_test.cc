// SPDX-License-Identifier: Apache-2.0
#include "cluster/transport_loader.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace millrace {
namespace {

// This program lies where the library is not, and the linker is not told either. tests/rpc/ has the library.
TEST(TransportLoader, SaysWhatToInstall) {
  const auto transport = NewGrpcTransport(Env::Default());
  ASSERT_EQ(transport.status().code(), absl::StatusCode::kUnimplemented) << transport.status();
  EXPECT_TRUE(absl::StrContains(transport.status().message(), "libmillrace_grpc.so")) << transport.status();
  EXPECT_TRUE(absl::StrContains(transport.status().message(), "apt-get install libgrpc++-dev")) << transport.status();
}

}  // namespace
}  // namespace millrace
