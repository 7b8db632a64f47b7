// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "capi/test_support.h"
#include "millrace/c_api_callbacks.h"

namespace millrace::capi {
namespace {

// What a test does in place of a client.
struct Client {
  std::atomic<int> calls{0}, releases{0}, looks{0};
  std::atomic<int> stop_after{-1};  // looks
  std::atomic<bool> hold{false};
};

void Twice(void* data, TF_Tensor** inputs, int num_inputs, TF_Tensor** outputs, int num_outputs, TF_Status* status) {
  auto* client = static_cast<Client*>(data);
  ++client->calls;
  while (client->hold.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (num_inputs != 1 || num_outputs < 1) return TF_SetStatus(status, TF_OUT_OF_RANGE, "wanted one of each");
  const std::vector<float> values = Floats(inputs[0]);
  outputs[0] = FloatTensor({1}, {values[0] * 2});
  TF_DeleteTensor(std::exchange(inputs[0], nullptr));  // takes one over
}
void Release(void* data) { ++static_cast<Client*>(data)->releases; }
int Look(void* data) {
  auto* client = static_cast<Client*>(data);
  const int looks = ++client->looks;
  return client->stop_after.load() >= 0 && looks > client->stop_after.load();
}

struct CallbackTest : testing::Test, TestGraph {
  CallbackTest() { x = Placeholder("x"); }
  ~CallbackTest() override { TF_DeleteSession(session, status); }

  TF_Operation* Call(const char* token, TF_DataType result = TF_FLOAT, int num_results = 1) {
    TF_OperationDescription* d = TF_NewOperation(g, "PyFunc", token);
    const TF_Output in = {x, 0};
    TF_AddInputList(d, &in, 1);
    TF_SetAttrString(d, "token", token, std::strlen(token));
    const std::vector<TF_DataType> results(static_cast<size_t>(num_results), result);
    TF_SetAttrTypeList(d, "Tout", results.data(), num_results);
    return Finish(d);
  }
  TF_Session* Session() {
    if (session == nullptr) session = TF_NewSession(g, nullptr, status);
    return session;
  }
  std::vector<float> Run(TF_Operation* fetch) {
    const TF_Output in = {x, 0}, out = {fetch, 0};
    TF_Tensor* value = FloatTensor({1}, {21});
    TF_Tensor* result = nullptr;
    TF_SessionRun(Session(), nullptr, &in, &value, 1, &out, &result, 1, nullptr, 0, nullptr, status);
    TF_DeleteTensor(value);
    const std::vector<float> values = result ? Floats(result) : std::vector<float>();
    TF_DeleteTensor(result);
    return values;
  }

  // The thread that called the function may let go of it a moment after the step has ended.
  void WaitForRelease() {
    for (int i = 0; i < 2000 && client.releases == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  Client client;
  TF_Operation* x = nullptr;
  TF_Session* session = nullptr;
};

TEST_F(CallbackTest, AnOperationCallsTheFunctionOfItsToken) {
  MR_RegisterClientFunction("twice", &Twice, &client, &Release, status);
  ASSERT_TF_OK(status.s);
  MR_RegisterClientFunction("twice", &Twice, &client, &Release, status);
  EXPECT_EQ(status.code(), TF_ALREADY_EXISTS);
  TF_Operation* call = Call("twice");
  EXPECT_EQ(Run(call), std::vector<float>{42});
  EXPECT_EQ(client.calls, 1);
  EXPECT_EQ(client.releases, 0);
  MR_UnregisterClientFunction("twice");
  WaitForRelease();
  EXPECT_EQ(client.releases, 1);
  Run(call);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("callback twice is not found: node 'twice'"), std::string::npos) << status.message();
}

TEST_F(CallbackTest, WhatItReturnsMustBeWhatTheOperationDeclares) {
  MR_RegisterClientFunction("two", &Twice, &client, nullptr, status);
  Run(Call("two", TF_FLOAT, 2));
  EXPECT_EQ(status.code(), TF_INTERNAL);
  EXPECT_NE(status.message().find("output 1"), std::string::npos) << status.message();
  MR_UnregisterClientFunction("two");
  MR_RegisterClientFunction("int", &Twice, &client, nullptr, status);
  Run(Call("int", TF_INT32));
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("0-th value returned by int is float, but expects int32"), std::string::npos)
      << status.message();
  MR_UnregisterClientFunction("int");
  MR_RegisterClientFunction("none", &Twice, &client, nullptr, status);
  TF_Operation* none = Call("none", TF_FLOAT, 0);
  TF_Tensor* value = FloatTensor({1}, {1});
  const TF_Output in = {x, 0};
  TF_SessionRun(Session(), nullptr, &in, &value, 1, nullptr, nullptr, 0, &none, 1, nullptr, status);
  TF_DeleteTensor(value);
  EXPECT_EQ(status.code(), TF_OUT_OF_RANGE);
  MR_UnregisterClientFunction("none");
}

TEST_F(CallbackTest, AStepThatIsClosedDoesNotWaitForItsFunction) {
  MR_RegisterClientFunction("held", &Twice, &client, &Release, status);
  client.hold = true;
  TF_Operation* call = Call("held");
  TF_Session* s = Session();
  std::thread closer([&] {
    while (client.calls == 0) std::this_thread::yield();
    ScopedStatus closed;
    TF_CloseSession(s, closed);
    EXPECT_TF_OK(closed.s);
  });
  EXPECT_TRUE(Run(call).empty());
  EXPECT_EQ(status.code(), TF_CANCELLED);
  closer.join();
  MR_UnregisterClientFunction("held");
  EXPECT_EQ(client.releases, 0);  // it runs still
  client.hold = false;
  WaitForRelease();
  EXPECT_EQ(client.releases, 1);
}

TEST_F(CallbackTest, AnInterruptStopsAStepThatWaits) {
  MR_RegisterClientFunction("waits", &Twice, &client, nullptr, status);
  client.hold = true;
  client.stop_after = 2;
  MR_SetInterruptCheck(Session(), &Look, &client, status);
  ASSERT_TF_OK(status.s);
  TF_Operation* call = Call("waits");
  EXPECT_TRUE(Run(call).empty());
  EXPECT_EQ(status.code(), TF_CANCELLED);
  EXPECT_EQ(client.looks, 3);
  client.stop_after = -1;
  client.hold = false;
  EXPECT_EQ(Run(call), std::vector<float>{42});
  MR_UnregisterClientFunction("waits");
}

TEST_F(CallbackTest, AnInterruptStopsAStepThatWorks) {
  TF_Operation* y = x;
  for (int i = 0; i < 3000; ++i) y = Op("Sqrt", ("y" + std::to_string(i)).c_str(), {y});
  MR_SetInterruptCheck(Session(), &Look, &client, status);
  EXPECT_EQ(Run(y).size(), 1u);
  client.stop_after = client.looks + 1;
  const auto begin = std::chrono::steady_clock::now();
  while (status.code() == TF_OK && std::chrono::steady_clock::now() - begin < std::chrono::seconds(60)) Run(y);
  EXPECT_EQ(status.code(), TF_CANCELLED);
}

TEST_F(CallbackTest, AnInterruptOrADeadlineStopsAKernel) {
  constexpr int64_t kSize = 5000;
  TF_Operation* y = Op("MatMul", "y", {x, x});
  MR_SetInterruptCheck(Session(), &Look, &client, status);
  const TF_Output in = {x, 0};
  TF_Tensor* value = FloatTensor({kSize, kSize}, std::vector<float>(kSize * kSize, 0.5f));
  client.stop_after = 1;  // the second look stops, after about 80 ms
  TF_SessionRun(Session(), nullptr, &in, &value, 1, nullptr, nullptr, 0, &y, 1, nullptr, status);
  EXPECT_EQ(status.code(), TF_CANCELLED);
  EXPECT_EQ(client.looks, 2);
  client.stop_after = -1;
  const unsigned char options[] = {0x10, 50};  // RunOptions: timeout_in_ms: 50
  TF_Buffer* run_options = TF_NewBufferFromString(options, sizeof(options));
  TF_SessionRun(Session(), run_options, &in, &value, 1, nullptr, nullptr, 0, &y, 1, nullptr, status);
  EXPECT_EQ(status.code(), TF_DEADLINE_EXCEEDED) << status.message();
  TF_DeleteBuffer(run_options);
  TF_DeleteTensor(value);
  value = FloatTensor({1, 1}, {3});
  TF_Tensor* result = nullptr;
  const TF_Output out = {y, 0};
  TF_SessionRun(Session(), nullptr, &in, &value, 1, &out, &result, 1, nullptr, 0, nullptr, status);
  ASSERT_TF_OK(status.s);
  EXPECT_EQ(Floats(result), std::vector<float>{9});
  TF_DeleteTensor(value);
  TF_DeleteTensor(result);
}

}  // namespace
}  // namespace millrace::capi
