// SPDX-License-Identifier: Apache-2.0
// What calls between two processes of this machine cost: rpc_bench [TRANSPORT...]. It starts its own servers. For each
// transport: the round trip of an empty call, 100 MB there and 100 MB back, as one message and as several at once,
// beside a plain memcpy of as much.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "../tests/rpc/testing_calls.h"
#include "../tests/rpc/transports.h"

namespace millrace {
namespace {

constexpr size_t kLarge = 100'000'000;
constexpr int kEmptyCalls = 5000, kLargeCalls = 30;

absl::Cord Refer(const std::string& bytes, size_t size) {
  return absl::MakeCordFromExternal(absl::string_view(bytes).substr(0, size), [] {});
}

// Take: nothing. Give: as many bytes as the request says.
class BenchHandler final : public RpcHandler {
 public:
  void Handle(absl::string_view method, const RpcContext&, absl::Cord request, RpcReply reply) override {
    if (method == "Give") return std::move(reply)(Refer(bytes_, std::stoull(std::string(request))));
    std::move(reply)(absl::Cord());
  }

 private:
  const std::string bytes_ = std::string(kLarge, 'g');
};

int Serve(const std::string& name) {
  auto transport = NewTransport(name, Env::Default());
  BenchHandler handler;
  auto server = transport.ok() ? (*transport)->Listen({.address = FreeAddress(name)}, &handler)
                               : StatusOr<std::unique_ptr<RpcServer>>(transport.status());
  if (!server.ok()) return fprintf(stderr, "%s\n", server.status().ToString().c_str()), 1;
  puts((*server)->address().c_str());
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 0;
}

template <typename Body>
double Seconds(Body body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Times {
  std::vector<double> seconds;
  double At(double part) {
    std::sort(seconds.begin(), seconds.end());
    return seconds[std::min(seconds.size() - 1, static_cast<size_t>(part * static_cast<double>(seconds.size())))];
  }
};

void MustBe(const StatusOr<absl::Cord>& got) {
  if (got.ok()) return;
  fprintf(stderr, "%s\n", got.status().ToString().c_str());
  _exit(1);
}

void Empty(const char* name, RpcChannel& channel) {
  Times times;
  for (int i = 0; i < kEmptyCalls; ++i) {
    times.seconds.push_back(Seconds([&] { MustBe(CallAndWait(channel, "Take", {})); }));
  }
  printf("%-6s empty call: median %.1f us, 90%% %.1f us, 99%% %.1f us\n", name, times.At(.5) * 1e6, times.At(.9) * 1e6,
         times.At(.99) * 1e6);
}

// 100 MB, in pieces of `piece` bytes that are all under way at once.
void Large(const char* name, RpcChannel& channel, bool give, size_t piece) {
  static const std::string bytes(kLarge, 't');
  Times times;
  for (int i = 0; i < kLargeCalls; ++i) {
    times.seconds.push_back(Seconds([&] {
      std::vector<Pending> pending(kLarge / piece);
      for (Pending& p : pending) {
        channel.Call(
            give ? "Give" : "Take", {}, give ? absl::Cord(absl::StrCat(piece)) : Refer(bytes, piece), p.Reply());
      }
      for (Pending& p : pending) MustBe(p.Result());
    }));
  }
  printf("%-6s 100 MB %s, %3zu MB a message: median %.2f GB/s, best %.2f GB/s\n", name, give ? "back " : "there",
         piece / 1'000'000, kLarge / times.At(.5) / 1e9, kLarge / times.At(0) / 1e9);
}

void Copy() {
  const std::string from(kLarge, 'c');
  std::string to(kLarge, 'd');
  Times times;
  for (int i = 0; i < kLargeCalls; ++i) {
    times.seconds.push_back(Seconds([&] { memcpy(to.data(), from.data(), kLarge); }));
  }
  printf("memcpy of 100 MB: median %.2f GB/s\n", kLarge / times.At(.5) / 1e9);
}

void Measure(const char* program, const char* name) {
  int in[2], out[2];
  if (pipe(in) != 0 || pipe(out) != 0) return;
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    close(in[1]);
    execl(program, program, "serve", name, nullptr);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  std::string address;
  for (char c; read(out[0], &c, 1) == 1 && c != '\n';) address += c;
  {
    auto transport = NewTransport(name, Env::Default());
    auto channel = (*transport)->Connect(address);
    MustBe(CallAndWait(**channel, "Take", {}));
    Empty(name, **channel);
    for (const bool give : {false, true}) {
      for (const size_t piece : {kLarge, size_t{20'000'000}, size_t{4'000'000}, size_t{1'000'000}}) {
        Large(name, **channel, give, piece);
      }
    }
  }
  close(in[1]);
  waitpid(pid, nullptr, 0);
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "serve") return millrace::Serve(argv[2]);
  millrace::Copy();
  for (int i = 1; i < argc; ++i) millrace::Measure("/proc/self/exe", argv[i]);
  if (argc == 1) {
    for (const char* name : millrace::kTransports) millrace::Measure("/proc/self/exe", name);
  }
  return 0;
}
