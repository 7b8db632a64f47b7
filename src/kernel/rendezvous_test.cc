// SPDX-License-Identifier: Apache-2.0
#include "kernel/rendezvous.h"

#include <gtest/gtest.h>

#include "kernel/edge_key.h"

namespace millrace {
namespace {

Status Receive(Rendezvous& r, const std::string& key) {
  Status got = Unavailable("not yet");
  r.RecvAsync(key, [&got](const Status& s, Tensor, bool) { got = s; });
  return got;
}

// A key outside of loops is remembered, so that its second use is an error. Those of an iteration go when both sides
// have met: a loop may have more iterations than fit into memory.
TEST(RendezvousTest, ForgetsTheKeysOfIterationsThatAreOver) {
  const RefPtr<Rendezvous> r = NewLocalRendezvous();
  const std::string once = EdgeKey{5}.ToString(), looped = EdgeKey{5, 7, 3}.ToString();
  for (const std::string& key : {once, looped}) {
    EXPECT_TRUE(r->Send(key, Tensor::Scalar(1.0f), false).ok());
    EXPECT_TRUE(absl::IsAborted(r->Send(key, Tensor::Scalar(1.0f), false)));
    EXPECT_TRUE(Receive(*r, key).ok());
  }
  EXPECT_TRUE(absl::IsAborted(r->Send(once, Tensor::Scalar(1.0f), false)));
  EXPECT_TRUE(absl::IsAborted(Receive(*r, once)));
  EXPECT_TRUE(r->Send(looped, Tensor::Scalar(1.0f), false).ok());
  EXPECT_TRUE(Receive(*r, looped).ok());
}

TEST(RendezvousTest, AbortEndsWhoWaitsAndWhoComesLater) {
  const RefPtr<Rendezvous> r = NewLocalRendezvous();
  int ended = 0;
  for (const char* key : {"a;0:0", "b;1:1"}) {
    r->RecvAsync(key, [&ended](const Status& s, Tensor, bool) { ended += absl::IsCancelled(s); });
  }
  r->Abort(Cancelled("enough"));
  EXPECT_EQ(ended, 2);
  EXPECT_TRUE(absl::IsCancelled(r->Send("c;0:0", Tensor::Scalar(1.0f), false)));
  EXPECT_TRUE(absl::IsCancelled(Receive(*r, "a;0:0")));
}

}  // namespace
}  // namespace millrace
