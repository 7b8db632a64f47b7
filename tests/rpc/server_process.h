// SPDX-License-Identifier: Apache-2.0
// Another process that serves, or calls, to be killed: the program rpc_server beside the test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace millrace {

class ServerProcess {
 public:
  // With the arguments of rpc_server.
  ServerProcess(const std::string& transport, const std::string& what, const std::string& address) {
    int in[2], out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    char self[4096] = {};
    EXPECT_GT(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
    std::string program = self;
    program = program.substr(0, program.rfind('/') + 1) + "rpc_server";
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      execl(program.c_str(), program.c_str(), transport.c_str(), what.c_str(), address.c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    input_ = in[1];
    for (char c; read(out[0], &c, 1) == 1 && c != '\n';) line_ += c;
    close(out[0]);
    EXPECT_FALSE(line_.empty());
  }
  ~ServerProcess() {
    Signal(SIGKILL);
    close(input_);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // What it has printed: the address of a server.
  const std::string& line() const { return line_; }
  pid_t pid() const { return pid_; }
  void Signal(int number) const {
    if (pid_ > 0) kill(pid_, number);
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  std::string line_;
};

}  // namespace millrace
