// SPDX-License-Identifier: Apache-2.0
#include "cluster/held_port.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace millrace {
namespace {

TEST(HeldPort, IsNobodyElsesUntilItIsGiven) {
  HostPort address;
  {
    const StatusOr<HeldPort> held = HeldPort::Take({"localhost", 0});
    ASSERT_TRUE(held.ok()) << held.status();
    address = held->address();
    EXPECT_EQ(address.host, "localhost");
    EXPECT_GT(address.port, 0);
    const Status second = HeldPort::Take(address).status();
    EXPECT_EQ(second.code(), absl::StatusCode::kUnavailable) << second;
    EXPECT_TRUE(absl::StrContains(second.message(), address.ToString())) << second;
  }
  EXPECT_TRUE(HeldPort::Take(address).ok());
}

TEST(HeldPort, RefusesOtherInterfaces) {
  for (const char* host : {"", "0.0.0.0", "example.com"}) {
    EXPECT_EQ(HeldPort::Take({host, 0}).status().code(), absl::StatusCode::kInvalidArgument) << host;
  }
}

}  // namespace
}  // namespace millrace
