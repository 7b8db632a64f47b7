// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/exceptions.h"
#include "base/hash_map.h"
#include "cluster/connection_limit.h"
#include "cluster/shm/address.h"
#include "cluster/shm/connection.h"
#include "cluster/shm/shm_transport.h"

namespace millrace::shm {
namespace {

class ShmServer;

// In the numbers of calls whose replies nobody wants, which the server gives them.
constexpr uint64_t kTold = uint64_t{1} << 63;

// One who calls.
class Client : public std::enable_shared_from_this<Client> {
 public:
  Client(ShmServer& server, const PeerProcess& peer)
      : server_(server), peer_(absl::StrCat("unix:pid ", peer.pid, " of user ", peer.uid)) {}

  Status Start(Loop& loop, Descriptor socket, const Connection::Pings& pings);
  void CancelAll(const Status& why);
  void Close();
  void Reply(uint64_t id, const StatusOr<absl::Cord>& result);

 private:
  struct Call {
    CancellationManager cancellation;
  };
  void Received(Frame frame);
  void Request(Frame frame);
  void Cancel(uint64_t id);

  ShmServer& server_;
  const std::string peer_;
  absl::Mutex mu_;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mu_);
  HashMap<uint64_t, std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mu_);
  uint64_t last_told_ ABSL_GUARDED_BY(mu_) = 0;
};

// Replies with an error if nobody else does.
class Answer {
 public:
  Answer(std::shared_ptr<Client> client, uint64_t id) : client_(std::move(client)), id_(id) {}
  Answer(Answer&&) = default;
  ~Answer() {
    if (client_ != nullptr) (*this)(Internal("the handler dropped the call without a reply"));
  }
  void operator()(const StatusOr<absl::Cord>& result) { std::exchange(client_, nullptr)->Reply(id_, result); }

 private:
  std::shared_ptr<Client> client_;
  uint64_t id_;
};

class ShmServer final : public RpcServer, public Loop::Watcher {
 public:
  ShmServer(Env& env, const RpcServerOptions& options, const Connection::Pings& pings, RpcHandler* handler)
      : address_(options.address),
        max_message_bytes_(options.max_message_bytes),
        pings_(pings),
        handler_(handler),
        limit_(env, options.max_connections) {}

  Status Listen(Env& env, const std::string& path) {
    path_ = path;
    MR_ASSIGN_OR_RETURN(listening_, ListenAt(path));
    struct stat info{};
    if (HasFile(path) && stat(path.c_str(), &info) == 0) inode_ = info.st_ino;
    MR_ASSIGN_OR_RETURN(loop_, Loop::New(env));
    SharedMemory::Instance().BeginToServe();
    // The loop does not own the server, which forgets itself there first.
    MR_ASSIGN_OR_RETURN(key_, loop_->Watch(listening_.get(), std::shared_ptr<Watcher>(std::shared_ptr<void>(), this)));
    return absl::OkStatus();
  }

  ~ShmServer() override {
    if (loop_ != nullptr && key_ != 0) loop_->Forget(key_);
    struct stat info{};
    if (inode_ != 0 && stat(path_.c_str(), &info) == 0 && info.st_ino == inode_) unlink(path_.c_str());
    HashSet<std::shared_ptr<Client>> clients;
    {
      absl::MutexLock lock(&mu_);
      closing_ = true;
      clients = clients_;
    }
    const Status why = WithoutExceptions([] { return Cancelled("the server is being destroyed"); });
    for (const auto& client : clients) client->CancelAll(why);
    {
      absl::MutexLock lock(&mu_);
      if (loop_ != nullptr) {
        loop_->env().Await(mu_, absl::Condition(+[](int64_t* calls) { return *calls == 0; }, &calls_));
      }
      clients.insert(clients_.begin(), clients_.end());
      clients_.clear();
    }
    for (const auto& client : clients) client->Close();
    loop_.reset();
  }

  std::string address() const override { return address_; }

  void OnReady(uint32_t) override {
    while (true) {
      Descriptor socket(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.ok()) return;
      const StatusOr<PeerProcess> peer = CheckPeer(socket);
      if (!peer.ok()) continue;
      auto client = std::make_shared<Client>(*this, *peer);
      bool is_full = false;
      {
        absl::MutexLock lock(&mu_);
        if (closing_) return;
        is_full = limit_.IsReached(static_cast<int64_t>(clients_.size()));
        if (!is_full) clients_.insert(client);
      }
      if (is_full) {
        limit_.Refuse(std::move(socket), address_, Connection::Refusal(limit_.ToString()));
        continue;
      }
      if (!client->Start(*loop_, std::move(socket), pings_).ok()) Gone(client);
    }
  }

  void Gone(const std::shared_ptr<Client>& client) {
    absl::MutexLock lock(&mu_);
    clients_.erase(client);
  }
  // False when the server ends.
  bool Begin() {
    absl::MutexLock lock(&mu_);
    if (closing_) return false;
    ++calls_;
    return true;
  }
  void Ended() {
    absl::MutexLock lock(&mu_);
    --calls_;
  }
  RpcHandler& handler() { return *handler_; }
  int64_t max_message_bytes() const { return max_message_bytes_; }

 private:
  const std::string address_;
  const int64_t max_message_bytes_;
  const Connection::Pings pings_;
  RpcHandler* const handler_;
  ConnectionLimit limit_;  // on the thread that accepts
  std::string path_;
  Descriptor listening_;  // ends after the loop, which may just be accepting somebody
  ino_t inode_ = 0;
  std::unique_ptr<Loop> loop_;
  Loop::Key key_ = 0;
  absl::Mutex mu_;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  int64_t calls_ ABSL_GUARDED_BY(mu_) = 0;
  HashSet<std::shared_ptr<Client>> clients_ ABSL_GUARDED_BY(mu_);
};

Status Client::Start(Loop& loop, Descriptor socket, const Connection::Pings& pings) {
  Connection::Users users;
  users.received = [self = shared_from_this()](Frame frame) { self->Received(std::move(frame)); };
  users.closed = [self = shared_from_this()](const Status& why) {
    self->CancelAll(WithoutExceptions([&] { return Cancelled("the caller is gone: ", why.message()); }));
    self->server_.Gone(self);
  };
  absl::MutexLock lock(&mu_);
  MR_ASSIGN_OR_RETURN(connection_, Connection::Start(loop, std::move(socket), pings, std::move(users)));
  return absl::OkStatus();
}

void Client::Received(Frame frame) {
  if (frame.type == FrameType::kRequest || frame.type == FrameType::kTell) Request(std::move(frame));
  if (frame.type == FrameType::kCancel) Cancel(frame.id);
}

void Client::Request(Frame frame) {
  auto call = std::make_shared<Call>();
  {
    absl::MutexLock lock(&mu_);
    if (frame.type == FrameType::kTell) frame.id = kTold | ++last_told_;
    if (!calls_.emplace(frame.id, call).second) return;  // of a number that is taken: of no caller of ours
  }
  if (!server_.Begin()) {
    absl::MutexLock lock(&mu_);
    calls_.erase(frame.id);
    return;  // the connection is about to end
  }
  Answer answer(shared_from_this(), frame.id);
  const int64_t bytes = static_cast<int64_t>(frame.payload.size());
  if (bytes > server_.max_message_bytes()) {
    return answer(ResourceExhausted("a request of ", bytes, " bytes; this server takes ", server_.max_message_bytes()));
  }
  RpcContext context;
  context.peer = peer_;
  context.timeout = frame.timeout;
  context.cancellation = &call->cancellation;
  server_.handler().Handle(frame.method, context, std::move(frame.payload), std::move(answer));
}

void Client::Reply(uint64_t id, const StatusOr<absl::Cord>& result) {
  std::shared_ptr<Connection> connection;
  std::shared_ptr<Call> call;
  {
    absl::MutexLock lock(&mu_);
    connection = connection_;
    const auto it = calls_.find(id);
    if (it != calls_.end()) {
      call = std::move(it->second);
      calls_.erase(it);
    }
  }
  if ((id & kTold) != 0) return server_.Ended();
  Frame frame{.type = FrameType::kReply, .id = id, .code = static_cast<int32_t>(result.status().code())};
  frame.payload = result.ok() ? *result : absl::Cord(result.status().message());
  Status sent = connection->Send(frame);
  if (sent.code() == absl::StatusCode::kResourceExhausted) {  // no shared memory: that much fits without
    frame.code = static_cast<int32_t>(sent.code());
    frame.payload = absl::Cord(sent.message());
    sent = connection->Send(frame);
  }
  // Otherwise nobody listens any more.
  server_.Ended();
}

void Client::Cancel(uint64_t id) {
  std::shared_ptr<Call> call;
  {
    absl::MutexLock lock(&mu_);
    const auto it = calls_.find(id);
    if (it != calls_.end()) call = it->second;
  }
  if (call != nullptr) {
    call->cancellation.Cancel(WithoutExceptions([] { return Cancelled("the caller gave the call up"); }));
  }
}

void Client::CancelAll(const Status& why) {
  std::vector<std::shared_ptr<Call>> calls;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [id, call] : calls_) calls.push_back(call);
  }
  for (const auto& call : calls) call->cancellation.Cancel(why);
}

void Client::Close() {
  std::shared_ptr<Connection> connection;
  {
    absl::MutexLock lock(&mu_);
    connection = connection_;
  }
  if (connection != nullptr) connection->Close();
}

}  // namespace

StatusOr<std::unique_ptr<RpcServer>> NewShmServer(Env& env, const RpcServerOptions& server_options,
                                                  const RpcTransportOptions& options, RpcHandler* handler) {
  MR_ASSIGN_OR_RETURN(const std::string path, PathOf(server_options.address));
  if (server_options.max_message_bytes <= 0) {
    return InvalidArgument("max_message_bytes is ", server_options.max_message_bytes, ", want more than 0");
  }
  auto server = std::make_unique<ShmServer>(
      env, server_options, Connection::Pings{options.keepalive_interval, options.keepalive_timeout}, handler);
  MR_RETURN_IF_ERROR(server->Listen(env, path));
  return server;
}

}  // namespace millrace::shm
