// SPDX-License-Identifier: Apache-2.0
// Where a thread waits for others and meanwhile helps them with the ParallelFor calls that they make for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace millrace {

class Env;

// One thread waits; any thread may tell it something. Outlives the WorkFor scopes that name it.
class HelpPoint {
 public:
  explicit HelpPoint(Env& env) : env_(env) {}

  // Something that helps, a thread pool.
  class Helpable {
   public:
    // Does a part of the work that is made for `point`; false when there is none.
    virtual bool HelpWithWorkFor(HelpPoint& point) = 0;

   protected:
    ~Helpable() = default;
  };

  // Ends the present or the next wait that begins with what `seen` returned before.
  void Tell();
  uint32_t seen() const { return news_.load(); }
  // Helps until there is news since `seen`, or until `patience_nanos` have passed (-1: without limit) and nothing is to
  // be helped with. Spins a little before it sleeps. May return early for no reason.
  void WaitAndHelp(uint32_t seen, int64_t patience_nanos);

  // Whether the thread that waits does a part of some work just now.
  bool is_helping() const { return is_helping_.load(std::memory_order_relaxed); }

  // For thread pools: there is work for this point.
  void Ask(Helpable* pool);
  // And around what its thread does of it.
  void SetHelping(bool is_helping) { is_helping_.store(is_helping, std::memory_order_relaxed); }

 private:
  bool HelpOnce();

  Env& env_;
  std::atomic<uint32_t> news_{0};
  std::atomic<bool> sleeps_{false}, is_helping_{false};
  std::atomic<Helpable*> pool_{nullptr};  // that last had work for it
};

// While it lives, calls of ParallelFor on this thread are made for `point`; null: for nobody in particular.
class WorkFor {
 public:
  explicit WorkFor(HelpPoint* point);
  ~WorkFor();
  WorkFor(const WorkFor&) = delete;
  WorkFor& operator=(const WorkFor&) = delete;

 private:
  HelpPoint* const outer_;
};

// What another thread did of a ParallelFor call. Times as RealNanos() says.
struct HelpPart {
  uint32_t thread = 0;      // as CurrentThread() says
  int64_t asked_nanos = 0;  // when the call began
  int64_t start_nanos = 0;
  int64_t end_nanos = 0;
};

// While it lives, measures what other threads do of this thread's ParallelFor calls.
class HelpMeter {
 public:
  HelpMeter();
  ~HelpMeter();
  HelpMeter(const HelpMeter&) = delete;
  HelpMeter& operator=(const HelpMeter&) = delete;
  // Since the last call of Take; between ParallelFor calls. Parts for which there was no memory are missing.
  std::vector<HelpPart> Take() { return std::exchange(parts_, {}); }
  int64_t TakeNanos();                      // their sum
  void Add(const HelpPart& part) noexcept;  // on any thread

 private:
  HelpMeter* const outer_;
  std::mutex mu_;  // held by those who help
  std::vector<HelpPart> parts_;
};

}  // namespace millrace
