// SPDX-License-Identifier: Apache-2.0
// What gRPC's transport does beyond what all do: who may connect. What strangers get is in hostile_test.cc.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "base/logging.h"
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
  // Refused for good, in these words.
  static testing::AssertionResult Says(const StatusOr<absl::Cord>& got, const std::vector<const char*>& words) {
    bool is_right = got.status().code() == StatusCode::kUnauthenticated;
    for (const char* w : words) is_right &= absl::StrContains(got.status().message(), w);
    return (is_right ? testing::AssertionSuccess() : testing::AssertionFailure()) << got.status();
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
  EXPECT_TRUE(Says(CallAs(*As("stranger")), {"DNS:worker-0.test", "signed by CN=other", "takes those of CN=ours"}));
  EXPECT_TRUE(Says(
      CallAs(*As("worker", "other")),
      {"its certificate (DNS:server.test", "another authority, CN=ours", "trusts, CN=other", "MILLRACE_TLS_CA"}))
      << "the caller must refuse us";
}

TEST_F(Certificates, ThatExpiredAreRefused) {
  Serve("server");
  EXPECT_TRUE(Says(CallAs(*As("expired")), {"of this process (DNS:worker-0.test", "expired on"}));
  Serve("expired");
  EXPECT_TRUE(Says(CallAs(*As("worker")), {"its certificate (DNS:worker-0.test", "expired on"}));
}

TEST_F(Certificates, ThatAreRefusedAreToldAtOnceAndLoggedOnceAMinute) {
  std::atomic<int> lines = 0;
  SetLogListener([&](LogLevel, const std::string& line) { lines += absl::StrContains(line, "andshake failed"); });
  Serve("server");
  const auto caller = As("expired");
  const absl::Time start = absl::Now();
  auto channel = caller->Connect(server_->address());
  for (int i = 0; i < 50; ++i) {
    const auto got = CallAndWait(**channel, "Peer", {}, {.timeout = absl::Seconds(10)});
    EXPECT_TRUE(Says(got, {"expired on"})) << i;
  }
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  EXPECT_LE(lines.load(), 4) << "two places of gRPC's sources, here and there";
  SetLogListener(nullptr);
}

TEST_F(Certificates, MustHaveTheirOwnKeys) {
  RpcTransportOptions options;
  options.credentials = TextsOf("server");
  options.credentials->key = Read("worker.key");
  options.origin = "MILLRACE_TLS_KEY=the.key";
  const Status s = NewGrpcTransport(Env::Default(), options).status();
  EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(s.message(), "(MILLRACE_TLS_KEY=the.key): the key is not that of the certificate"))
      << s;
}

TEST_F(Certificates, OfClientsAreNoServers) {
  const auto client = As("client");
  const Status s = client->Listen({.address = "127.0.0.1:0"}, &handler_).status();
  EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(s.message(), "has the role client; a server's has the role task")) << s;
  EXPECT_TRUE(As("task")->Listen({.address = "127.0.0.1:0"}, &handler_).ok());
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
  EXPECT_TRUE(Says(CallAs(*worker), {"expired on"}));
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
  EXPECT_TRUE(Says(CallAs(*stranger), {"signed by CN=other"}));
  texts.Become(TextsOf("server", "other"));  // another authority signs who may call
  EXPECT_TRUE(Says(CallAs(*worker), {"signed by CN=ours, and it takes those of CN=other"}));
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
  EXPECT_TRUE(Says(call(), {"signed by CN=other"})) << "a call after it shows the new one";
  texts.Become(TextsOf("server"));
  const auto got = call();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(absl::StartsWith(std::string(*got), "server.test at ")) << *got;
  texts.Become(TextsOf("server", "other"));
  EXPECT_EQ(call().status().code(), StatusCode::kUnauthenticated) << "whom it trusts has changed";
}

TEST_F(Certificates, OfAServerMustNameItsHost) {
  Serve("nameless");
  EXPECT_TRUE(Says(CallAs(*As("worker")), {"is for DNS:somewhere-else.test, and not for '127.0.0.1'"}));
  RpcTransportOptions options;
  options.credentials = TextsOf("worker");
  options.server_name = "somewhere-else.test";
  EXPECT_TRUE(CallAs(**NewGrpcTransport(Env::Default(), options)).ok());
}

TEST_F(Certificates, AreAskedOfEverybody) {
  Serve("server");
  const auto plain = NewGrpcTransport(Env::Default());
  EXPECT_TRUE(Says(CallAs(**plain), {"the server speaks TLS alone", "MILLRACE_TLS_CA"}));
  // And one who has them does not speak to a server that has none.
  const auto other = (*plain)->Listen({.address = "127.0.0.1:0"}, &handler_);
  const auto worker = As("worker");
  auto channel = worker->Connect((*other)->address());
  EXPECT_TRUE(Says(CallAndWait(**channel, "Peer", {}), {"the server speaks no TLS"}));
  // Nothing is said against one that is not there.
  const std::string gone = server_->address();
  server_.reset();
  const auto nobody = worker->Connect(gone);
  EXPECT_EQ(CallAndWait(**nobody, "Peer", {}).status().code(), StatusCode::kUnavailable);
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

// A mapping of its own would be given back as soon as it is free, and its pages taken anew for the next message.
TEST(GrpcMemory, OfPiecesOfMessagesIsKept) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "skipped: the sanitizer has an allocator of its own";
#endif
  const auto transport = NewGrpcTransport(Env::Default()).value();
  const size_t mappings = mallinfo2().hblks;
  void* volatile piece = malloc(size_t{16} << 20);
  EXPECT_EQ(mallinfo2().hblks, mappings);
  free(piece);
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

}  // namespace
}  // namespace millrace
