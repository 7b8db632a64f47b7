// SPDX-License-Identifier: Apache-2.0
// Some changed messages to each method of a server. The program `fuzz_frames` sends more of them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "frames/frame_fuzzer.h"

namespace millrace {
namespace {

class FramesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(FramesTest, EachIsAnsweredOnce) {
  const char* const given = std::getenv("MILLRACE_FUZZED_FRAMES");
  FrameFuzzer fuzzer(17);
  FrameCounts counts;
  EXPECT_EQ(fuzzer.Run(GetParam(), given ? std::atoll(given) : 1000, &counts), "");
  EXPECT_GT(counts.frames, 0);
  if (GetParam() == "Server.Else") {
    EXPECT_EQ(counts.accepted, 0);
  } else if (GetParam() != "Worker.RecvTensor" &&
             GetParam() != "Worker.RecvCollective") {  // what these ask for is gone
    EXPECT_GT(counts.accepted, 0) << "nothing that reaches the method: the messages are no use";
  }
}

INSTANTIATE_TEST_SUITE_P(All, FramesTest, ::testing::ValuesIn(FrameFuzzer::Methods()), [](const auto& tested) {
  std::string name = tested.param;
  name[name.find('.')] = '_';
  return name;
});

}  // namespace
}  // namespace millrace
