// SPDX-License-Identifier: Apache-2.0
// What gRPC's transport does beyond what all do: who may connect, and what strangers get.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "echo_handler.h"
#include "server_process.h"
#include "testing_calls.h"
#include "transports.h"

namespace millrace {
namespace {

using absl::StatusCode;

class Certificates : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (std::system("openssl version > /dev/null 2>&1") != 0) return;
    char folder[] = "/tmp/millrace_certificates_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    ASSERT_EQ(std::system((std::string(MR_SOURCE_FOLDER "/make_certificates.sh ") + folder).c_str()), 0);
  }
  static void TearDownTestSuite() {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
    folder_.clear();
  }
  void SetUp() override {
    if (folder_.empty()) GTEST_SKIP() << "skipped: the program openssl is not here";
  }

  static std::string Read(const std::string& name) {
    std::stringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }
  static RpcCredentials TextsOf(const std::string& who, const std::string& authority = "ours") {
    return RpcCredentials{Read(authority + ".pem"), Read(who + ".pem"), Read(who + ".key"), ""};
  }
  static std::unique_ptr<RpcTransport> As(const std::string& who, const std::string& authority = "ours") {
    RpcTransportOptions options;
    options.credentials = TextsOf(who, authority);
    auto transport = NewGrpcTransport(Env::Default(), options);
    EXPECT_TRUE(transport.ok()) << transport.status();
    return *std::move(transport);
  }
  StatusOr<absl::Cord> CallAs(RpcTransport& caller) {
    auto channel = caller.Connect(server_->address());
    return CallAndWait(**channel, "Peer", {}, {.timeout = absl::Seconds(10)});
  }
  void Serve(const std::string& who) {
    serving_ = As(who);
    auto server = serving_->Listen({.address = "127.0.0.1:0"}, &handler_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  static inline std::string folder_;
  EchoHandler handler_{Env::Default()};
  std::unique_ptr<RpcTransport> serving_;
  std::unique_ptr<RpcServer> server_;
};

TEST_F(Certificates, SayWhoCalls) {
  Serve("server");
  const auto worker = As("worker");
  const auto got = CallAs(*worker);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(absl::StartsWith(std::string(*got), "worker-0.test at ipv4:127.0.0.1:")) << *got;
  EXPECT_TRUE(absl::EndsWith(std::string(*got), "\nworker-0.test\ncommon-worker")) << *got;
}

TEST_F(Certificates, AllowOtherHostsToBeServed) {
  const auto transport = As("server");
  const auto server = transport->Listen({.address = "0.0.0.0:0"}, &handler_);
  EXPECT_TRUE(server.ok()) << server.status();
}

TEST_F(Certificates, OfAnotherAuthorityAreRefused) {
  Serve("server");
  EXPECT_EQ(CallAs(*As("stranger")).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(CallAs(*As("worker", "other")).status().code(), StatusCode::kUnavailable) << "the caller must refuse us";
}

TEST_F(Certificates, ThatExpiredAreRefused) {
  Serve("server");
  EXPECT_EQ(CallAs(*As("expired")).status().code(), StatusCode::kUnavailable);
  Serve("expired");
  EXPECT_EQ(CallAs(*As("worker")).status().code(), StatusCode::kUnavailable);
}

// Of a transport that looks at them before every connection.
class Renewed {
 public:
  explicit Renewed(RpcCredentials first) : texts_(std::move(first)) {}
  void Become(StatusOr<RpcCredentials> texts) {
    absl::MutexLock lock(&mu_);
    texts_ = std::move(texts);
  }
  std::unique_ptr<RpcTransport> Transport() {
    RpcTransportOptions options;
    options.credentials = Texts().value();
    options.renew = [this] { return Texts(); };
    options.renewal_interval = absl::ZeroDuration();
    return NewGrpcTransport(Env::Default(), options).value();
  }

 private:
  StatusOr<RpcCredentials> Texts() {
    absl::MutexLock lock(&mu_);
    return texts_;
  }
  absl::Mutex mu_;
  StatusOr<RpcCredentials> texts_;
};

TEST_F(Certificates, OfAServerMayChange) {
  Renewed texts(TextsOf("expired"));
  serving_ = texts.Transport();
  auto server = serving_->Listen({.address = "127.0.0.1:0"}, &handler_);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  const auto worker = As("worker"), stranger = As("stranger");
  EXPECT_EQ(CallAs(*worker).status().code(), StatusCode::kUnavailable);
  texts.Become(TextsOf("server"));
  EXPECT_TRUE(CallAs(*worker).ok());
  RpcCredentials odd = TextsOf("server");
  odd.key = Read("worker.key");
  RpcCredentials none = TextsOf("server");
  none.key = "";
  for (const StatusOr<RpcCredentials>& bad :
       {StatusOr<RpcCredentials>(odd), StatusOr<RpcCredentials>(none), StatusOr<RpcCredentials>(NotFound("no file"))}) {
    texts.Become(bad);
    const auto got = CallAs(*worker);
    EXPECT_TRUE(got.ok()) << "they stay as they were; " << got.status();
  }
  EXPECT_EQ(CallAs(*stranger).status().code(), StatusCode::kUnavailable);
  texts.Become(TextsOf("server", "other"));  // another authority signs who may call
  EXPECT_EQ(CallAs(*worker).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(CallAs(*As("stranger")).ok()) << "the caller trusts the server's authority still";
}

TEST_F(Certificates, OfACallerMayChange) {
  Serve("server");
  Renewed texts(TextsOf("worker"));
  const auto caller = texts.Transport();
  auto channel = caller->Connect(server_->address());
  const auto call = [&] { return CallAndWait(**channel, "Peer", {}, {.timeout = absl::Seconds(10)}); };
  EXPECT_TRUE(call().ok());
  texts.Become(NotFound("no file"));
  EXPECT_TRUE(call().ok());
  texts.Become(TextsOf("stranger"));
  EXPECT_EQ(call().status().code(), StatusCode::kUnavailable) << "a call after it shows the new one";
  texts.Become(TextsOf("server"));
  const auto got = call();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(absl::StartsWith(std::string(*got), "server.test at ")) << *got;
  texts.Become(TextsOf("server", "other"));
  EXPECT_EQ(call().status().code(), StatusCode::kUnavailable) << "whom it trusts has changed";
}

TEST_F(Certificates, OfAServerMustNameItsHost) {
  Serve("nameless");
  EXPECT_EQ(CallAs(*As("worker")).status().code(), StatusCode::kUnavailable);
  RpcTransportOptions options;
  options.credentials = TextsOf("worker");
  options.server_name = "somewhere-else.test";
  EXPECT_TRUE(CallAs(**NewGrpcTransport(Env::Default(), options)).ok());
}

TEST_F(Certificates, AreAskedOfEverybody) {
  Serve("server");
  const auto plain = NewGrpcTransport(Env::Default());
  EXPECT_EQ(CallAs(**plain).status().code(), StatusCode::kUnavailable);
  // And one who has them does not speak to a server that has none.
  const auto other = (*plain)->Listen({.address = "127.0.0.1:0"}, &handler_);
  const auto worker = As("worker");
  auto channel = worker->Connect((*other)->address());
  EXPECT_EQ(CallAndWait(**channel, "Peer", {}).status().code(), StatusCode::kUnavailable);
}

TEST_F(Certificates, ThatAreNoTextsAreRefused) {
  for (const int which : {0, 1, 2}) {
    RpcTransportOptions options;
    options.credentials = TextsOf("worker");
    RpcCredentials& c = *options.credentials;
    (which == 0 ? c.authority : which == 1 ? c.certificate : c.key) = "/a/path";
    EXPECT_EQ(NewGrpcTransport(Env::Default(), options).status().code(), StatusCode::kInvalidArgument);
  }
}

TEST(GrpcReach, WithoutCredentialsIsLoopbackOnly) {
  EchoHandler handler(Env::Default());
  auto transport = NewGrpcTransport(Env::Default());
  ASSERT_TRUE(transport.ok()) << transport.status();
  for (const char* address : {"0.0.0.0:0", "[::]:0", "10.0.0.1:0", "127.evil.example:0", "example.com:0", "*:0"}) {
    const auto server = (*transport)->Listen({.address = address}, &handler);
    ASSERT_EQ(server.status().code(), StatusCode::kFailedPrecondition) << address << ": " << server.status();
    EXPECT_TRUE(absl::StrContains(server.status().message(), "allow_insecure_remote"));
  }
  for (const char* address : {"127.0.0.1:0", "127.1.2.3:0", "localhost:0"}) {
    const auto server = (*transport)->Listen({.address = address}, &handler);
    EXPECT_TRUE(server.ok()) << address << ": " << server.status();
  }
  RpcTransportOptions options;
  options.allow_insecure_remote = true;
  transport = NewGrpcTransport(Env::Default(), options);
  EXPECT_TRUE((*transport)->Listen({.address = "0.0.0.0:0"}, &handler).ok());
}

// The loopback interface tells nobody apart.
TEST(GrpcReach, OtherUsersOfTheHostAreNotHeard) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  EchoHandler handler(Env::Default());
  for (const bool allowed : {false, true}) {
    RpcTransportOptions options;
    options.allow_other_users = allowed;
    const auto transport = NewGrpcTransport(Env::Default(), options);
    ASSERT_TRUE(transport.ok()) << transport.status();
    for (const char* address : {"127.0.0.1:0", "localhost:0", "[::1]:0"}) {
      const auto server = (*transport)->Listen({.address = address}, &handler);
      if (!server.ok() && address[0] == '[') continue;  // a host without IPv6
      ASSERT_TRUE(server.ok()) << server.status();
      const std::string said = ServerProcess("grpc", "stranger", (*server)->address()).line();
      if (allowed) {
        EXPECT_EQ(said, "heard");
      } else {
        EXPECT_TRUE(absl::StartsWith(said, "PERMISSION_DENIED: ")) << said;
        EXPECT_TRUE(absl::StrContains(said, "user 65534 at ip")) << said;
        EXPECT_TRUE(absl::StrContains(said, "MILLRACE_ALLOW_OTHER_USERS")) << said;
      }
      const auto channel = (*transport)->Connect((*server)->address());
      EXPECT_TRUE(CallAndWait(**channel, "Echo", absl::Cord("own")).ok());
    }
  }
}

std::string Peer(RpcTransport& transport, const std::string& address) {
  auto channel = transport.Connect(address);
  const auto got = CallAndWait(**channel, "Peer", {});
  return got.ok() ? std::string(*got) : got.status().ToString();
}

TEST(LocalFirst, GoesThroughSharedMemoryWhereThatGoes) {
  EchoHandler handler(Env::Default());
  auto both = NewRpcTransport(Env::Default());
  auto plain = NewGrpcTransport(Env::Default());
  for (const char* address : {"127.0.0.1:0", "localhost:0"}) {
    auto server = (*both)->Listen({.address = address}, &handler);
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_TRUE(absl::StartsWith(Peer(**both, (*server)->address()), "unix:pid "));
    EXPECT_TRUE(absl::StartsWith(Peer(**plain, (*server)->address()), "ipv"));
  }
  auto server = (*plain)->Listen({.address = "127.0.0.1:0"}, &handler);
  auto channel = (*both)->Connect((*server)->address());
  EXPECT_TRUE(CallAndWait(**channel, "Echo", {}).ok());
  EXPECT_TRUE(absl::StartsWith(Peer(**both, (*server)->address()), "ipv4:"));
  const std::string address = (*server)->address();
  server->reset();
  server = (*both)->Listen({.address = address}, &handler);  // the channel finds the better way when it is there
  ASSERT_TRUE(server.ok()) << server.status();
  const auto got = CallAndWait(**channel, "Peer", {});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(absl::StartsWith(std::string(*got), "unix:pid "));
}

TEST_F(Certificates, AreReadFromConnectionsOfGrpcAlone) {
  RpcTransportOptions options;
  options.credentials = TextsOf("server");
  auto both = NewRpcTransport(Env::Default(), options);
  auto server = (*both)->Listen({.address = "127.0.0.1:0"}, &handler_);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(absl::StartsWith(Peer(**both, (*server)->address()), "server.test at ipv4:"));
}

// Sends what is no call, and waits until the server hangs up, or a moment.
void Send(const std::string& address, const std::string& bytes) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  const timeval patience{0, 20'000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) break;
    sent += static_cast<size_t>(n);
  }
  char answer[4096];
  while (recv(fd, answer, sizeof(answer), 0) > 0) {
  }
  close(fd);
}

TEST(GrpcStrangers, GetNothingAndHarmNothing) {
  EchoHandler handler(Env::Default());
  auto transport = NewGrpcTransport(Env::Default());
  auto server = (*transport)->Listen({.address = "127.0.0.1:0"}, &handler);
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string address = (*server)->address();
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  std::mt19937 random(7);
  const auto noise = [&random](size_t size) {
    std::string bytes(size, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    return bytes;
  };
  const auto frame = [](uint32_t length, int type, int flags, uint32_t stream, const std::string& payload) {
    std::string f;
    for (int shift : {16, 8, 0}) f += static_cast<char>(length >> shift);
    f += static_cast<char>(type);
    f += static_cast<char>(flags);
    for (int shift : {24, 16, 8, 0}) f += static_cast<char>(stream >> shift);
    return f + payload;
  };
  const std::string settings = frame(0, 4, 0, 0, "");
  // Headers of a call, without compression: POST /millrace/Echo.
  const auto header = [](const std::string& name, const std::string& value) {
    return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
  };
  const std::string headers =
      header(":method", "POST") + header(":scheme", "http") + header(":path", "/millrace/Echo") +
      header("te", "trailers") + header("content-type", "application/grpc");
  const std::string call = frame(static_cast<uint32_t>(headers.size()), 1, 4, 1, headers);
  Send(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  Send(address, std::string(1 << 20, '\xff'));
  Send(address, preface + noise(10'000));
  Send(address, preface + settings + frame(0xffffff, 0, 0, 1, noise(1000)));  // of no stream
  Send(
      address, preface + settings + call + frame(5, 0, 1, 1, std::string("\0\xff\xff\xff\xff", 5)));  // no 4 GiB follow
  Send(address, preface + settings + call + frame(5, 0, 0, 1, std::string("\1\0\0\0\1", 5)));  // compressed, it says
  Send(address, preface + settings + call + frame(2, 0, 1, 1, std::string("\0\0", 2)));        // ends in a length
  Send(address, preface + settings + call + frame(0, 0, 1, 1, ""));                            // ends without a message
  Send(address, preface + settings + call + call + call);                                      // one stream thrice
  for (int i = 0; i < 150; ++i) {
    std::string bytes = preface + settings;
    for (int j = 0; j < 20; ++j) {
      const std::string payload = noise(random() % 200);
      bytes += frame(static_cast<uint32_t>(payload.size()), static_cast<int>(random() % 12), static_cast<int>(random()),
                     random() % 5, payload);
      if (j == static_cast<int>(random() % 20)) bytes += call;
    }
    Send(address, bytes);
  }
  auto channel = (*transport)->Connect(address);
  const auto got = CallAndWait(**channel, "Echo", absl::Cord("alive"));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, "alive");
}

}  // namespace
}  // namespace millrace
