// SPDX-License-Identifier: Apache-2.0
#include "simulation/crew.h"

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/this_world.h"

namespace millrace {
namespace {

struct Idle {
  std::mutex mu;
  std::vector<CrewMember*> members;
};

Idle& IdleMembers() {
  static auto* idle = new Idle;
  return *idle;
}

void Loop(CrewMember& me) {
  for (;;) {
    me.turn.Await();
    me.work();
    me.work = nullptr;
    EnterWorld(nullptr);
    const std::lock_guard<std::mutex> lock(IdleMembers().mu);
    IdleMembers().members.push_back(&me);
  }
}

}  // namespace

CrewMember& Crew::Take() {
  {
    std::vector<CrewMember*>& members = IdleMembers().members;
    const std::lock_guard<std::mutex> lock(IdleMembers().mu);
    if (!members.empty()) {
      CrewMember* const taken = members.back();
      members.pop_back();
      return *taken;
    }
  }
  auto made = std::make_unique<CrewMember>();
  std::thread([me = made.get()] { Loop(*me); }).detach();
  return *made.release();  // its thread has it
}

}  // namespace millrace
