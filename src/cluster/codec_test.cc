// SPDX-License-Identifier: Apache-2.0
// Messages as bytes: what comes back is what was sent, nothing large is copied on its way out, and bytes that are no
// message are refused, whatever they are.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "cluster/master_codec.h"
#include "cluster/worker_codec.h"
#include "tensor/handles.h"

namespace millrace {
namespace {

bool Same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::kString) return a.flat<TString>() == b.flat<TString>();
  return a.TotalBytes() == 0 || std::memcmp(a.raw(), b.raw(), a.TotalBytes()) == 0;
}

Tensor Filled(DType dtype, const Shape& shape) {
  Tensor t = *Tensor::Make(dtype, shape);
  auto* bytes = static_cast<unsigned char*>(t.mutable_raw());
  for (size_t i = 0; i < t.TotalBytes(); ++i)
    bytes[i] = static_cast<unsigned char>(dtype == DType::kBool ? i % 2 : i * 7 + 3);
  return t;
}

Tensor Strings() {
  std::string with_zero("a\0b", 3);
  return Tensor::Vector<TString>({TString(""), TString(with_zero), TString(std::string(100'000, 'x'))});
}

template <typename Message>
Message Sent(Message message) {
  StatusOr<absl::Cord> frame = EncodeMessage(message);
  EXPECT_TRUE(frame.ok()) << frame.status();
  Message back;
  if (frame.ok()) {
    const Status s = DecodeMessage(*frame, nullptr, &back);
    EXPECT_TRUE(s.ok()) << s;
  }
  return back;
}

RunStepRequest BigRequest() {
  RunStepRequest m;
  m.step = {{0xfedcba9876543210u, 7}, 123};
  m.parts.resize(3);
  m.parts[0].handle = -5;
  for (DType d : PlainTypes()) {
    m.parts[0].args.push_back(Filled(d, *Shape::Make({3, 5})));
    m.parts[0].args.push_back(Filled(d, Shape()));
    m.parts[0].args.push_back(Filled(d, *Shape::Make({4, 0, 2})));
    m.parts[0].args.push_back(Filled(d, *Shape::Make({1031})));
  }
  m.parts[2].handle = 9;
  m.parts[2].args = {Strings(), Tensor()};
  m.is_alone = true;
  m.max_threads = -1;
  m.order_seed = ~uint64_t{0};
  return m;
}

TEST(CodecTest, MessagesOfCollectivesComeBack) {
  const JoinCollectiveRequest m{
      .member = ~uint64_t{0},
      .device = "/job:w/replica:0/task:1/device:CPU:0",
      .incarnation = 3,
      .session = 4,
      .step = -5,
      .group_key = -6,
      .instance_key = 7,
      .iteration = 8,
      .group_size = 9,
      .claim = "sum",
      .has_source = true,
      .is_source = true,
      .dims = {2, 0, 3},
      .timeout_millis = 10};
  const JoinCollectiveRequest back = Sent(m);
  EXPECT_EQ(back.member, m.member);
  EXPECT_EQ(back.device, m.device);
  EXPECT_EQ(back.incarnation, 3u);
  EXPECT_EQ(back.session, 4u);
  EXPECT_EQ(back.step, -5);
  EXPECT_EQ(back.group_key, -6);
  EXPECT_EQ(back.instance_key, 7);
  EXPECT_EQ(back.iteration, 8);
  EXPECT_EQ(back.group_size, 9);
  EXPECT_EQ(back.claim, "sum");
  EXPECT_TRUE(back.has_source && back.is_source);
  EXPECT_EQ(back.dims, m.dims);
  EXPECT_EQ(back.timeout_millis, 10);
  const JoinCollectiveResponse told = Sent(JoinCollectiveResponse{11, {{"a", 1}, {"b", 2}}, 1, {0}});
  EXPECT_EQ(told.round, 11u);
  EXPECT_EQ(told.members, (std::vector<CollectiveMember>{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(told.source, 1);
  EXPECT_EQ(told.dims, std::vector<int64_t>{0});
  const RecvCollectiveRequest asked = Sent(RecvCollectiveRequest{12, 13, "whole 1"});
  EXPECT_EQ(asked.round, 12u);
  EXPECT_EQ(asked.incarnation, 13u);
  EXPECT_EQ(asked.piece, "whole 1");
  const Tensor piece = Filled(DType::kFloat, *Shape::Make({5000}));
  EXPECT_TRUE(Same(Sent(RecvCollectiveResponse{piece}).value, piece));
  const AbortCollectiveRequest aborted = Sent(AbortCollectiveRequest{14, Unavailable("gone")});
  EXPECT_EQ(aborted.id, 14u);
  EXPECT_EQ(aborted.why, Unavailable("gone"));
}

TEST(CodecTest, AStepComesBack) {
  const RunStepRequest m = BigRequest(), back = Sent(m);
  EXPECT_EQ(back.step.session, m.step.session);
  EXPECT_EQ(back.step.step, 123);
  ASSERT_EQ(back.parts.size(), 3u);
  EXPECT_EQ(back.parts[0].handle, -5);
  EXPECT_TRUE(back.parts[1].args.empty());
  for (size_t p : {0u, 2u}) {
    ASSERT_EQ(back.parts[p].args.size(), m.parts[p].args.size());
    for (size_t i = 0; i < m.parts[p].args.size(); ++i) {
      EXPECT_TRUE(Same(back.parts[p].args[i], m.parts[p].args[i])) << m.parts[p].args[i].DebugString();
    }
  }
  EXPECT_TRUE(back.is_alone);
  EXPECT_FALSE(back.trace);
  EXPECT_EQ(back.max_threads, -1);
  EXPECT_EQ(back.order_seed, ~uint64_t{0});
}

TEST(CodecTest, AnAnswerComesBackWithItsFirstCause) {
  RunStepResponse m;
  m.status = InvalidArgument("node 'x' (MatMul): [2,3] and [4,5] do not fit");
  m.retvals = {{}, {Tensor::Scalar(1.5f), Tensor::Scalar<int64_t>(-3)}};
  StepRecord& t = m.trace.emplace_back();
  TracedPlan plan{.device = "/device:CPU:0"};
  plan.nodes = {{.name = "a", .op = "Recv", .edge = 0},
                {.name = "b", .op = "NoOp"},
                {.name = "x", .op = "Neg", .inputs = {0}, .controls = {1}}};
  t.plans.push_back(std::make_shared<const TracedPlan>(plan));
  t.outputs.push_back({DType::kFloat, *Shape::Make({2, 3}), 24, 77, true});
  t.parts.push_back({4, 18, 19, 31});
  t.threads.push_back({3, "pool 3"});
  t.runs.push_back(
      {.node = 2,
       .start_nanos = 17,
       .end_nanos = 40,
       .thread = 3,
       .is_asynchronous = true,
       .outputs_end = 1,
       .parts_end = 1});
  m.trace.emplace_back();
  const RunStepResponse back = Sent(m);
  EXPECT_EQ(back.status, m.status);
  ASSERT_EQ(back.retvals.size(), 2u);
  EXPECT_TRUE(back.retvals[0].empty());
  EXPECT_TRUE(Same(back.retvals[1][1], m.retvals[1][1]));
  ASSERT_EQ(back.trace.size(), 2u);
  const StepRecord& told = back.trace[0];
  ASSERT_EQ(told.plans.size(), 1u);
  EXPECT_EQ(told.plans[0]->device, "/device:CPU:0");
  ASSERT_EQ(told.plans[0]->nodes.size(), 3u);
  EXPECT_EQ(told.plans[0]->nodes[0].edge, 0);
  EXPECT_EQ(told.plans[0]->nodes[1].edge, -1);
  EXPECT_EQ(told.plans[0]->nodes[2].label, "x = Neg(a, ^b)");
  ASSERT_EQ(told.runs.size(), 1u);
  EXPECT_TRUE(told.Check().ok()) << told.Check();
  EXPECT_EQ(told.NodeOf(told.runs[0]).name, "x");
  EXPECT_EQ(told.runs[0].start_nanos, 17);
  EXPECT_EQ(told.runs[0].end_nanos, 40);
  EXPECT_EQ(told.runs[0].thread, 3u);
  EXPECT_TRUE(told.runs[0].is_asynchronous);
  ASSERT_EQ(told.threads.size(), 1u);
  EXPECT_EQ(told.threads[0].number, 3u);
  EXPECT_EQ(told.threads[0].name, "pool 3");
  ASSERT_EQ(told.PartsOf(0).size(), 1u);
  EXPECT_EQ(told.PartsOf(0)[0].thread, 4u);
  EXPECT_EQ(told.PartsOf(0)[0].asked_nanos, 18);
  EXPECT_EQ(told.PartsOf(0)[0].start_nanos, 19);
  EXPECT_EQ(told.PartsOf(0)[0].end_nanos, 31);
  ASSERT_EQ(told.OutputsOf(0).size(), 1u);
  EXPECT_EQ(told.OutputsOf(0)[0].buffer, 77u);
  EXPECT_EQ(told.OutputsOf(0)[0].shape, *Shape::Make({2, 3}));
  EXPECT_TRUE(told.OutputsOf(0)[0].is_shared);
}

TEST(CodecTest, ATraceThatNamesWhatIsNotThereIsRefused) {
  TracedPlan plan{.device = "d"};
  plan.nodes = {{.name = "a", .op = "Neg", .inputs = {1}}};
  RunStepResponse m;
  m.trace.emplace_back().plans.push_back(std::make_shared<const TracedPlan>(plan));
  absl::Cord bytes = *EncodeMessage(m);
  RunStepResponse back;
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeMessage(bytes, nullptr, &back)));
  plan.nodes[0].inputs = {0};
  StepRecord good;
  good.plans.push_back(std::make_shared<const TracedPlan>(plan));
  good.outputs.resize(2);
  good.runs = {{.outputs_end = 1}, {.outputs_end = 2}};
  EXPECT_TRUE(good.Check().ok()) << good.Check();
  for (const StepRecord::Run& bad :
       {StepRecord::Run{.plan = 1}, StepRecord::Run{.plan = -1}, StepRecord::Run{.node = 1},
        StepRecord::Run{.node = -1}, StepRecord::Run{.outputs_end = 3}, StepRecord::Run{.outputs_end = 0},
        StepRecord::Run{.outputs_end = 2, .parts_end = 1}}) {
    StepRecord record = good;
    record.runs[1] = bad;
    EXPECT_TRUE(absl::IsInvalidArgument(record.Check()));
  }
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  for (const StepRecord::Run& bad : {StepRecord::Run{.start_nanos = kLeast, .end_nanos = kMost, .outputs_end = 2},
                                     StepRecord::Run{.end_nanos = kMost, .outputs_end = 2}}) {
    StepRecord record = good;
    record.runs[1] = bad;
    EXPECT_TRUE(absl::IsInvalidArgument(record.Check()));
  }
  good.outputs[0].bytes = -1;
  EXPECT_TRUE(absl::IsInvalidArgument(good.Check()));
}

TEST(CodecTest, ATraceTakesMemoryAndTimeInProportionToItsBytes) {
  TracedPlan plan{.device = "d"};
  plan.nodes = {{.name = std::string(1 << 16, 'n'), .op = "Neg"}};
  for (int i = 0; i < 1000; ++i) {
    plan.nodes.push_back({.name = absl::StrCat("m", i), .op = "Neg", .inputs = {0, 0}, .controls = {0}});
  }
  ASSERT_TRUE(plan.MakeLabels().ok());
  size_t labels = 0;
  for (const TracedPlan::Node& n : plan.nodes) labels += n.label.size();
  EXPECT_LT(labels, size_t{6} << 20);
  EXPECT_EQ(plan.nodes[1000].label, "m999 = Neg()") << "what would take too much is left out";
  StepRecord record;
  plan.nodes = {{.name = "a", .op = "Split"}, {.name = "b", .op = "Split", .inputs = std::vector<int32_t>(1000, 0)}};
  record.plans.push_back(std::make_shared<const TracedPlan>(plan));
  record.outputs.resize(2000);
  record.runs = {{.outputs_end = 1000}, {.node = 1, .outputs_end = 2000}};
  EXPECT_TRUE(absl::IsResourceExhausted(record.Check())) << record.Check();
}

TEST(CodecTest, TheOtherMessagesComeBack) {
  EXPECT_EQ(Sent(AbortStepRequest{{{1, 2}, 3}, Unavailable("worker died")}).why, Unavailable("worker died"));
  EXPECT_EQ(Sent(RecvTensorRequest{{{1, 2}, 3}, {0, 5, 6}}).key, (EdgeKey{0, 5, 6}));
  EXPECT_TRUE(Sent(RecvTensorResponse{{Tensor(), true}}).tensor.is_dead);
  const SendTensorRequest pushed = Sent(SendTensorRequest{{{1, 2}, 3}, {9, 0, 0}, {Tensor::Scalar(2.0f), false}});
  EXPECT_EQ(pushed.key, (EdgeKey{9}));
  EXPECT_EQ(*pushed.tensor.value.ScalarValue<float>(), 2.0f);
  EXPECT_EQ(Sent(CleanUpStepsRequest{{1, 2}, {9, {0, 4}}}).horizon.live, (std::vector<int64_t>{0, 4}));
  RandomPositions positions;
  positions["r"] = {1, 2, 3, 4, 5, 0xffffffff};
  EXPECT_EQ(Sent(SetRandomPositionsRequest{{1, 2}, positions}).positions, positions);
  const CreateWorkerSessionResponse devices =
      Sent(CreateWorkerSessionResponse{3, {{"/job:a/replica:0/task:0/device:CPU:0", "CPU", 1 << 20, 9, true}}});
  EXPECT_EQ(devices.devices.at(0).memory_bytes, 1 << 20);
  EXPECT_TRUE(devices.devices.at(0).own_memory);
  RunSessionStepRequest step;
  step.signature = {{"a:0"}, {"b:1", ""}, {"t"}};
  step.options.timeout_in_ms = 5;
  EXPECT_EQ(Sent(step).signature, step.signature);
  EXPECT_EQ(Sent(step).options.timeout_in_ms, 5);
}

TEST(CodecTest, LargeTensorsAreNotCopiedOnTheirWayOut) {
  const Tensor big = Filled(DType::kFloat, *Shape::Make({1 << 16}));
  const StatusOr<absl::Cord> frame = EncodeMessage(RecvTensorResponse{{big, false}});
  ASSERT_TRUE(frame.ok());
  bool is_shared = false;
  for (absl::string_view chunk : frame->Chunks()) is_shared |= chunk.data() == big.raw();
  EXPECT_TRUE(is_shared);
}

// The only tensor of a message whose frame begins at `offset` from an aligned address.
Tensor ReceivedAt(size_t offset, const RunStepRequest& message, bool* is_held) {
  const std::string bytes(*EncodeMessage(RunStepRequest(message)));
  auto memory = std::shared_ptr<char>(
      static_cast<char*>(std::aligned_alloc(Allocator::kAlignment, (bytes.size() / 4096 + 2) * 4096)), std::free);
  std::memcpy(memory.get() + offset, bytes.data(), bytes.size());
  RunStepRequest back;
  const auto frame =
      absl::MakeCordFromExternal(absl::string_view(memory.get() + offset, bytes.size()), [held = memory] {});
  EXPECT_TRUE(DecodeMessage(frame, nullptr, &back).ok());
  Tensor t = back.parts.at(0).args.at(0);
  const char* const at = static_cast<const char*>(t.raw());
  *is_held = at >= memory.get() && at < memory.get() + offset + bytes.size();
  return t;
}

TEST(CodecTest, ALargeTensorStaysWhereItLies) {
  const Tensor big = Filled(DType::kFloat, *Shape::Make({1 << 16}));
  RunStepRequest message;
  // However long the header is.
  for (size_t i = 0; i < 130; ++i) {
    message.parts.resize(1 + i / 2);
    message.order_seed = i % 2 * 128;
    message.parts[0].args = {big};
    bool is_held = false;
    const Tensor t = ReceivedAt(0, message, &is_held);
    EXPECT_TRUE(is_held) << i;
    EXPECT_TRUE(Same(t, big)) << i;
    EXPECT_FALSE(Tensor(t).OwnsBufferAlone()) << "somebody else's memory";
  }
  // Not what is at no place for it, the lesser part of its frame, small, or perhaps no bool.
  const auto is_held = [&](size_t offset, std::vector<Tensor> args) {
    message.parts[0].args = std::move(args);
    bool held = false;
    const Tensor t = ReceivedAt(offset, message, &held);
    EXPECT_TRUE(Same(t, message.parts[0].args[0]));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.raw()) % Allocator::kAlignment, 0u);
    return held;
  };
  EXPECT_TRUE(is_held(0, {big}));
  EXPECT_FALSE(is_held(8, {big}));
  EXPECT_FALSE(is_held(0, {big, Filled(DType::kFloat, *Shape::Make({1 << 17}))}));
  EXPECT_FALSE(is_held(0, {Filled(DType::kFloat, *Shape::Make({1 << 8}))}));
  EXPECT_FALSE(is_held(0, {Filled(DType::kBool, *Shape::Make({1 << 17}))}));
}

TEST(CodecTest, ResourcesAndVariantsStay) {
  for (DType d : {DType::kResource, DType::kVariant}) {
    const StatusOr<absl::Cord> frame = EncodeMessage(RecvTensorResponse{{*Tensor::Make(d, Shape()), false}});
    EXPECT_TRUE(absl::IsUnimplemented(frame.status()));
    EXPECT_NE(frame.status().message().find(DTypeName(d)), std::string::npos) << frame.status();
  }
}

// Reads any bytes as that message; only that it comes back matters, and that an error says so.
template <typename Message>
void Read(const std::string& bytes) {
  Message m;
  const Status s = DecodeMessage(absl::Cord(bytes), nullptr, &m);
  if (!s.ok()) {
    EXPECT_FALSE(s.message().empty());
  }
}

template <typename Message>
void ReadChanged(const Message& message, uint64_t seed) {
  std::string good;
  absl::CopyCordToString(*EncodeMessage(Message(message)), &good);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    const size_t header = std::min<size_t>(bad.size(), 400);
    for (uint64_t n = 1 + random() % 4; n > 0 && header > 0; --n) {
      bad[random() % header] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bad.resize(random() % (bad.size() + 1));
    Read<Message>(bad);
  }
}

TEST(CodecTest, ChangedBytesAreReadOrRefused) {
  ReadChanged(BigRequest(), 1);
  RunStepResponse response;
  response.retvals = {{Strings(), Tensor::Scalar(true)}};
  TracedPlan plan{.device = "d"};
  plan.nodes = {{.name = "a", .op = "Neg"}, {.name = "b", .op = "Neg", .inputs = {0}}};
  StepRecord& record = response.trace.emplace_back();
  record.plans.push_back(std::make_shared<const TracedPlan>(plan));
  record.outputs.push_back({DType::kFloat, *Shape::Make({2, 3}), 24, 0, false});
  record.runs.push_back({.node = 1, .outputs_end = 1});
  ReadChanged(response, 2);
  ReadChanged(SetRandomPositionsRequest{{1, 2}, {{"r", {1, 2, 3, 4, 5, 6}}}}, 3);
  ReadChanged(CleanUpStepsRequest{{1, 2}, {9, {0, 4}}}, 4);
  RunSessionStepRequest step;
  step.signature = {{"a:0"}, {"b:1"}, {"t"}};
  step.feed_values = {Strings()};
  ReadChanged(step, 5);
  Read<RunStepRequest>("");
  Read<RunStepRequest>(std::string(8, '\xff'));
}

TEST(CodecTest, OneByteDoesNotStandForTwo) {
  // Two tensors that both say that they are the same megabyte.
  RunStepRequest m;
  m.parts.resize(1);
  m.parts[0].args = {Filled(DType::kUInt8, *Shape::Make({1 << 20})), Filled(DType::kUInt8, *Shape::Make({1 << 20}))};
  std::string bytes;
  absl::CopyCordToString(*EncodeMessage(m), &bytes);
  bytes.resize(bytes.size() - (1 << 20));
  RunStepRequest back;
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeMessage(absl::Cord(bytes), nullptr, &back)));
}

TEST(CodecTest, AListTakesMemoryInProportionToItsBytes) {
  const auto field = [](char number, const std::string& value) {
    std::string out(1, static_cast<char>((number << 3) | 2));
    size_t size = value.size();
    for (; size > 127; size >>= 7) out.push_back(static_cast<char>((size & 127) | 128));
    out.push_back(static_cast<char>(size));
    return out + value;
  };
  std::string nodes(4 << 20, '\0');
  for (size_t i = 0; i < nodes.size(); i += 2) nodes[i] = (2 << 3) | 2;  // empty nodes
  const std::string header = field(5, field(1, nodes));                  // of a plan of a trace
  std::string bytes;
  for (size_t i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i)));
  RunStepResponse back;
  EXPECT_TRUE(absl::IsResourceExhausted(DecodeMessage(absl::Cord(bytes + header), nullptr, &back)));
}

}  // namespace
}  // namespace millrace
