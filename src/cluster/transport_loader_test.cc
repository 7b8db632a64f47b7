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
  EXPECT_TRUE(absl::StrContains(transport.status().message(), "libgrpc++-dev")) << transport.status();
}

TEST(TransportLoader, WithoutGrpcTheProcessesOfAHostAreReached) {
  const auto transport = NewRpcTransport(Env::Default());
  ASSERT_TRUE(transport.ok()) << transport.status();
  EXPECT_TRUE((*transport)->Connect("localhost:1").ok());
  for (const char* address : {"example.com:2222", "10.0.0.1:2222"}) {
    const Status far = (*transport)->Connect(address).status();
    EXPECT_EQ(far.code(), absl::StatusCode::kUnimplemented) << far;
    EXPECT_TRUE(absl::StartsWith(far.message(), absl::StrCat(address, " is not of the loopback interface"))) << far;
  }
  RpcTransportOptions with_credentials;
  with_credentials.credentials.emplace();
  EXPECT_EQ(NewRpcTransport(Env::Default(), with_credentials).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace millrace
