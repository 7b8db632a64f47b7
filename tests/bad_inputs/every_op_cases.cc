// SPDX-License-Identifier: Apache-2.0
// Every op that is registered, with whatever its declaration lets pass: any status is a good answer. The same nodes are
// what `fuzz_blind` adds to graphs, so an op that is reached here is reached there.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "any_op.h"
#include "graph_run.h"
#include "system/system.h"

namespace millrace::bad_inputs {
namespace {

constexpr int kRounds = 8;         // of every op
constexpr int kMostRounds = 2000;  // of one that is not reached

struct Reason {
  const char* why;
  const char* ops;
};
constexpr Reason kReasons[] = {
    {"the runtime's own: no graph of a client may have it",
     "_Arg _Retval _Send _Recv _HostSend _HostRecv _Loop _HostCast _ListToArray _ArrayToList _CopyToHost "
     "_CopyFromHost _DeviceIndex"},
    {"what is inside of a loop cannot be fetched: graph_cases.cc, the loops of fuzz/graph_shaper.cc", "Enter RefEnter"},
    {"made by the compiler of ops that are here: python/tests/test_fusion.py",
     "_FusedConv2D _FusedDepthwiseConv2dNative _FusedMatMul"},
};

bool IsExcused(absl::string_view op) {
  for (const Reason& r : kReasons) {
    for (const absl::string_view name : absl::StrSplit(r.ops, ' ')) {
      if (name == op) return true;
    }
  }
  return false;
}

enum class Reached { kNo, kImported, kKernel };

// Whether a step came as far as `op`: it ended well, or its error names the op.
Reached RunOne(const OpDef& op, unsigned seed) {
  fuzz::Random random(seed);
  wire::GraphDef graph;
  fuzz::AddNodeOf(op, System::Default().ops(), random, &graph);
  if (seed % 4 != 0) fuzz::SetWay(static_cast<int32_t>(random() % (fuzz::kAllWays + 1)), &graph);
  const bool is_one_step = (fuzz::WayOf(graph) & fuzz::kAllAtOnce) != 0;
  Reached reached = Reached::kImported;
  const std::string named = absl::StrCat("(", op.name, ")");
  fuzz::RunInput(
      wire::Encode(graph),
      [&](absl::string_view what, const Status& s, absl::Span<const Tensor>) {
        if (what == "import") reached = Reached::kNo;
        if (what == "import" || what == "gradients") return;
        const bool had_it = is_one_step || what == op.name || what == "targets";
        if ((s.ok() && had_it) || absl::StrContains(s.message(), named)) reached = Reached::kKernel;
      },
      /*may_touch_files=*/true);
  return reached;
}

// Files are written where the process is: into a folder of its own. No string of the nodes is a path out of it.
class EveryOp : public testing::Test {
 protected:
  EveryOp() : before_(std::filesystem::current_path()), folder_(before_ / absl::StrCat("every_op.", getpid())) {
    std::filesystem::create_directory(folder_);
    std::filesystem::current_path(folder_);
  }
  ~EveryOp() override {
    std::filesystem::current_path(before_);
    std::error_code unused;
    std::filesystem::remove_all(folder_, unused);
  }

 private:
  const std::filesystem::path before_, folder_;
};

TEST_F(EveryOp, AnswersOddNodesWithAStatus) {
  fuzz::LimitMemory();
  const char* more = std::getenv("MILLRACE_FUZZ_ROUNDS");
  const int rounds = more != nullptr ? std::atoi(more) : kRounds;
  int64_t runs = 0;
  std::set<std::string> seen;
  for (const OpDef* op : System::Default().ops().All()) {
    seen.insert(op->name);
    const bool is_excused = IsExcused(op->name);
    Reached best = Reached::kNo;
    const int most = is_excused ? rounds : kMostRounds;
    for (int i = 0; i < rounds || (best != Reached::kKernel && i < most); ++i, ++runs) {
      best = std::max(best, RunOne(*op, static_cast<unsigned>(i + 1)));
    }
    if (is_excused) {
      EXPECT_NE(best, Reached::kKernel) << op->name << " is reached, and needs no reason";
    } else {
      EXPECT_EQ(best, Reached::kKernel) << op->name << (best == Reached::kNo ? " is never imported" : " never runs");
    }
  }
  for (const Reason& r : kReasons) {
    for (const absl::string_view name : absl::StrSplit(r.ops, ' ')) {
      EXPECT_TRUE(seen.contains(std::string(name))) << "no op " << name;
    }
  }
  std::printf("%lld graphs\n", static_cast<long long>(runs));
}

}  // namespace
}  // namespace millrace::bad_inputs
