// SPDX-License-Identifier: Apache-2.0
// What shared memory adds: that nothing is copied twice, what is left when somebody dies, and hostile peers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "absl/synchronization/notification.h"
#include "base/lent_thread.h"
#include "base/thread_pool.h"
#include "cluster/shm/address.h"
#include "cluster/shm/frame.h"
#include "echo_handler.h"
#include "server_process.h"
#include "tensor/shared_memory.h"
#include "testing_calls.h"
#include "transports.h"

namespace millrace {
namespace {

using absl::StatusCode;

class Shm : public testing::Test {
 protected:
  void SetUp() override {
    auto server = transport_->Listen({.address = address_}, &handler_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = *transport_->Connect(address_);
  }
  std::string path() const { return address_.substr(5); }

  // What a peer who obeys no rule sends; whether the server then hangs up.
  bool IsRefused(const std::string& packet, int descriptor = -1) {
    auto socket = shm::ConnectTo(path());
    EXPECT_TRUE(socket.ok()) << socket.status();
    EXPECT_TRUE(SendTo(*socket, packet, descriptor));
    return HangsUp(*socket);
  }
  static bool SendTo(const Descriptor& socket, const std::string& packet, int descriptor) {
    iovec bytes{const_cast<char*>(packet.data()), packet.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(sizeof(int));
      memcpy(CMSG_DATA(c), &descriptor, sizeof(int));
    }
    return sendmsg(socket.get(), &message, MSG_NOSIGNAL) >= 0;
  }
  static bool HangsUp(const Descriptor& socket) {
    char buffer[65536];
    for (int i = 0; i < 200; ++i) {
      const ssize_t got = recv(socket.get(), buffer, sizeof(buffer), 0);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
      if (got < 0) absl::SleepFor(absl::Milliseconds(5));
    }
    return false;
  }
  static shm::FrameHeader Request(uint64_t payload, uint64_t segment, uint64_t capacity) {
    shm::FrameHeader h;
    h.type = shm::FrameType::kRequest;
    h.id = 1;
    h.method_bytes = 4;
    h.payload_bytes = payload;
    h.segment = segment;
    h.segment_capacity = capacity;
    return h;
  }
  static std::string Bytes(const shm::FrameHeader& header, const std::string& behind = "Size") {
    return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + behind;
  }
  static Descriptor Memory(off_t size, int seals) {
    Descriptor memory(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(memory.get(), size), 0);
    EXPECT_EQ(fcntl(memory.get(), F_ADD_SEALS, seals), 0);
    return memory;
  }
  bool IsAlive() {
    const auto got = CallAndWait(*channel_, "Size", absl::Cord(std::string(100'000, 'x')));
    return got.ok() && *got == "100000";
  }

  const std::string address_ = FreeAddress("shm");
  EchoHandler handler_{Env::Default()};
  std::unique_ptr<RpcTransport> transport_ = NewShmTransport(Env::Default());
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RpcChannel> channel_;
};

int MappedSegments() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:millrace") != std::string::npos;
  return count;
}

TEST_F(Shm, ALongReplyIsOnePieceOfSharedMemoryWhichIsUsedAgain) {
  const std::string bytes(10'000'000, 'm');
  const int before = MappedSegments();
  for (int i = 0; i < 20; ++i) {
    auto got = CallAndWait(*channel_, "Echo", absl::Cord(bytes));
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(got->TryFlat().has_value());
    ASSERT_EQ(*got->TryFlat(), bytes);
  }
  // One for each direction, and others where these were not back in time; each is mapped by its owner and two peers.
  EXPECT_LE(MappedSegments() - before, 15);
}

// Schedules what each call brings: it waits for `go`, and replies whether it runs on the pool.
class WorkingHandler final : public RpcHandler {
 public:
  void Handle(absl::string_view method, const RpcContext&, absl::Cord request, RpcReply reply) override {
    if (method == "Echo") return std::move(reply)(std::move(request));
    LentThread::Schedule(ProcessThreadPool(), [this, reply = std::move(reply)]() mutable {
      ++working;
      go.WaitForNotification();
      char name[16] = "";
      pthread_getname_np(pthread_self(), name, sizeof(name));
      std::move(reply)(absl::Cord(name == std::string("millrace") ? "pool" : "lent"));
    });
  }
  std::atomic<int> working{0};
  absl::Notification go;
};

TEST_F(Shm, AThreadThatTakesMessagesRunsWhatTheyBringAndAnotherAnswers) {
  bool was_lent = false;
  for (int attempt = 0; attempt < 50 && !was_lent; ++attempt) {  // a thread lends itself only where the other one waits
    WorkingHandler handler;
    const std::string address = FreeAddress("shm");
    const auto server = *transport_->Listen({.address = address}, &handler);
    const auto channel = *transport_->Connect(address);
    absl::SleepFor(absl::Milliseconds(50));  // so that both of them wait
    Pending first, second;
    for (Pending* call : {&first, &second}) {
      const int before = handler.working;
      channel->Call("Work", {}, absl::Cord(), call->Reply());
      for (int i = 0; i < 3000 && handler.working == before; ++i) absl::SleepFor(absl::Milliseconds(10));
      ASSERT_EQ(handler.working, before + 1);
      ASSERT_EQ(*CallAndWait(*channel, "Echo", absl::Cord("still here")), "still here");
    }
    handler.go.Notify();
    const std::string one(*first.Result()), other(*second.Result());
    EXPECT_TRUE(one != "lent" || other == "pool") << "nobody would take messages";
    was_lent = one == "lent" || other == "lent";
  }
  EXPECT_TRUE(was_lent);
}

TEST_F(Shm, ManyMessagesAtOnceHaveMemoryOfTheirOwn) {
  std::vector<absl::Cord> kept;
  for (int i = 0; i < 30; ++i) {
    auto got = CallAndWait(*channel_, "Echo", absl::Cord(std::string(100'000, static_cast<char>('a' + i % 26))));
    ASSERT_TRUE(got.ok()) << got.status();
    kept.push_back(*std::move(got));
  }
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(kept[static_cast<size_t>(i)], std::string(100'000, static_cast<char>('a' + i % 26)));
  }
}

// A queue may hold what came for as long as it likes.
TEST_F(Shm, WhoHoldsManyMessagesDoesNotKeepOthersBack) {
  std::vector<absl::Cord> kept;
  const std::string bytes(40'000, 'q');
  for (size_t i = 0; i < shm::kMaxSegments + 100; ++i) {
    auto got = CallAndWait(*channel_, "Echo", absl::Cord(bytes));
    ASSERT_TRUE(got.ok()) << i << ": " << got.status();
    kept.push_back(*std::move(got));
  }
  for (const absl::Cord& cord : kept) ASSERT_EQ(cord, bytes);
}

TEST_F(Shm, WhatCameOutlivesItsSender) {
  ServerProcess other("shm", "serve", FreeAddress("shm"));
  auto channel = *transport_->Connect(other.line());
  const std::string bytes(5'000'000, 'k');
  auto got = CallAndWait(*channel, "Echo", absl::Cord(bytes));
  ASSERT_TRUE(got.ok()) << got.status();
  other.Signal(SIGKILL);
  EXPECT_EQ(CallAndWait(*channel, "Echo", {}).status().code(), StatusCode::kUnavailable);
  channel.reset();
  EXPECT_EQ(*got, bytes);
  got = absl::Cord();
}

// Keeps what it is sent.
class Keeper final : public RpcHandler {
 public:
  void Handle(absl::string_view, const RpcContext&, absl::Cord request, RpcReply reply) override {
    {
      absl::MutexLock lock(&mu);
      kept = std::move(request);
    }
    std::move(reply)(absl::Cord());
  }
  absl::Mutex mu;
  absl::Cord kept ABSL_GUARDED_BY(mu);
};

class ShmLending : public Shm {
 protected:
  ShmLending() {
    keeping_ = *transport_->Listen({.address = keeper_address_}, &keeper_);
    to_keeper_ = *transport_->Connect(keeper_address_);
  }
  static RefPtr<SharedBuffer> NewBuffer(char filler) {
    RefPtr<SharedBuffer> buffer = *SharedMemory::Instance().Allocate(kBytes);
    std::memset(buffer->data(), filler, kBytes);
    return buffer;
  }
  // "start", and the buffer.
  void Lend(const RefPtr<SharedBuffer>& buffer) {
    absl::Cord payload("start");
    payload.Append(absl::MakeCordFromExternal({static_cast<char*>(buffer->data()), kBytes}, [held = buffer] {}));
    ASSERT_TRUE(CallAndWait(*to_keeper_, "Keep", std::move(payload)).ok());
  }
  std::string Kept() {
    absl::MutexLock lock(&keeper_.mu);
    return std::string(keeper_.kept);
  }
  void LetGo() {
    absl::MutexLock lock(&keeper_.mu);
    keeper_.kept.Clear();
  }
  static bool ComesBack(const RefPtr<SharedBuffer>& buffer) {
    for (int i = 0; i < 500 && !buffer->HasOneRef(); ++i) absl::SleepFor(absl::Milliseconds(10));
    return buffer->HasOneRef();
  }

  static constexpr size_t kBytes = 1'000'000;
  const std::string keeper_address_ = FreeAddress("shm");
  Keeper keeper_;
  std::unique_ptr<RpcServer> keeping_;
  std::unique_ptr<RpcChannel> to_keeper_;
};

TEST_F(ShmLending, WhatLiesInSharedMemoryIsLentAndNotCopied) {
  const RefPtr<SharedBuffer> buffer = NewBuffer('a');
  for (int i = 0; i < 3; ++i) {
    Lend(buffer);
    EXPECT_EQ(Kept(), "start" + std::string(kBytes, 'a'));
    EXPECT_FALSE(buffer->HasOneRef()) << "the peer reads it";
  }
  static_cast<char*>(buffer->data())[3] = 'b';  // which nobody may, but to see that it is the same memory
  EXPECT_EQ(Kept().substr(0, 10), "startaaaba");
  LetGo();
  EXPECT_TRUE(ComesBack(buffer));
}

TEST_F(ShmLending, WhatIsStillReadWhenAConnectionEndsIsLeftToItsReader) {
  RefPtr<SharedBuffer> buffer = NewBuffer('a');
  Lend(buffer);
  to_keeper_.reset();
  SharedMemory::Instance().Trim();
  EXPECT_FALSE(buffer->HasOneRef()) << "who writes takes a copy";
  const uint64_t id = buffer->id();
  buffer = nullptr;
  SharedMemory::Instance().Trim();
  for (int i = 0; i < 3; ++i) EXPECT_NE(NewBuffer('z')->id(), id);
  EXPECT_EQ(Kept(), "start" + std::string(kBytes, 'a'));
}

TEST_F(ShmLending, TheDeadGiveBackWhatTheyWereLent) {
  ServerProcess other("shm", "serve", FreeAddress("shm"));
  auto channel = *transport_->Connect(other.line());
  other.Signal(SIGSTOP);  // so that it does not give it back before
  RefPtr<SharedBuffer> buffer = NewBuffer('d');
  const std::weak_ptr<Segment> segment = buffer->segment();
  Pending pending;
  channel->Call(
      "Hang", {}, absl::MakeCordFromExternal({static_cast<char*>(buffer->data()), kBytes}, [held = buffer] {}),
      pending.Reply());
  other.Signal(SIGKILL);
  EXPECT_EQ(pending.Result().status().code(), StatusCode::kUnavailable);
  channel.reset();
  buffer = nullptr;
  // A connection that hears of it just now may have its share still.
  for (int i = 0; i < 500 && !segment.expired(); ++i, absl::SleepFor(absl::Milliseconds(10))) {
    SharedMemory::Instance().Trim();
  }
  EXPECT_TRUE(segment.expired());
}

TEST_F(Shm, NothingIsLeftOfTheDead) {
  const auto files = [] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) names.push_back(entry.path());
    return names.size();
  };
  const size_t before = files();
  const std::string address = FreeAddress("shm");
  {
    ServerProcess other("shm", "serve", address);
    auto channel = *transport_->Connect(address);
    ASSERT_TRUE(CallAndWait(*channel, "Echo", absl::Cord(std::string(1'000'000, 'x'))).ok());
    other.Signal(SIGKILL);
  }
  EXPECT_EQ(files(), before);
  EXPECT_TRUE(std::filesystem::exists(address.substr(5)));          // the dead cannot remove it
  auto next = transport_->Listen({.address = address}, &handler_);  // but the next does
  ASSERT_TRUE(next.ok()) << next.status();
  auto channel = *transport_->Connect(address);
  EXPECT_TRUE(CallAndWait(*channel, "Echo", absl::Cord("x")).ok());
  next->reset();
  EXPECT_FALSE(std::filesystem::exists(address.substr(5)));
}

TEST_F(Shm, OnlyTheUserMayConnect) {
  struct stat info{};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(Shm, RefusesAPathThatIsNoSocketOrTooLong) {
  const std::string file = path() + ".file";
  std::ofstream(file) << "mine";
  EXPECT_FALSE(transport_->Listen({.address = "unix:" + file}, &handler_).ok());
  EXPECT_TRUE(std::filesystem::exists(file));
  std::filesystem::remove(file);
  const std::string longest = "unix:/tmp/" + std::string(200, 'p');
  EXPECT_EQ(transport_->Listen({.address = longest}, &handler_).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(transport_->Connect(longest).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(Shm, RefusesMemoryThatIsNotWhatItSays) {
  constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW;
  constexpr uint64_t kSize = 1 << 20;
  EXPECT_TRUE(IsRefused(Bytes(Request(kSize, 1, kSize)), Memory(kSize, 0).get())) << "it could be made shorter";
  EXPECT_TRUE(IsRefused(Bytes(Request(kSize, 1, kSize)), Memory(kSize - 1, kSealed).get())) << "it is shorter";
  EXPECT_TRUE(IsRefused(Bytes(Request(kSize + 1, 1, kSize)), Memory(kSize, kSealed).get())) << "the payload is longer";
  EXPECT_TRUE(IsRefused(Bytes(Request(0, 1, 0)), Memory(kSize, kSealed).get()));
  EXPECT_TRUE(IsRefused(Bytes(Request(kSize, 1, UINT64_MAX)), Memory(kSize, kSealed).get()));
  EXPECT_TRUE(IsRefused(Bytes(Request(UINT64_MAX, 1, kSize)), Memory(kSize, kSealed).get()));
  for (const uint64_t offset : {uint64_t{2}, kSize + 1, UINT64_MAX}) {
    shm::FrameHeader header = Request(kSize - 1, 1, kSize);
    header.segment_offset = offset;
    EXPECT_TRUE(IsRefused(Bytes(header), Memory(kSize, kSealed).get())) << "it ends before " << offset;
  }
  EXPECT_TRUE(IsRefused(Bytes(Request(2, 1, kSize), "Size+++"), Memory(kSize, kSealed).get())) << "more came inline";
  EXPECT_TRUE(IsRefused(Bytes(Request(kSize, 1, kSize)))) << "there is none";
  EXPECT_TRUE(IsRefused(Bytes(Request(kSize, 9, 0)))) << "it never came";
  EXPECT_TRUE(IsRefused(Bytes(Request(kSize, 1, kSize)), Descriptor(open("/dev/zero", O_RDONLY)).get()));
  EXPECT_TRUE(IsRefused(Bytes(Request(kSize, 1, kSize)), Descriptor(open("/proc/self/exe", O_RDONLY)).get()));
  EXPECT_TRUE(IsAlive());
  // The same with nothing wrong, to see that the rest is why.
  auto socket = shm::ConnectTo(path());
  const auto memory = Memory(kSize, kSealed);
  ASSERT_TRUE(SendTo(*socket, Bytes(Request(kSize, 1, kSize)), memory.get()));
  char reply[256];
  ssize_t got = -1;
  for (int i = 0; i < 500 && got < 0; ++i, absl::SleepFor(absl::Milliseconds(2))) {
    got = recv(socket->get(), reply, sizeof(reply), 0);
  }
  ASSERT_GE(got, static_cast<ssize_t>(sizeof(shm::FrameHeader)));
}

TEST_F(Shm, RefusesPacketsThatAreNoFrames) {
  EXPECT_TRUE(IsRefused("x"));
  EXPECT_TRUE(IsRefused(std::string(sizeof(shm::FrameHeader), '\0')));
  EXPECT_TRUE(IsRefused(std::string(100'000, '\xff'))) << "longer than any may be";
  shm::FrameHeader header = Request(0, 0, 0);
  header.method_bytes = 5;
  EXPECT_TRUE(IsRefused(Bytes(header))) << "the method is longer than the packet";
  header = Request(1, 0, 0);
  EXPECT_TRUE(IsRefused(Bytes(header))) << "a payload that is not there";
  header = Request(0, 0, 0);
  header.type = static_cast<shm::FrameType>(99);
  EXPECT_TRUE(IsRefused(Bytes(header)));
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    auto socket = shm::ConnectTo(path());
    // So many may wait to be accepted.
    for (int j = 0; j < 1000 && !socket.ok(); ++j, socket = shm::ConnectTo(path()))
      absl::SleepFor(absl::Milliseconds(2));
    ASSERT_TRUE(socket.ok()) << socket.status();
    for (int j = 0; j < 5; ++j) {
      header = Request(random() % 8, random() % 3, random() % 2 != 0 ? random() : 0);
      header.type = static_cast<shm::FrameType>(random() % 9);
      header.id = random() % 4;
      header.method_bytes = random() % 6;
      header.code = static_cast<int32_t>(random());
      header.timeout_nanos = static_cast<int64_t>(random()) - 5;
      const auto memory =
          random() % 4 == 0 ? Memory(random() % 100'000, random() % 2 != 0 ? F_SEAL_SHRINK : 0) : Descriptor();
      if (!SendTo(*socket, Bytes(header, std::string(random() % 12, 'Z')), memory.get())) break;
    }
  }
  EXPECT_TRUE(IsAlive());
}

}  // namespace
}  // namespace millrace
