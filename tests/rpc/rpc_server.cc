// SPDX-License-Identifier: Apache-2.0
// Another process for the transports' tests, to be killed. What it prints is one line.
//   rpc_server TRANSPORT serve ADDRESS   serves until its input ends; prints the address that it got
//   rpc_server TRANSPORT call ADDRESS    asks that server to Hang, until it is killed
//   rpc_server TRANSPORT stranger ADDRESS asks that server as the user 65534 and prints what it says
//   rpc_server TRANSPORT threads ADDRESS prints how many threads it has before, during and after the use of a transport
#include <dirent.h>
#include <unistd.h>

#include <cstdio>

#include "echo_handler.h"
#include "testing_calls.h"
#include "transports.h"

namespace millrace {
namespace {

int Threads() {
  int count = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

int Fail(const Status& status) {
  fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

void AwaitEndOfInput() {
  while (getchar() != EOF) {
  }
}

int Serve(RpcTransport& transport, const std::string& address) {
  EchoHandler handler(Env::Default());
  auto server = transport.Listen({.address = address}, &handler);
  if (!server.ok()) return Fail(server.status());
  puts((*server)->address().c_str());
  fflush(stdout);
  AwaitEndOfInput();
  return 0;
}

int Call(RpcTransport& transport, const std::string& address) {
  auto channel = transport.Connect(address);
  if (!channel.ok()) return Fail(channel.status());
  Pending pending;
  (*channel)->Call("Hang", {}, {}, pending.Reply());
  puts("calling");
  fflush(stdout);
  AwaitEndOfInput();
  return 0;
}

// The transport's library is loaded already: that user may not be able to read it.
int CallAsStranger(RpcTransport& transport, const std::string& address) {
  if (setuid(65534) != 0) return 1;
  auto channel = transport.Connect(address);
  if (!channel.ok()) return Fail(channel.status());
  const auto got = CallAndWait(**channel, "Echo", absl::Cord("heard"));
  puts(got.ok() ? std::string(*got).c_str() : got.status().ToString().c_str());
  return 0;
}

int CountThreads(const std::string& name, const std::string& address) {
  const int before = Threads();
  int during = 0;
  {
    auto transport = NewTransport(name, Env::Default());
    if (!transport.ok()) return Fail(transport.status());
    const int created = Threads();
    EchoHandler handler(Env::Default());
    auto server = (*transport)->Listen({.address = address}, &handler);
    if (!server.ok()) return Fail(server.status());
    auto channel = (*transport)->Connect((*server)->address());
    const auto got = CallAndWait(**channel, "Echo", absl::Cord("x"));
    if (!got.ok()) return Fail(got.status());
    during = Threads();
    printf("%d %d %d", before, created, during);
  }
  for (int i = 0; i < 2000 && Threads() > before; ++i) absl::SleepFor(absl::Milliseconds(10));
  printf(" %d\n", Threads());
  return 0;
}

int Main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string name = argv[1], what = argv[2], address = argv[3];
  if (what == "threads") return CountThreads(name, address);
  auto transport = NewTransport(name, Env::Default());
  if (!transport.ok()) return Fail(transport.status());
  if (what == "stranger") return CallAsStranger(**transport, address);
  return what == "call" ? Call(**transport, address) : Serve(**transport, address);
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) { return millrace::Main(argc, argv); }
