// SPDX-License-Identifier: Apache-2.0
// A network in one process: calls are bytes, and arrive as its weather, its links and a seed have it. Each machine has
// a transport on it, with its own clock and threads. Thread-safe; on a FakeEnv all of it is a function of the seed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/env.h"
#include "cluster/rpc.h"

namespace millrace {

class SimNetwork {
 public:
  struct Weather {
    // Of each message, drawn between the two: so they overtake each other.
    absl::Duration min_delay, max_delay;
    double lost = 0;   // the share of messages with which their connection breaks
    double twice = 0;  // the share of requests that arrive twice; nobody gets the answer to a copy
    // Who waits for an answer that cannot come is told so within this time.
    absl::Duration silence = absl::Seconds(10);
  };

  // `env` outlives the network.
  SimNetwork(Env& env, uint64_t seed);
  ~SimNetwork();

  // What a machine has of the network, until the machine is killed. `env`, of that machine, outlives it, as the network
  // does.
  std::unique_ptr<RpcTransport> NewTransport(const std::string& machine, Env& env);

  void SetWeather(const Weather& weather);
  // Messages from one machine to another are lost, or not any more.
  void Cut(const std::string& from, const std::string& to, bool is_cut);
  // They arrive when that time has passed, not before.
  void Clog(const std::string& from, const std::string& to, absl::Duration time);
  // No link is cut or clogged.
  void Heal();
  // Nobody listens there any more, calls from there are over, and others learn of it as Weather::silence has it.
  void Kill(const std::string& machine);

  // Called with what happens, for who wants to read it. Before the first call.
  void SetTrace(std::function<void(const std::string&)> trace);
  int64_t num_calls() const;
  int64_t num_bytes() const;  // of requests and replies

 private:
  struct State;
  class Transport;
  class Channel;
  class Server;
  const std::shared_ptr<State> state_;
};

}  // namespace millrace
