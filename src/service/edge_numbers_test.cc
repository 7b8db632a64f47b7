// SPDX-License-Identifier: Apache-2.0
#include "service/edge_numbers.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace millrace {
namespace {

constexpr char kHere[] = "/job:x/replica:0/task:0/device:CPU:0";
constexpr char kBeside[] = "/job:x/replica:0/task:0/device:CPU:1";
constexpr char kFar[] = "/job:x/replica:0/task:1/device:CPU:0";

class EdgeNumbersTest : public ::testing::Test {
 protected:
  EdgeNumbersTest() {
    const auto any = [](ShapeContext&) { return absl::OkStatus(); };
    constexpr char kAttrs[] =
        "tensor_name:string; send_device:string; send_device_incarnation:int; recv_device:string; "
        "client_terminated:bool=false | S";
    registry_.Add(absl::StrCat("_Send(tensor:T) -> () | T:type; ", kAttrs)).Traits({OpTrait::kTransfer}).Shape(any);
    registry_.Add(absl::StrCat("_Recv() -> (tensor:tensor_type) | tensor_type:type; ", kAttrs))
        .Traits({OpTrait::kTransfer, OpTrait::kWaits})
        .Shape(any);
    for (const char* device : {kHere, kBeside, kFar}) {
      PartitionToRegister& p = parts_.emplace_back();
      p.partition.device = device;
      p.partition.graph = std::make_unique<Graph>(&registry_);
    }
  }
  // Adds the Recv, and at the sender a Send of another received value.
  Node* Recv(size_t part, const char* from, const char* name, bool of_client = false) {
    AttrMap attrs;
    attrs["tensor_type"] = DType::kFloat;
    attrs["tensor_name"] = std::string(name);
    attrs["send_device"] = std::string(from);
    attrs["recv_device"] = parts_[part].partition.device;
    attrs["send_device_incarnation"] = int64_t{7};
    attrs["client_terminated"] = of_client;
    auto node = parts_[part].partition.graph->AddNode(
        {.name = absl::StrCat("_recv_", serial_++), .op = "_Recv", .attrs = std::move(attrs)});
    EXPECT_TRUE(node.ok()) << node.status();
    return *node;
  }
  Node* Send(size_t part, Output value, const char* to, const char* name) {
    AttrMap attrs;
    attrs["T"] = DType::kFloat;
    attrs["tensor_name"] = std::string(name);
    attrs["send_device"] = parts_[part].partition.device;
    attrs["recv_device"] = std::string(to);
    attrs["send_device_incarnation"] = int64_t{7};
    auto node = parts_[part].partition.graph->AddNode(
        {.name = absl::StrCat("_send_", serial_++), .op = "_Send", .inputs = {value}, .attrs = std::move(attrs)});
    EXPECT_TRUE(node.ok()) << node.status();
    return *node;
  }
  Status Assign() {
    return edges_.Assign(absl::MakeSpan(parts_), [](const std::string& device) -> StatusOr<PartitionToRegister::Peer> {
      const bool is_far = device == kFar;
      if (!is_far && device != kHere && device != kBeside) return NotFound("no worker has ", device);
      return PartitionToRegister::Peer{
          0, is_far ? "/job:x/replica:0/task:1" : "/job:x/replica:0/task:0", is_far ? 11u : 10u};
    });
  }
  static int64_t NumberOf(const Node* n) { return n->Attr<int64_t>(kEdgeAttr).value_or(-1); }

  OpRegistry registry_;
  std::vector<PartitionToRegister> parts_;
  EdgeNumbers edges_;
  int serial_ = 0;
};

TEST_F(EdgeNumbersTest, BothEndsHaveTheNumberAndTheReceiverTheSource) {
  Node* const fed = Recv(0, kHere, "feed:x:0", /*of_client=*/true);
  Node* const to_far = Send(0, fed->output(0), kFar, "edge");
  Node* const to_beside = Send(0, fed->output(0), kBeside, "edge");
  Node* const beside = Recv(1, kHere, "edge");
  Node* const far = Recv(2, kHere, "edge");
  Node* const other = Recv(2, kBeside, "edge");
  const Status s = Assign();
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(NumberOf(to_far), NumberOf(far));
  EXPECT_EQ(NumberOf(to_beside), NumberOf(beside));
  const std::set<int64_t> all = {NumberOf(fed), NumberOf(far), NumberOf(beside), NumberOf(other)};
  EXPECT_EQ(all.size(), 4u);
  EXPECT_EQ(*edges_.OfClientTensor("feed:x:0"), NumberOf(fed));
  EXPECT_TRUE(absl::IsNotFound(edges_.OfClientTensor("edge").status()));
  EXPECT_TRUE(parts_[0].peers.empty()) << "nobody knows how large the value is";
  EXPECT_TRUE(parts_[1].peers.empty()) << "the other device is of the same task";
  ASSERT_EQ(parts_[2].peers.size(), 2u);
  for (const PartitionToRegister::Peer& source : parts_[2].peers) {
    EXPECT_EQ(source.task, "/job:x/replica:0/task:0");
    EXPECT_EQ(source.incarnation, 10u);
    EXPECT_FALSE(source.is_pushed);
  }
}

TEST_F(EdgeNumbersTest, SmallValuesOfKnownSizeArePushed) {
  Node* const fed = Recv(0, kHere, "feed:x:0", /*of_client=*/true);
  const std::map<std::string, PartialShape> shapes = {
      {"scalar", PartialShape::Scalar()},
      {"rows", PartialShape::Of({32, 128})},
      {"large", PartialShape::Of({32, 1024})},
      {"huge", PartialShape::Of({int64_t{1} << 62})},
      {"batch", PartialShape::Of({-1, 2})}};
  std::map<int64_t, std::string> names;
  for (const auto& [name, shape] : shapes) {
    Send(0, fed->output(0), kFar, name.c_str());
    Recv(2, kHere, name.c_str())->set_shape(0, shape);
  }
  Send(0, fed->output(0), kBeside, "beside");
  Recv(1, kHere, "beside")->set_shape(0, PartialShape::Scalar());
  const Status s = Assign();
  ASSERT_TRUE(s.ok()) << s;
  for (const Node* n : parts_[2].partition.graph->nodes()) {
    names[NumberOf(n)] = n->Attr<std::string>("tensor_name").value_or("");
  }
  std::set<std::string> sent, received;
  for (const PartitionToRegister::Peer& peer : parts_[0].peers) {
    EXPECT_TRUE(peer.is_pushed && peer.incarnation == 11u && peer.task == "/job:x/replica:0/task:1");
    sent.insert(names[peer.edge]);
  }
  for (const PartitionToRegister::Peer& peer : parts_[2].peers) {
    if (peer.is_pushed) received.insert(names[peer.edge]);
  }
  EXPECT_EQ(sent, (std::set<std::string>{"scalar", "rows"}));
  EXPECT_EQ(received, sent);
  EXPECT_EQ(parts_[2].peers.size(), shapes.size());
  EXPECT_TRUE(parts_[1].peers.empty());
}

TEST_F(EdgeNumbersTest, ADeviceThatNoWorkerHasIsAnError) {
  Recv(2, "/job:x/replica:0/task:5/device:CPU:0", "edge");
  EXPECT_TRUE(absl::IsNotFound(Assign()));
}

}  // namespace
}  // namespace millrace
