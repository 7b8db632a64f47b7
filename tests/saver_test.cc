// SPDX-License-Identifier: Apache-2.0
// Savers, over real files and sessions.
#include "client/saver.h"

#include <gtest/gtest.h>

#include "client/variables.h"
#include "graph/graph_def.h"
#include "io/checkpoint_reader.h"
#include "io/checkpoint_state.h"
#include "system/system.h"

namespace millrace {
namespace {

class SaverTest : public testing::Test {
 protected:
  void SetUp() override {
    Env& env = Env::Default();
    folder_ = JoinPath(testing::TempDir(), absl::StrCat("millrace-saver-", env.Random64()));
    ASSERT_TRUE(env.CreateDirs(folder_).ok());
    millrace::GraphLock lock(&graph_->mu);
    GraphBuilder b(&graph_->graph);
    auto w = AddVariable(b, "w", b.Const(Tensor::Vector<float>({1, 2})));
    ASSERT_TRUE(w.ok()) << w.status();
    w_ = *w;
    r_ = b.WithName("r").OpNode("VarHandleOp", {}, {{"dtype", DType::kInt64}, {"shape", PartialShape::Scalar()}});
    r_read_ = b.WithName("r/Read/ReadVariableOp").Op("ReadVariableOp", {r_->output(0)}, {{"dtype", DType::kInt64}});
    r_init_ = b.OpNode("AssignVariableOp", {r_->output(0), b.Scalar<int64_t>(5)});
    change_ = b.OpNode("AssignAdd", {w_.ref, b.Const(Tensor::Vector<float>({10, 10}))});
    ASSERT_TRUE(b.status().ok()) << b.status();
    session_ = NewSession();
  }
  void TearDown() override {
    Env& env = Env::Default();
    const auto names = env.ListDir(folder_);
    for (const std::string& name : *names) (void)env.DeleteFile(JoinPath(folder_, name));
    (void)env.DeleteDir(folder_);
  }

  std::unique_ptr<Session> NewSession() {
    auto session = System::Default().NewSession(graph_, wire::ConfigProto());
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  void Run(Node* target) {
    std::vector<Tensor> none;
    Node* const targets[] = {target};
    const Status s = session_->Run(nullptr, {}, {}, {}, targets, &none, nullptr);
    ASSERT_TRUE(s.ok()) << s;
  }
  void Init() {
    Run(w_.assign);
    Run(r_init_);
  }
  std::string Values(Session& session) {
    std::vector<Tensor> out;
    const Status s = session.Run(nullptr, {}, {}, {w_.read, r_read_}, {}, &out, nullptr);
    if (!s.ok()) return std::string(s.message());
    return absl::StrCat(out[0].DebugString(), " ", out[1].DebugString());
  }
  std::string Path(absl::string_view name) const { return JoinPath(folder_, name); }

  std::string folder_;
  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  ClientVariable w_;
  Node* r_ = nullptr;
  Output r_read_;
  Node* r_init_ = nullptr;
  Node* change_ = nullptr;
  std::unique_ptr<Session> session_;
};

TEST_F(SaverTest, SavesAndRestores) {
  auto saver = Saver::Create(Env::Default(), graph_, {});
  ASSERT_TRUE(saver.ok()) << saver.status();
  Init();
  const std::string before = Values(*session_);
  auto path = (*saver)->Save(*session_, Path("m"), 3);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, Path("m-3"));
  Run(change_);
  EXPECT_NE(Values(*session_), before);
  ASSERT_TRUE((*saver)->Restore(*session_, *path).ok());
  EXPECT_EQ(Values(*session_), before);
  std::unique_ptr<Session> fresh = NewSession();
  ASSERT_TRUE((*saver)->Restore(*fresh, *path).ok());
  EXPECT_EQ(Values(*fresh), before);
  EXPECT_TRUE(absl::IsNotFound((*saver)->Restore(*fresh, Path("m-4"))));
}

TEST_F(SaverTest, NodesHaveTensorFlowsNames) {
  auto saver = Saver::Create(Env::Default(), graph_, {});
  ASSERT_TRUE(saver.ok());
  millrace::GraphLock lock(&graph_->mu);
  for (const char* name :
       {"save/filename/input", "save/filename", "save/Const", "save/SaveV2/tensor_names",
        "save/SaveV2/shape_and_slices", "save/SaveV2", "save/control_dependency", "save/RestoreV2/tensor_names",
        "save/RestoreV2/shape_and_slices", "save/RestoreV2", "save/Assign", "save/Identity", "save/AssignVariableOp",
        "save/restore_all"}) {
    EXPECT_NE(graph_->graph.Find(name), nullptr) << name;
  }
  EXPECT_EQ((*saver)->def().filename_tensor_name, "save/Const:0");
  EXPECT_EQ((*saver)->def().save_tensor_name, "save/control_dependency:0");
}

TEST_F(SaverTest, KeepsTheNewest) {
  SaverOptions options;
  options.max_to_keep = 2;
  auto saver = Saver::Create(Env::Default(), graph_, {}, options);
  ASSERT_TRUE(saver.ok());
  Init();
  for (int step = 0; step < 4; ++step) ASSERT_TRUE((*saver)->Save(*session_, Path("m"), step).ok());
  EXPECT_EQ(*LatestCheckpoint(Env::Default(), folder_), Path("m-3"));
  EXPECT_EQ((*saver)->checkpoints(), (std::vector<std::string>{Path("m-2"), Path("m-3")}));
  EXPECT_EQ(*Env::Default().ListDir(folder_),
            (std::vector<std::string>{"checkpoint", "m-2.data-00000-of-00001", "m-2.index", "m-2.meta",
                                      "m-3.data-00000-of-00001", "m-3.index", "m-3.meta"}));
  // A newest one that somebody deleted is passed over.
  ASSERT_TRUE(Env::Default().DeleteFile(Path("m-3.index")).ok());
  EXPECT_EQ(*LatestCheckpoint(Env::Default(), folder_), Path("m-2"));
}

TEST_F(SaverTest, KeepsOneWhenOneIsAskedFor) {
  SaverOptions options;
  options.max_to_keep = 1;
  auto saver = Saver::Create(Env::Default(), graph_, {}, options);
  ASSERT_TRUE(saver.ok());
  Init();
  for (int step = 0; step < 3; ++step) ASSERT_TRUE((*saver)->Save(*session_, Path("m"), step).ok());
  EXPECT_EQ((*saver)->checkpoints(), std::vector<std::string>{Path("m-2")});
  EXPECT_EQ(*Env::Default().ListDir(folder_),
            (std::vector<std::string>{"checkpoint", "m-2.data-00000-of-00001", "m-2.index", "m-2.meta"}));
}

TEST_F(SaverTest, KeepsOneEveryFewHoursForGood) {
  SaverOptions options;
  options.max_to_keep = 2;
  options.keep_every_hours = 1;
  auto saver = Saver::Create(Env::Default(), graph_, {}, options);
  ASSERT_TRUE(saver.ok()) << saver.status();
  EXPECT_EQ((*saver)->def().keep_checkpoint_every_n_hours, 1);
  Init();
  // Five checkpoints, written every 39 minutes from 39 minutes after the saver was made on.
  const absl::Time made = Env::Default().Now();
  std::vector<Saver::Checkpoint> written;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE((*saver)->Save(*session_, Path("m"), i, false).ok());
    written.push_back({Path(absl::StrCat("m-", i)), made + (i + 1) * absl::Minutes(39)});
    (*saver)->set_checkpoints({});
  }
  (*saver)->set_checkpoints(written);
  ASSERT_TRUE((*saver)->Save(*session_, Path("m"), 5, false).ok());
  // Those of 78 and 156 minutes are the first after one and after two hours.
  EXPECT_EQ((*saver)->checkpoints(), (std::vector<std::string>{Path("m-4"), Path("m-5")}));
  std::vector<std::string> there;
  const StatusOr<std::vector<std::string>> files = Env::Default().ListDir(folder_);
  ASSERT_TRUE(files.ok());
  for (const std::string& name : *files) {
    if (name.ends_with(".index")) there.push_back(name);
  }
  EXPECT_EQ(there, (std::vector<std::string>{"m-1.index", "m-3.index", "m-4.index", "m-5.index"}));
  EXPECT_FALSE((*saver)->KeepEvery(-1).ok());
  EXPECT_EQ((*Saver::FromDef(Env::Default(), graph_, (*saver)->def()))->def().keep_checkpoint_every_n_hours, 1);
}

TEST_F(SaverTest, PartsUnderOneName) {
  auto saver = Saver::Create(Env::Default(), graph_, {{"whole", w_.ref.node, "4 0,2"}});
  ASSERT_TRUE(saver.ok()) << saver.status();
  Init();
  ASSERT_TRUE((*saver)->Save(*session_, Path("m"), -1, false).ok());
  auto reader = OpenCheckpoint(Env::Default(), Path("m"));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->Lookup("whole")->shape.ToString(), "[4]");
  EXPECT_TRUE(absl::IsInvalidArgument((*reader)->Read("whole").status()));
  Run(change_);
  ASSERT_TRUE((*saver)->Restore(*session_, Path("m")).ok());
}

TEST_F(SaverTest, UsesTheOpsOfAnImportedGraph) {
  auto saver = Saver::Create(Env::Default(), graph_, {});
  ASSERT_TRUE(saver.ok());
  auto again = Saver::FromDef(Env::Default(), graph_, (*saver)->def());
  ASSERT_TRUE(again.ok()) << again.status();
  Init();
  ASSERT_TRUE((*again)->Save(*session_, Path("m")).ok());
  ASSERT_TRUE((*again)->Restore(*session_, Path("m")).ok());
  wire::SaverDef bad = (*saver)->def();
  bad.save_tensor_name = "nothing:0";
  EXPECT_TRUE(absl::IsNotFound(Saver::FromDef(Env::Default(), graph_, bad).status()));
}

TEST_F(SaverTest, WrongUseLeavesTheGraphAlone) {
  int before = 0;
  {
    millrace::GraphLock lock(&graph_->mu);
    before = static_cast<int>(graph_->graph.nodes().size());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Saver::Create(Env::Default(), graph_, {{"x", nullptr, ""}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Saver::Create(Env::Default(), graph_, {{"x", w_.read.node, ""}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Saver::Create(Env::Default(), graph_, {{"", w_.ref.node, ""}}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(Saver::Create(Env::Default(), graph_, {{"x", w_.ref.node, ""}, {"x", r_, ""}}).status()));
  auto empty = MakeRef<SharedGraph>(&System::Default().ops());
  EXPECT_TRUE(absl::IsInvalidArgument(Saver::Create(Env::Default(), empty, {}).status()));
  millrace::GraphLock lock(&graph_->mu);
  EXPECT_EQ(static_cast<int>(graph_->graph.nodes().size()), before);
}

TEST_F(SaverTest, SavingBeforeInitialisationFails) {
  auto saver = Saver::Create(Env::Default(), graph_, {});
  ASSERT_TRUE(saver.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*saver)->Save(*session_, Path("m")).status()));
  EXPECT_TRUE(Env::Default().ListDir(folder_)->empty());
}

}  // namespace
}  // namespace millrace
