// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "passes/pass_testutil.h"
#include "passes/placement_groups.h"
#include "passes/placement_state.h"
#include "passes/prune.h"

namespace millrace {
namespace {

using PlaceTest = PassTest;

TEST_F(PlaceTest, KeepsTogetherWhatSharesAVariableOrAClass) {
  Node* v = On(1, Add("Variable", "v"));
  Node* x = Add("Placeholder", "x");
  Node* assign = Add("Assign", "assign", {v->output(0), x->output(0)});
  Node* read = Add("Identity", "read", {v->output(0)});
  Node* beside = Add("Work", "beside", {x->output(0)}, {}, {{"_class", std::vector<std::string>{"loc:@v"}}});
  std::vector<PlacedNode> placed;
  ASSERT_TRUE(Place(*graph_, env_, &placed).ok());
  EXPECT_EQ(v->assigned_device(), Device(1));
  EXPECT_EQ(assign->assigned_device(), Device(1));
  EXPECT_EQ(beside->assigned_device(), Device(1));
  EXPECT_EQ(x->assigned_device(), Device(1));     // where its readers are
  EXPECT_EQ(read->assigned_device(), Device(0));  // a value of it
  ASSERT_EQ(placed.size(), graph_->nodes().size());
  const auto of_assign = std::find_if(
      placed.begin(), placed.end(), [](const PlacedNode& n) { return n.name == "assign" && n.op == "Assign"; });
  ASSERT_NE(of_assign, placed.end());
  EXPECT_NE(of_assign->device.find("CPU:1"), std::string::npos) << of_assign->ToString();
  EXPECT_NE(of_assign->reason.find("colocated with v, asked for"), std::string::npos) << of_assign->ToString();
}

TEST_F(PlaceTest, GoesWhereTheKernelIs) {
  env_.devices.push_back(*DeviceName::Parse("/job:localhost/replica:0/task:0/device:ACC:0"));
  env_.has_kernel = [](const Node& n, const std::string& type) { return (n.op_name() == "Work") == (type == "ACC"); };
  Node* x = Add("Placeholder", "x");
  Node* work = Add("Work", "work", {x->output(0)});
  ASSERT_TRUE(Place(*graph_, env_).ok());
  EXPECT_EQ(x->assigned_device(), Device(0));
  EXPECT_EQ(work->assigned_device(), Device(2));
}

TEST_F(PlaceTest, SoftPlacementTakesAGroupWhereItsKernelsAre) {
  env_.devices.push_back(*DeviceName::Parse("/job:localhost/replica:0/task:0/device:ACC:0"));
  env_.has_kernel = [](const Node& n, const std::string& type) {
    return type == "CPU" || (n.op_name() != "Assign" && n.op_name() != "Join");
  };
  Node* v = Add("Variable", "v");
  v->set_device("/device:ACC:0");
  Node* x = Add("Work", "x", {Add("Placeholder", "in")->output(0)});
  x->set_device("/device:ACC:0");
  Add("Assign", "assign", {v->output(0), x->output(0)});
  Node* join = Add("Join", "join", {x->output(0), x->output(0)});
  join->set_device("/device:ACC:0");
  x->SetAttr("_class", std::vector<std::string>{"loc:@join"});
  ASSERT_TRUE(Place(*graph_, env_).ok());
  // Where the plan's compiler says which kernel is missing.
  EXPECT_EQ(v->assigned_device(), Device(2));
  EXPECT_EQ(join->assigned_device(), Device(2));
  env_.soft_placement = true;
  std::vector<PlacedNode> placed;
  ASSERT_TRUE(Place(*graph_, env_, &placed).ok());
  EXPECT_EQ(v->assigned_device(), Device(2));  // in all steps, whatever is beside it
  EXPECT_EQ(join->assigned_device(), Device(0));
  EXPECT_EQ(x->assigned_device(), Device(0));
  EXPECT_NE(
      std::count_if(
          placed.begin(), placed.end(),
          [](const PlacedNode& n) { return n.reason.find("what is asked for has not all kernels") != n.reason.npos; }),
      0);
}

TEST_F(PlaceTest, SaysWhatCannotBeMetUnlessPlacementIsSoft) {
  Node* x = Add("Placeholder", "x");
  x->set_device("/device:GPU:3");
  const Status s = Place(*graph_, env_);
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_NE(s.message().find("Cannot assign a device for node 'x' (Placeholder)"), s.message().npos) << s;
  EXPECT_NE(s.message().find("GPU:3"), s.message().npos) << s;
  env_.soft_placement = true;
  std::vector<PlacedNode> placed;
  ASSERT_TRUE(Place(*graph_, env_, &placed).ok());
  EXPECT_EQ(x->assigned_device(), Device(0));
  EXPECT_NE(placed.at(0).reason.find("by soft placement"), std::string::npos) << placed[0].reason;

  Node* one = On(0, Add("Work", "one", {x->output(0)}));
  On(1, Add("Work", "two", {x->output(0)}, {}, {{"_class", std::vector<std::string>{"loc:@" + one->name()}}}));
  ASSERT_TRUE(Place(*graph_, env_).ok());
  env_.soft_placement = false;
  x->set_device("");
  EXPECT_TRUE(absl::IsInvalidArgument(Place(*graph_, env_)));
}

// Of a worker's client: a parameter server is before it.
class PlaceInClusterTest : public PassTest {
 protected:
  PlaceInClusterTest() {
    env_.devices.clear();
    for (const char* task :
         {"/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"}) {
      env_.devices.push_back(*DeviceName::Parse(absl::StrCat(task, "/device:CPU:0")));
    }
    env_.client = 2;
  }
  Node* OnTask(const char* device, Node* n) {
    n->set_device(device);
    return n;
  }
  Node* Argument(int64_t index) {
    return Add("_Arg", absl::StrCat("arg", index).c_str(), {}, {}, {{"T", DType::kFloat}, {"index", index}});
  }
  Node* Result(Output of) {
    return Add("_Retval", absl::StrCat("result_", of.node->name()).c_str(), {of}, {},
               {{"T", DType::kFloat}, {"index", int64_t{0}}});
  }
};

TEST_F(PlaceInClusterTest, WhatAsksForNothingIsOnTheFirstTaskAndWhatAsksForAJobOnItsFirst) {
  Node* v = Add("Variable", "v");
  Node* assign = Add("Assign", "assign", {v->output(0), Argument(0)->output(0)});
  Node* w = OnTask("/job:worker", Add("Variable", "w"));
  Node* on_cpu = OnTask("/device:CPU:0", Add("Variable", "on_cpu"));
  ASSERT_TRUE(Place(*graph_, env_).ok());
  EXPECT_EQ(v->assigned_device(), Device(0));
  EXPECT_EQ(assign->assigned_device(), Device(0));
  EXPECT_EQ(w->assigned_device(), Device(1));
  EXPECT_EQ(on_cpu->assigned_device(), Device(0));
}

TEST_F(PlaceInClusterTest, ArgumentsAndSourcesAreWithTheirReadersAndResultsWithTheirValues) {
  Node* one = Argument(0);
  Node* work = OnTask("/job:worker/task:0", Add("Work", "work", {one->output(0)}));
  Node* result = Result(work->output(0));
  Node* source = Add("Placeholder", "source");
  OnTask("/job:worker/task:0", Add("Join", "both", {source->output(0), source->output(0)}));
  Node* split = Add("Placeholder", "split");
  Node* divided = Argument(1);
  OnTask("/job:worker/task:0", Add("Join", "here", {split->output(0), divided->output(0)}));
  OnTask("/job:worker/task:1", Add("Join", "there", {split->output(0), divided->output(0)}));
  Node* elsewhere = OnTask("/job:ps", Add("Placeholder", "elsewhere"));
  OnTask("/job:worker/task:0", Add("Work", "reads_elsewhere", {elsewhere->output(0)}));
  std::vector<PlacedNode> placed;
  ASSERT_TRUE(Place(*graph_, env_, &placed).ok());
  EXPECT_EQ(one->assigned_device(), Device(1));
  EXPECT_EQ(result->assigned_device(), Device(1));
  EXPECT_EQ(source->assigned_device(), Device(1));
  EXPECT_EQ(split->assigned_device(), Device(0)) << "its readers are not together";
  EXPECT_EQ(divided->assigned_device(), Device(2)) << "the client's";
  EXPECT_EQ(elsewhere->assigned_device(), Device(0)) << "it asks for it";
  const auto of_source =
      std::find_if(placed.begin(), placed.end(), [](const PlacedNode& n) { return n.name == "source"; });
  EXPECT_NE(of_source->reason.find("its readers are there"), std::string::npos) << of_source->ToString();
}

TEST_F(PlaceInClusterTest, WhatReadsAShapeIsWithTheValueButNotWithASource) {
  Node* source = Add("Placeholder", "source");
  Node* work = OnTask("/job:worker/task:1", Add("Work", "work", {source->output(0)}));
  Node* of_work = Add("ShapeOf", "of_work", {work->output(0)}, {}, {{"T", DType::kFloat}});
  Node* again = Add("ShapeOf", "again", {of_work->output(0)}, {}, {{"T", DType::kInt32}});
  Node* asked = OnTask("/job:worker/task:0", Add("ShapeOf", "asked", {work->output(0)}, {}, {{"T", DType::kFloat}}));
  Node* of_source = Add("ShapeOf", "of_source", {Add("Placeholder", "alone")->output(0)}, {}, {{"T", DType::kFloat}});
  std::vector<PlacedNode> placed;
  ASSERT_TRUE(Place(*graph_, env_, &placed).ok());
  for (const Node* n : {of_work, again}) EXPECT_EQ(n->assigned_device(), Device(2));
  EXPECT_EQ(asked->assigned_device(), Device(1)) << "it asks for it";
  EXPECT_EQ(of_source->assigned_device(), Device(0)) << "a source is placed by its readers";
  const auto said = std::find_if(placed.begin(), placed.end(), [](const PlacedNode& n) { return n.name == "of_work"; });
  EXPECT_NE(said->reason.find("whose shape it reads"), std::string::npos) << said->ToString();
}

TEST_F(PlaceInClusterTest, SoftPlacementStaysOnTheTaskThatIsAskedFor) {
  Node* x = OnTask("/job:worker/task:1/device:GPU:0", Add("Placeholder", "x"));
  Node* y = OnTask("/job:chief/device:GPU:0", Add("Placeholder", "y"));
  env_.soft_placement = true;
  EXPECT_TRUE(absl::IsInvalidArgument(Place(*graph_, env_))) << "there is no such job";
  y->set_device("/job:worker/device:GPU:0");
  ASSERT_TRUE(Place(*graph_, env_).ok());
  EXPECT_EQ(x->assigned_device(), Device(2));
  EXPECT_EQ(y->assigned_device(), Device(1));
}

TEST_F(PlaceInClusterTest, WhoMakesStateDecidesWhereItIsAndElseTheFirstThatUsesIt) {
  Node* v = OnTask("/job:worker/task:1", Add("Variable", "v"));
  Node* w = Add("Variable", "w");
  Node* x = Add("Placeholder", "x");
  Node* of_v = OnTask("/job:worker/task:0", Add("Assign", "of_v", {v->output(0), x->output(0)}));
  Node* of_w = OnTask("/job:worker/task:0", Add("Assign", "of_w", {w->output(0), x->output(0)}));
  Node* too = OnTask("/job:worker/task:1", Add("Assign", "too", {w->output(0), x->output(0)}));
  ASSERT_TRUE(Place(*graph_, env_).ok());
  for (const Node* n : {v, of_v}) EXPECT_EQ(n->assigned_device(), Device(2));
  for (const Node* n : {w, of_w, too}) EXPECT_EQ(n->assigned_device(), Device(1));
  // What asks for nothing itself must still be with `beside`, which asks for another place.
  Node* beside = OnTask("/job:ps", Add("Work", "beside", {x->output(0)}));
  OnTask("/job:worker", Add("Work", "no", {x->output(0)}, {}, {{"_class", std::vector<std::string>{"loc:@beside"}}}));
  EXPECT_TRUE(absl::IsInvalidArgument(Place(*graph_, env_))) << beside->device();
}

TEST_F(PlaceInClusterTest, StateIsInOnePlaceInAllSteps) {
  const auto place_step = [&](Output fetch) {
    const auto graph = PruneForRun(*graph_, {{}, {fetch}, {}});
    EXPECT_TRUE(graph.ok()) << graph.status();
    EXPECT_TRUE(AskAsWholeGraph(*graph_, env_, graph->get()).ok());
    EXPECT_TRUE(Place(**graph, env_).ok());
    return (*graph)->Find("v")->assigned_device();
  };
  env_.placement = std::make_shared<PlacementState>();
  Node* v = Add("Variable", "v");
  Node* read = Add("Identity", "read", {v->output(0)});
  Node* assign = OnTask("/job:worker/task:0", Add("Assign", "assign", {v->output(0), read->output(0)}));
  EXPECT_EQ(place_step(read->output(0)), Device(1)) << "the step does not assign, but others do";
  EXPECT_EQ(place_step(assign->output(0)), Device(1));
  assign->set_device("/job:worker/task:1");
  EXPECT_EQ(place_step(read->output(0)), Device(1)) << "it is there, whatever the graph has become";
}

}  // namespace
}  // namespace millrace
