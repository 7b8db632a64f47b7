// SPDX-License-Identifier: Apache-2.0
// What every transport must do. The tests run over each.
#include <gtest/gtest.h>

#include <csignal>
#include <sstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "echo_handler.h"
#include "server_process.h"
#include "testing_calls.h"
#include "transports.h"

namespace millrace {
namespace {

using absl::StatusCode;

Env& TheEnv() { return Env::Default(); }

// Bytes that differ everywhere, in pieces of several sizes.
absl::Cord Payload(size_t size, size_t piece) {
  absl::Cord cord;
  uint64_t x = size + 1;
  while (cord.size() < size) {
    std::string part(std::min(piece, size - cord.size()), '\0');
    for (char& c : part) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      c = static_cast<char>(x >> 56);
    }
    cord.Append(std::move(part));
  }
  return cord;
}

class Transport : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { Start(); }
  void Start(int64_t max_message_bytes = int64_t{4} << 30) {
    channel_.reset();
    server_.reset();
    RpcTransportOptions options;
    options.keepalive_interval = absl::Milliseconds(200);
    options.keepalive_timeout = absl::Seconds(2);
    auto transport = NewTransport(GetParam(), TheEnv(), options);
    ASSERT_TRUE(transport.ok()) << transport.status();
    transport_ = *std::move(transport);
    auto server =
        transport_->Listen({.address = FreeAddress(GetParam()), .max_message_bytes = max_message_bytes}, &handler_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = Connect(server_->address());
  }
  std::unique_ptr<RpcChannel> Connect(const std::string& address) {
    auto channel = transport_->Connect(address);
    EXPECT_TRUE(channel.ok()) << channel.status();
    return *std::move(channel);
  }
  void AwaitHanging(int64_t count) {
    for (int i = 0; i < 3000 && handler_.hanging() != count; ++i) absl::SleepFor(absl::Milliseconds(10));
    ASSERT_EQ(handler_.hanging(), count);
  }

  EchoHandler handler_{TheEnv()};
  std::unique_ptr<RpcTransport> transport_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RpcChannel> channel_;
};

TEST_P(Transport, GivesBackWhatItTook) {
  for (size_t size : {0, 1, 15, 16, 255, 256, 4096, 65536, 1 << 20, (1 << 20) + 1, 20 << 20}) {
    for (size_t piece : {7, 300, 70000, 5 << 20}) {
      if (size / piece > 100000) continue;
      const absl::Cord sent = Payload(size, piece);
      const auto got = CallAndWait(*channel_, "Echo", sent);
      ASSERT_TRUE(got.ok()) << got.status();
      ASSERT_TRUE(*got == sent) << size << " bytes in pieces of " << piece;
    }
  }
}

TEST_P(Transport, TakesHundredsOfMegabytes) {
  const absl::Cord sent = Payload(300'000'000, 1 << 20);
  const auto got = CallAndWait(*channel_, "Echo", sent);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(*got == sent);
}

TEST_P(Transport, LetsGoOfWhatItSent) {
  bool released = false;
  const std::string bytes(1 << 20, 'x');
  absl::Cord cord = absl::MakeCordFromExternal(bytes, [&released] { released = true; });
  ASSERT_TRUE(CallAndWait(*channel_, "Size", std::move(cord)).ok());
  for (int i = 0; i < 1000 && !released; ++i) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_TRUE(released);
}

TEST_P(Transport, RunsAThousandCallsAtOnce) {
  std::vector<Pending> pending(1000);
  for (size_t i = 0; i < pending.size(); ++i) {
    channel_->Call(i % 2 != 0 ? "Echo" : "Later", {}, Payload(i, 100), pending[i].Reply());
  }
  for (size_t i = 0; i < pending.size(); ++i) {
    const auto got = pending[i].Result();
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(*got == Payload(i, 100));
  }
}

TEST_P(Transport, RefusesWhoComesBeyondItsConnections) {
  auto made = transport_->Listen({.address = FreeAddress(GetParam()), .max_connections = 2}, &handler_);
  ASSERT_TRUE(made.ok()) << made.status();
  const std::unique_ptr<RpcServer> server = *std::move(made);
  std::vector<std::unique_ptr<RpcChannel>> taken;
  for (int i = 0; i < 2; ++i) {
    taken.push_back(Connect(server->address()));
    const auto got = CallAndWait(*taken.back(), "Echo", absl::Cord("in"));
    ASSERT_TRUE(got.ok()) << got.status();
  }
  for (int i = 0; i < 40; ++i) {  // more than are remembered
    const auto got =
        CallAndWait(*Connect(server->address()), "Echo", absl::Cord("out"), {.timeout = absl::Seconds(20)});
    ASSERT_EQ(got.status().code(), StatusCode::kResourceExhausted) << got.status();
    ASSERT_TRUE(absl::StrContains(got.status().message(), "MILLRACE_MAX_CONNECTIONS")) << got.status();
  }
  for (const auto& channel : taken) {  // those who are in do not notice
    const auto got = CallAndWait(*channel, "Echo", absl::Cord("still in"));
    EXPECT_TRUE(got.ok()) << got.status();
  }
  taken.pop_back();
  absl::Status last;
  for (int i = 0; i < 1000; ++i) {  // the server hears of the end a moment later
    last =
        CallAndWait(*Connect(server->address()), "Echo", absl::Cord("next"), {.timeout = absl::Seconds(20)}).status();
    if (last.ok()) break;
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_TRUE(last.ok()) << last;
}

TEST_P(Transport, IsCalledByManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const auto channel = Connect(server_->address());
      for (int i = 0; i < 50; ++i) {
        RpcChannel& used = i % 2 != 0 ? *channel : *channel_;
        const absl::Cord sent = Payload(static_cast<size_t>(t * 1000 + i), 64);
        const auto got = CallAndWait(used, "Later", sent);
        EXPECT_TRUE(got.ok()) << got.status();
        good += got.ok() && *got == sent;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, 400);
}

TEST_P(Transport, HoldsManyCallsThatWait) {
  std::vector<Pending> hanging(1000);
  for (Pending& p : hanging) channel_->Call("Hang", {}, {}, p.Reply());
  AwaitHanging(1000);
  EXPECT_TRUE(CallAndWait(*channel_, "Echo", absl::Cord("between")).ok());
  channel_.reset();
  for (Pending& p : hanging) EXPECT_EQ(p.Result().status().code(), StatusCode::kCancelled);
  AwaitHanging(0);
}

TEST_P(Transport, CarriesErrorsAsTheyAre) {
  std::string binary = "\xff\x80";
  for (int i = 0; i < 256; ++i) binary += static_cast<char>(i);
  for (const std::string& text : {std::string(), std::string("short"), binary, std::string(200'000, 'e')}) {
    for (int code = 1; code <= 16; ++code) {
      const auto got = CallAndWait(*channel_, "Fail", absl::Cord(std::string(1, static_cast<char>(code)) + text));
      ASSERT_EQ(static_cast<int>(got.status().code()), code) << got.status();
      ASSERT_EQ(got.status().message(), text);
    }
  }
  EXPECT_EQ(CallAndWait(*channel_, "NoSuch", {}).status(), Unimplemented("no method 'NoSuch'"));
}

TEST_P(Transport, TakesMethodsOfAnyName) {
  for (const std::string& name : {std::string(), std::string("a/b"), std::string("\n\0%", 3), std::string(3000, 'm')}) {
    const auto got = CallAndWait(*channel_, name, {});
    EXPECT_FALSE(got.ok()) << name;
  }
  EXPECT_TRUE(CallAndWait(*channel_, "Echo", absl::Cord("alive")).ok());
}

TEST_P(Transport, TellsTheHandlerWhoCallsAndHowLongItMayTake) {
  const auto peer = CallAndWait(*channel_, "Peer", {});
  ASSERT_TRUE(peer.ok());
  EXPECT_FALSE(peer->empty());
  const auto left = CallAndWait(*channel_, "Timeout", {}, {.timeout = absl::Seconds(20)});
  ASSERT_TRUE(left.ok());
  EXPECT_GT(std::stoll(std::string(*left)), 10'000);
  EXPECT_LE(std::stoll(std::string(*left)), 20'200);  // which gRPC rounds up by up to 1%
  EXPECT_GT(std::stoll(std::string(*CallAndWait(*channel_, "Timeout", {}))), 1'000'000'000);
}

TEST_P(Transport, EndsACallAtItsDeadline) {
  const absl::Time start = absl::Now();
  const auto got = CallAndWait(*channel_, "Hang", {}, {.timeout = absl::Milliseconds(200)});
  EXPECT_EQ(got.status().code(), StatusCode::kDeadlineExceeded) << got.status();
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(190));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  AwaitHanging(0);
  EXPECT_EQ(handler_.cancelled(), 1);
  EXPECT_EQ(CallAndWait(*channel_, "Hang", {}, {.timeout = absl::ZeroDuration()}).status().code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_EQ(CallAndWait(*channel_, "Hang", {}, {.timeout = absl::Seconds(-1)}).status().code(),
            StatusCode::kDeadlineExceeded);
}

TEST_P(Transport, EndsACallThatIsCancelled) {
  CancellationManager cancellation;
  Pending pending;
  channel_->Call("Hang", {.cancellation = &cancellation}, {}, pending.Reply());
  AwaitHanging(1);
  EXPECT_FALSE(pending.done());
  cancellation.Cancel(Cancelled("enough"));
  EXPECT_EQ(pending.Result().status().code(), StatusCode::kCancelled);
  AwaitHanging(0);
  EXPECT_EQ(handler_.cancelled(), 1);
  EXPECT_EQ(
      CallAndWait(*channel_, "Echo", {}, {.cancellation = &cancellation}).status().code(), StatusCode::kCancelled);
}

TEST_P(Transport, LeavesNothingWithACancellationManagerThatWasNotUsed) {
  CancellationManager cancellation;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(CallAndWait(*channel_, "Later", absl::Cord("x"), {.cancellation = &cancellation}).ok());
  }
  cancellation.Cancel(Cancelled("enough"));  // calls nobody who is gone
}

TEST_P(Transport, RacesCancellationWithReplies) {
  for (int i = 0; i < 200; ++i) {
    auto cancellation = std::make_unique<CancellationManager>();
    Pending pending;
    channel_->Call("Later", {.cancellation = cancellation.get()}, absl::Cord("x"), pending.Reply());
    if (i % 3 != 0) absl::SleepFor(absl::Microseconds(i));
    cancellation->Cancel(Cancelled("enough"));
    const auto got = pending.Result();
    EXPECT_TRUE(got.ok() || got.status().code() == StatusCode::kCancelled) << got.status();
  }
}

TEST_P(Transport, RefusesWhatIsTooLarge) {
  Start(1'000'000);
  EXPECT_TRUE(CallAndWait(*channel_, "Size", Payload(1'000'000, 50'000)).ok());
  const auto got = CallAndWait(*channel_, "Size", Payload(1'000'001, 50'000));
  EXPECT_EQ(got.status().code(), StatusCode::kResourceExhausted) << got.status();
  EXPECT_EQ(
      CallAndWait(*channel_, "Size", Payload(50'000'000, 500'000)).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(CallAndWait(*channel_, "Echo", absl::Cord("alive")).ok());
}

TEST_P(Transport, ServerEndsWithCallsUnderWay) {
  std::vector<Pending> hanging(50);
  for (Pending& p : hanging) channel_->Call("Hang", {}, {}, p.Reply());
  AwaitHanging(50);
  server_.reset();
  EXPECT_EQ(handler_.hanging(), 0);
  EXPECT_EQ(handler_.cancelled(), 50);
  for (Pending& p : hanging) {
    const StatusCode code = p.Result().status().code();
    // The way broke, or the handlers' replies came through before it did.
    EXPECT_TRUE(code == StatusCode::kUnavailable || code == StatusCode::kCancelled) << p.Result().status();
  }
  EXPECT_EQ(CallAndWait(*channel_, "Echo", {}).status().code(), StatusCode::kUnavailable);
}

TEST_P(Transport, ChannelEndsWithCallsUnderWay) {
  std::vector<Pending> pending(100);
  for (size_t i = 0; i < pending.size(); ++i) {
    channel_->Call(i % 2 != 0 ? "Hang" : "Later", {}, Payload(i * 1000, 500), pending[i].Reply());
  }
  channel_.reset();
  for (Pending& p : pending) EXPECT_TRUE(p.done());
  AwaitHanging(0);
}

TEST_P(Transport, ChannelEndsInItsOwnReply) {
  auto other = Connect(server_->address());
  Pending hanging;
  other->Call("Hang", {}, {}, hanging.Reply());
  AwaitHanging(1);
  absl::Notification over;
  channel_->Call("Echo", {}, absl::Cord("x"), [&](const StatusOr<absl::Cord>&) {
    channel_.reset();
    other.reset();  // has a call under way, whose reply comes by this thread
    over.Notify();
  });
  EXPECT_TRUE(over.WaitForNotificationWithTimeout(absl::Seconds(20)));
  EXPECT_EQ(hanging.Result().status().code(), StatusCode::kCancelled);
}

TEST_P(Transport, CallsFromReplies) {
  Pending last;
  channel_->Call("Echo", {}, absl::Cord("1"), [&](StatusOr<absl::Cord> got) {
    channel_->Call(
        "Later", {}, *got, [&](StatusOr<absl::Cord> again) { channel_->Call("Echo", {}, *again, last.Reply()); });
  });
  ASSERT_TRUE(last.Result().ok()) << last.Result().status();
  EXPECT_EQ(*last.Result(), absl::Cord("1"));
}

TEST_P(Transport, TellsWithoutAReply) {
  for (const char* method : {"Drop", "Fail", "NoMethod"}) channel_->Tell(method, absl::Cord("x"));
  const std::string small = "small", large(1 << 20, 'x');
  channel_->Tell("Note", absl::Cord(small));
  channel_->Tell("Note", absl::Cord(large));
  StatusOr<absl::Cord> notes;
  for (int i = 0; i < 1000; ++i) {
    notes = CallAndWait(*channel_, "Notes", {});
    if (!notes.ok() || notes->size() == small.size() + large.size() + 2) break;
    absl::SleepFor(absl::Milliseconds(10));
  }
  ASSERT_TRUE(notes.ok()) << notes.status();
  EXPECT_TRUE(*notes == absl::StrCat(small, "\n", large, "\n") || *notes == absl::StrCat(large, "\n", small, "\n"));
}

TEST_P(Transport, ServerAndChannelEndWithTellsUnderWay) {
  for (int i = 0; i < 20; ++i) channel_->Tell("Hang", absl::Cord());
  AwaitHanging(20);
  channel_.reset();
  server_.reset();
  EXPECT_EQ(handler_.hanging(), 0);
}

TEST_P(Transport, HandlerThatForgetsToReply) {
  const auto got = CallAndWait(*channel_, "Drop", {});
  EXPECT_EQ(got.status().code(), StatusCode::kInternal) << got.status();
}

TEST_P(Transport, SaysAtOnceThatNobodyIsThere) {
  const std::string address = server_->address();
  server_.reset();
  auto channel = Connect(address);
  const absl::Time start = absl::Now();
  EXPECT_EQ(CallAndWait(*channel, "Echo", {}).status().code(), StatusCode::kUnavailable);
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
}

TEST_P(Transport, FindsAServerThatCameBack) {
  const std::string address = server_->address();
  ASSERT_TRUE(CallAndWait(*channel_, "Echo", {}).ok());
  server_.reset();
  EXPECT_EQ(CallAndWait(*channel_, "Echo", {}).status().code(), StatusCode::kUnavailable);
  auto server = transport_->Listen({.address = address}, &handler_);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  StatusOr<absl::Cord> got;
  for (int i = 0; i < 100; ++i) {
    got = CallAndWait(*channel_, "Echo", absl::Cord("again"));
    if (got.ok()) break;
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_TRUE(got.ok()) << got.status();
}

TEST_P(Transport, RefusesAnAddressThatIsTaken) {
  EXPECT_FALSE(transport_->Listen({.address = server_->address()}, &handler_).ok());
  EXPECT_TRUE(CallAndWait(*channel_, "Echo", {}).ok());
}

TEST_P(Transport, RefusesOptionsThatMeanNothing) {
  for (const char* address : {"", "here", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:x", ":80"}) {
    const auto server = transport_->Listen({.address = address}, &handler_);
    EXPECT_EQ(server.status().code(), StatusCode::kInvalidArgument) << address << ": " << server.status();
  }
  EXPECT_EQ(transport_->Listen({.address = FreeAddress(GetParam()), .max_message_bytes = 0}, &handler_).status().code(),
            StatusCode::kInvalidArgument);
}

// With a server of another process.
TEST_P(Transport, ServerIsKilledDuringCalls) {
  ServerProcess other(GetParam(), "serve", FreeAddress(GetParam()));
  const auto channel = Connect(other.line());
  ASSERT_TRUE(CallAndWait(*channel, "Echo", Payload(1 << 20, 1 << 16)).ok());
  std::vector<Pending> hanging(20);
  for (Pending& p : hanging) channel->Call("Hang", {}, {}, p.Reply());
  ASSERT_TRUE(CallAndWait(*channel, "Echo", {}).ok());
  const absl::Time start = absl::Now();
  other.Signal(SIGKILL);
  for (Pending& p : hanging) EXPECT_EQ(p.Result().status().code(), StatusCode::kUnavailable) << p.Result().status();
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
  EXPECT_EQ(CallAndWait(*channel, "Echo", {}).status().code(), StatusCode::kUnavailable);
}

TEST_P(Transport, ServerIsStoppedDuringCalls) {
  ServerProcess other(GetParam(), "serve", FreeAddress(GetParam()));
  const auto channel = Connect(other.line());
  std::vector<Pending> hanging(5);
  for (Pending& p : hanging) channel->Call("Hang", {}, {}, p.Reply());
  ASSERT_TRUE(CallAndWait(*channel, "Echo", {}).ok());
  const absl::Time start = absl::Now();
  other.Signal(SIGSTOP);
  for (Pending& p : hanging) EXPECT_EQ(p.Result().status().code(), StatusCode::kUnavailable) << p.Result().status();
  EXPECT_LT(absl::Now() - start, absl::Seconds(6));  // of which the fixture allows 2.2
}

TEST_P(Transport, ServerIsKilledWhileALargeMessageTravels) {
  ServerProcess other(GetParam(), "serve", FreeAddress(GetParam()));
  const auto channel = Connect(other.line());
  ASSERT_TRUE(CallAndWait(*channel, "Echo", {}).ok());
  std::vector<Pending> pending(4);
  for (Pending& p : pending) channel->Call("Echo", {}, Payload(100'000'000, 1 << 20), p.Reply());
  other.Signal(SIGKILL);
  for (Pending& p : pending) {
    const auto got = p.Result();
    EXPECT_TRUE(got.ok() || got.status().code() == StatusCode::kUnavailable) << got.status();
  }
}

TEST_P(Transport, CallerIsKilledDuringCalls) {
  // The server learns of it: here the caller is a channel that is destroyed, and one whose process is gone.
  ServerProcess caller(GetParam(), "call", server_->address());
  AwaitHanging(1);
  caller.Signal(SIGKILL);
  AwaitHanging(0);
  EXPECT_EQ(handler_.cancelled(), 1);
}

TEST_P(Transport, HasThreadsOnlyWhileItIsUsed) {
  ServerProcess other(GetParam(), "threads", FreeAddress(GetParam()));
  std::istringstream line(other.line());
  int before = 0, created = 0, during = 0, after = 0;
  line >> before >> created >> during >> after;
  EXPECT_EQ(before, 1);
  EXPECT_EQ(created, 1);
  EXPECT_LE(during, 16);
  EXPECT_EQ(after, 1) << other.line();  // the process keeps idle threads for 10 s
}

INSTANTIATE_TEST_SUITE_P(All, Transport, testing::ValuesIn(kTransports), [](const auto& value) {
  return std::string(value.param);
});

}  // namespace
}  // namespace millrace
