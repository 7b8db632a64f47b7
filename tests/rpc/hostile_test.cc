// SPDX-License-Identifier: Apache-2.0
// What gRPC's transport must bear from who means harm: bytes that are no calls, messages and headers without end, more
// streams than anybody needs, peers that do not read or are half gone. Nothing ends the server, nothing fills its
// memory, and who calls properly is served.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "echo_handler.h"
#include "server_process.h"
#include "testing_calls.h"
#include "transports.h"

namespace millrace {
namespace {

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// HTTP/2's frames by hand.
enum FrameType { kData = 0, kHeaders = 1, kSettings = 4, kContinuation = 9 };
constexpr int kEndStream = 1, kEndHeaders = 4;
std::string Frame(size_t length, int type, int flags, uint32_t stream, const std::string& payload) {
  std::string f;
  for (int shift : {16, 8, 0}) f += static_cast<char>(length >> shift);
  f += static_cast<char>(type);
  f += static_cast<char>(flags);
  for (int shift : {24, 16, 8, 0}) f += static_cast<char>(stream >> shift);
  return f + payload;
}
std::string Frame(int type, int flags, uint32_t stream, const std::string& payload) {
  return Frame(payload.size(), type, flags, stream, payload);
}
// Not compressed, not remembered.
std::string Header(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
}
std::string HeadersOf(const std::string& method, const std::string& scheme = "http",
                      const std::string& te = "trailers") {
  return Header(":method", "POST") + Header(":scheme", scheme) + Header(":path", "/millrace/" + method) +
         Header(":authority", "localhost") + Header("te", te) + Header("content-type", "application/grpc");
}
std::string Call(uint32_t stream, const std::string& method) {
  return Frame(kHeaders, kEndHeaders, stream, HeadersOf(method));
}
// A message in one frame.
std::string Message(const std::string& bytes) {
  std::string message(1, '\0');
  for (int shift : {24, 16, 8, 0}) message += static_cast<char>(bytes.size() >> shift);
  return message + bytes;
}

class Stranger {
 public:
  explicit Stranger(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    SetPatience(absl::Milliseconds(20));
  }
  ~Stranger() { close(fd_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  // How long it waits in each Send and Read.
  void SetPatience(absl::Duration patience) {
    const timeval time = absl::ToTimeval(patience);
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
  }
  // False: the server has hung up, or takes no more.
  bool Send(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<size_t>(n);
    }
    return true;
  }
  // What is there. False: the server has hung up.
  bool Read() {
    char answer[65536];
    ssize_t n = 1;
    while (n > 0) n = recv(fd_, answer, sizeof(answer), 0);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

 private:
  const int fd_;
};

int64_t ResidentBytes(pid_t pid) {
  std::ifstream statm(absl::StrCat("/proc/", pid, "/statm"));
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * 4096;
}

StatusOr<absl::Cord> Greet(const std::string& address) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<RpcTransport> transport, NewGrpcTransport(Env::Default()));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<RpcChannel> channel, transport->Connect(address));
  return CallAndWait(*channel, "Echo", absl::Cord("alive"));
}

// When the server has got through what a stranger has sent.
StatusOr<absl::Cord> GreetPatiently(const std::string& address) {
  StatusOr<absl::Cord> got = Greet(address);
  for (int i = 0; i < 5 && absl::IsUnavailable(got.status()); ++i) got = Greet(address);
  return got;
}

// Serves in this process, and gives up who is silent for a second.
class HostilePeers : public testing::Test {
 protected:
  void Serve(int64_t max_message_bytes = int64_t{4} << 30) {
    RpcTransportOptions options;
    options.keepalive_interval = absl::Milliseconds(200);
    options.keepalive_timeout = absl::Seconds(1);
    transport_ = NewGrpcTransport(Env::Default(), options).value();
    server_ = transport_->Listen({.address = "127.0.0.1:0", .max_message_bytes = max_message_bytes}, &handler_).value();
  }
  void AwaitHanging(int64_t count) {
    for (int i = 0; i < 2000 && handler_.hanging() != count; ++i) absl::SleepFor(absl::Milliseconds(10));
    ASSERT_EQ(handler_.hanging(), count);
  }

  EchoHandler handler_{Env::Default()};
  std::unique_ptr<RpcTransport> transport_;
  std::unique_ptr<RpcServer> server_;
};

TEST_F(HostilePeers, R03_AMessageOfTwoGiB) {
  Serve(1 << 20);
  // One and the same megabyte, again and again.
  const std::string megabyte(1 << 20, 'x');
  absl::Cord huge;
  for (int i = 0; i < 2048; ++i) huge.Append(absl::MakeCordFromExternal(megabyte, [] {}));
  auto channel = transport_->Connect(server_->address()).value();
  const auto got = CallAndWait(*channel, "Size", huge);
  EXPECT_TRUE(absl::IsResourceExhausted(got.status())) << got.status();
  const auto fits = CallAndWait(*channel, "Size", absl::Cord(megabyte));
  EXPECT_TRUE(fits.ok()) << fits.status();
}

// Many callers whose messages do not fit together: some are turned away, the memory stays within the limit, and who
// comes later is heard.
TEST_F(HostilePeers, R03_MoreThanTheConnectionsMayHold) {
  transport_ = NewGrpcTransport(Env::Default()).value();
  server_ = transport_->Listen({.address = "127.0.0.1:0", .max_connection_bytes = 64 << 20}, &handler_).value();
  const std::string megabyte(1 << 20, 'x');
  absl::Cord large;
  for (int i = 0; i < 48; ++i) large.Append(absl::MakeCordFromExternal(megabyte, [] {}));
  std::atomic<int> heard = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&] {
      const auto caller = NewGrpcTransport(Env::Default()).value();
      const auto channel = caller->Connect(server_->address()).value();
      const auto got = CallAndWait(*channel, "Size", large, {.timeout = absl::Seconds(20)});
      heard += got.ok();
      EXPECT_TRUE(got.ok() || (absl::IsResourceExhausted(got.status()) &&
                               absl::StrContains(got.status().message(), "MILLRACE_MAX_CONNECTION_BYTES")))
          << got.status();
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_LT(heard.load(), 6) << "together they are more than four times the limit";
  const auto got = GreetPatiently(server_->address());
  EXPECT_TRUE(got.ok()) << got.status();
}

TEST_F(HostilePeers, R03_ConnectionsWithoutCalls) {
  transport_ = NewGrpcTransport(Env::Default()).value();
  server_ = transport_->Listen({.address = "127.0.0.1:0", .most_idle = absl::Milliseconds(300)}, &handler_).value();
  Stranger stranger(server_->address());
  stranger.SetPatience(absl::Seconds(10));
  ASSERT_TRUE(stranger.Send(kPreface + Frame(kSettings, 0, 0, "")));
  EXPECT_FALSE(stranger.Read()) << "it is sent away";
  auto channel = transport_->Connect(server_->address()).value();
  for (int i = 0; i < 3; ++i) {  // one that is needed again comes back by itself
    const auto got = CallAndWait(*channel, "Echo", absl::Cord("x"));
    EXPECT_TRUE(got.ok()) << got.status();
    absl::SleepFor(absl::Milliseconds(500));
  }
}

// None of which ever asks for anything.
TEST_F(HostilePeers, R03_ThousandsOfStreams) {
  const ServerProcess server("grpc", "serve", "127.0.0.1:0");
  ASSERT_TRUE(Greet(server.line()).ok());
  const int64_t before = ResidentBytes(server.pid());
  {
    Stranger stranger(server.line());
    stranger.SetPatience(absl::Seconds(30));
    ASSERT_TRUE(stranger.Send(kPreface + Frame(kSettings, 0, 0, "")));
    std::string calls;
    for (uint32_t i = 0; i < 20'000; ++i) calls += Call(2 * i + 1, "Hang");
    stranger.Send(calls);
    const auto got = GreetPatiently(server.line());
    EXPECT_TRUE(got.ok()) << got.status();
    EXPECT_LT(ResidentBytes(server.pid()) - before, int64_t{600} << 20);
  }
  const auto got = GreetPatiently(server.line());
  EXPECT_TRUE(got.ok()) << got.status();
}

// Asks for much and takes none of it.
TEST_F(HostilePeers, R03_ASlowReader) {
  Serve();
  Stranger stranger(server_->address());
  stranger.SetPatience(absl::Seconds(5));
  ASSERT_TRUE(stranger.Send(
      kPreface + Frame(kSettings, 0, 0, "") + Call(1, "Hang") + Frame(kData, kEndStream, 1, Message(""))));
  AwaitHanging(1);
  const std::string piece(16'000, 'x');
  for (uint32_t i = 1; i < 4; ++i) {  // as much as the server's window lets in at once
    if (!stranger.Send(Call(2 * i + 1, "Echo") + Frame(kData, kEndStream, 2 * i + 1, Message(piece)))) break;
  }
  const auto got = Greet(server_->address());
  EXPECT_TRUE(got.ok()) << got.status();
  AwaitHanging(0);  // it does not answer pings either
  EXPECT_EQ(handler_.cancelled(), 1);
}

// Says nothing more, in the middle of a call, of a frame, of the greeting.
TEST_F(HostilePeers, R03_HalfOpenSockets) {
  Serve();
  Stranger in_call(server_->address()), in_frame(server_->address()), in_greeting(server_->address());
  const std::string call = kPreface + Frame(kSettings, 0, 0, "") + Call(1, "Hang");
  ASSERT_TRUE(in_call.Send(call + Frame(kData, kEndStream, 1, Message(""))));
  ASSERT_TRUE(in_frame.Send(call + Frame(1000, kData, 0, 1, "x")));
  ASSERT_TRUE(in_greeting.Send(kPreface.substr(0, 5)));
  AwaitHanging(1);
  const auto got = Greet(server_->address());
  EXPECT_TRUE(got.ok()) << got.status();
  AwaitHanging(0);
  in_frame.SetPatience(absl::Seconds(10));
  in_greeting.SetPatience(absl::Seconds(15));
  EXPECT_FALSE(in_frame.Read());
  EXPECT_FALSE(in_greeting.Read()) << "a greeting ends within ten seconds";
}

// The value of a header says that it has 4 GiB, which begin to come piece by piece.
TEST_F(HostilePeers, R04_AHeaderOfFourGiB) {
  const ServerProcess server("grpc", "serve", "127.0.0.1:0");
  ASSERT_TRUE(Greet(server.line()).ok());
  const int64_t before = ResidentBytes(server.pid());
  {
    Stranger stranger(server.line());
    stranger.SetPatience(absl::Seconds(10));
    ASSERT_TRUE(stranger.Send(kPreface + Frame(kSettings, 0, 0, "")));
    // 7 bits of ones, then 0xffffffff - 127 in groups of seven bits.
    const std::string length = "\x7f\x80\xff\xff\xff\x0f";
    stranger.Send(Frame(kHeaders, 0, 1, HeadersOf("Echo") + std::string("\0\4", 2) + "much" + length));
    const std::string piece = Frame(kContinuation, 0, 1, std::string(16'000, 'x'));
    for (int i = 0; i < 250 && stranger.Send(piece); ++i) {
    }
    const auto got = GreetPatiently(server.line());
    EXPECT_TRUE(got.ok()) << got.status();
    EXPECT_LT(ResidentBytes(server.pid()) - before, int64_t{64} << 20);
  }
  const auto got = GreetPatiently(server.line());
  EXPECT_TRUE(got.ok()) << got.status();
}

// Of headers that gRPC itself gives a meaning to.
TEST_F(HostilePeers, R04_HeadersThatAbort) {
  const ServerProcess server("grpc", "serve", "127.0.0.1:0");
  const std::string binary = "\xff\xfe\x01";
  const std::vector<std::string> cases = {
      HeadersOf("Echo", "x", "x") + Header("grpclb_client_stats", "x"),
      HeadersOf("Echo", "x", "trailers") + Header("grpclb_client_stats", "x"),
      HeadersOf("Echo") + Header("grpclb_client_stats", ""),
      HeadersOf("Echo") + Header("lb-token", "x") + Header("lb-cost-bin", "x"),
      HeadersOf("Echo") + Header("grpc-timeout", "99999999999999S"),
      HeadersOf("Echo") + Header("grpc-encoding", "gzip") + Header("grpc-internal-encoding-request", "x"),
      HeadersOf("Echo") + Header("grpc-status", "x") + Header("grpc-retry-pushback-ms", "x"),
      HeadersOf("Echo") + Header("grpc-trace-bin", "!") + Header("grpc-tags-bin", "%"),
      HeadersOf("Echo") + Header("content-type", "") + Header("te", ""),
      HeadersOf("Echo") + Header(":path", "") + Header(":method", "DELETE"),
      HeadersOf("Echo") + Header("x-endpoint-load-metrics-bin", binary),
      HeadersOf("Echo") + Header("host", "a") + Header(":authority", "b") + Header(":status", "999"),
      Header(":method", "x") + Header(":scheme", "y"),
      "",
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    Stranger stranger(server.line());
    stranger.Send(kPreface + Frame(kSettings, 0, 0, "") + Frame(kHeaders, kEndHeaders, 1, cases[i]) +
                  Frame(kData, kEndStream, 1, Message("x")));
    stranger.Read();
    const auto got = Greet(server.line());
    ASSERT_TRUE(got.ok()) << got.status();
  }
}

TEST_F(HostilePeers, R04_BytesThatAreNoCalls) {
  Serve();
  std::mt19937 random(7);
  const auto noise = [&random](size_t size) {
    std::string bytes(size, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    return bytes;
  };
  const auto send = [this](const std::string& bytes) {
    Stranger stranger(server_->address());
    stranger.Send(bytes);
    stranger.Read();
  };
  const std::string greeting = kPreface + Frame(kSettings, 0, 0, ""), call = Call(1, "Echo");
  send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  send(std::string(1 << 20, '\xff'));
  send(kPreface + noise(10'000));
  send(greeting + Frame(0xffffff, kData, 0, 1, noise(1000)));                                 // of no stream
  send(greeting + call + Frame(kData, kEndStream, 1, std::string("\0\xff\xff\xff\xff", 5)));  // no 4 GiB follow
  send(greeting + call + Frame(kData, 0, 1, std::string("\1\0\0\0\1", 5)));                   // compressed, it says
  send(greeting + call + Frame(kData, kEndStream, 1, std::string("\0\0", 2)));                // ends in a length
  send(greeting + call + Frame(kData, kEndStream, 1, ""));                                    // without a message
  send(greeting + call + call + call);                                                        // one stream thrice
  for (int i = 0; i < 150; ++i) {
    std::string bytes = greeting;
    for (int j = 0; j < 20; ++j) {
      const std::string payload = noise(random() % 200);
      bytes += Frame(static_cast<int>(random() % 12), static_cast<int>(random()), random() % 5, payload);
      if (j == static_cast<int>(random() % 20)) bytes += call;
    }
    send(bytes);
  }
  const auto got = Greet(server_->address());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, "alive");
}

}  // namespace
}  // namespace millrace
