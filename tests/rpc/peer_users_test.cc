// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/peer_users.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace millrace::grpc_transport {
namespace {

constexpr int kPort = 0xB265;

// A row of /proc/net/tcp: whose end at `address` is connected to port kPort.
std::string Row(const std::string& address, const std::string& state, unsigned user) {
  const std::string ours = address.size() > 13 ? "00000000000000000000000001000000" : "0100007F";
  return absl::StrCat(
      "   0: ", address, " ", ours, ":B265 ", state, " 00000000:00000000 00:00000000 00000000 ", user, " 0 61 1 x\n");
}

class PeerUsersTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = absl::StrCat(testing::TempDir(), "/peer_users_", env_.Random64());
    ASSERT_TRUE(env_.CreateDirs(absl::StrCat(root_, "/proc/net")).ok());
  }
  void Write(const std::string& file, const std::string& rows) {
    const std::string text = absl::StrCat("  sl  local_address rem_address   st tx_queue ...\n", rows);
    ASSERT_TRUE(WriteFileAtomically(env_, absl::StrCat(root_, "/proc/net/", file), text).ok());
  }
  Status Check(const std::string& peer) { return PeerUsers(env_, kPort, root_).CheckOwn(peer); }
  std::string Refusal(const std::string& peer) {
    const Status said = Check(peer);
    EXPECT_EQ(said.code(), absl::StatusCode::kPermissionDenied) << said;
    return std::string(said.message());
  }

  Env& env_ = Env::Default();
  const unsigned me_ = geteuid();
  std::string root_;
};

TEST_F(PeerUsersTest, TellsUsersApart) {
  Write("tcp", Row("0100007F:1388", "01", me_) + Row("0100007F:1389", "01", me_ + 7) + Row("0100007F:138A", "01", 0));
  EXPECT_TRUE(Check("ipv4:127.0.0.1:5000").ok()) << Check("ipv4:127.0.0.1:5000");
  EXPECT_TRUE(absl::StartsWith(Refusal("ipv4:127.0.0.1:5001"), absl::StrCat("user ", me_ + 7, " at ")));
  EXPECT_TRUE(Check("ipv4:127.0.0.1:5002").ok());  // root
  EXPECT_TRUE(absl::StrContains(Refusal("ipv4:127.0.0.1:5003"), "no process"));
  EXPECT_TRUE(absl::StrContains(Refusal("ipv4:127.0.0.2:5000"), "no process"));
}

TEST_F(PeerUsersTest, KnowsBothVersionsOfAddresses) {
  Write("tcp", Row("0100007F:1388", "01", me_));
  Write("tcp6", Row("00000000000000000000000001000000:1389", "01", me_));
  EXPECT_TRUE(Check("ipv6:[::ffff:127.0.0.1]:5000").ok());  // a client of IPv4 at a server of both
  EXPECT_TRUE(Check("ipv6:[::1]:5001").ok());
  EXPECT_TRUE(Check("ipv6:%5B::1%5D:5001").ok());
  Refusal("ipv6:[::1]:5000");
}

// What has no process any more has the number of root in the kernel's list.
TEST_F(PeerUsersTest, EndedConnectionsAreNobodys) {
  Write("tcp", Row("0100007F:1388", "06", 0) + Row("0100007F:1389", "04", 0) + Row("0100007F:138A", "0A", me_));
  for (const char* peer : {"ipv4:127.0.0.1:5000", "ipv4:127.0.0.1:5001", "ipv4:127.0.0.1:5002"}) Refusal(peer);
}

TEST_F(PeerUsersTest, WhatCannotBeToldIsRefused) {
  EXPECT_TRUE(absl::StrContains(Refusal("ipv4:127.0.0.1:5000"), "cannot be told"));  // no table
  Write("tcp", "rubbish\n 0: x:y z:w 01 a b c d e\n\n 1: 0100007F:1388 0100007F:B265 01\n");
  for (const char* peer : {"ipv4:127.0.0.1:5000", "", "unix:/tmp/x", "ipv4:127.0.0.1", "ipv4:localhost:5000"})
    Refusal(peer);
}

TEST_F(PeerUsersTest, NewConnectionsAreLookedUpAtOnce) {
  Write("tcp", Row("0100007F:1388", "01", me_));
  PeerUsers users(env_, kPort, root_);
  EXPECT_TRUE(users.CheckOwn("ipv4:127.0.0.1:5000").ok());
  Write("tcp", Row("0100007F:1389", "01", me_));
  EXPECT_TRUE(users.CheckOwn("ipv4:127.0.0.1:5001").ok());
  EXPECT_FALSE(users.CheckOwn("ipv4:127.0.0.1:5000").ok());
}

}  // namespace
}  // namespace millrace::grpc_transport
