// SPDX-License-Identifier: Apache-2.0
// An accelerator made of threads, to test on any machine what devices with memory of their own do.
//
// Its memory is a memory file that is mapped twice: the host has addresses that nobody may touch, and the accelerator's
// threads another mapping, which they may. A stream is a thread with a queue. Before each piece of work it may dawdle,
// by chance and by a seed, so that streams end late and out of step. On request the n-th run of an operation fails
// late.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "millrace/c_api.h"

namespace testacc {

struct Settings {
  int devices = 1;                           // TESTACC_DEVICES
  int64_t memory_bytes = int64_t{64} << 20;  // TESTACC_MEMORY_BYTES, of each device
  uint64_t seed = 0;                         // TESTACC_SEED; 0: streams do not dawdle
  int max_delay_micros = 200;                // TESTACC_MAX_DELAY_MICROS
};
Settings SettingsFromEnvironment();

// Changes what streams do from now on.
void SetDelays(uint64_t seed, int max_delay_micros);
// The `nth` time (from 1) from now on that the operation `node` runs, it fails late. "" takes the request back.
void FailLate(const std::string& node, int nth);
// Whether this is the time.
bool MustFail(const std::string& node);

class Stream {
 public:
  explicit Stream(uint64_t number);
  void Queue(std::function<void()> work);
  void Synchronize();

 private:
  void Run();
  void Dawdle();

  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool busy_ = false;
  const uint64_t number_;
  std::mt19937_64 random_;
  uint64_t seeded_ = 0;
  std::thread thread_;  // runs as long as the process
};

// What is recorded happens once; recording again makes another.
class Event {
 public:
  void Record(Stream& stream);
  void Wait(Stream& stream);

 private:
  struct Happening {
    std::mutex mu;
    std::condition_variable changed;
    bool happened = false;
  };
  std::mutex mu_;
  std::shared_ptr<Happening> last_;
};

class Accelerator {
 public:
  explicit Accelerator(int64_t bytes);  // see ok()
  bool ok() const { return threads_view_ != nullptr; }
  int64_t bytes() const { return bytes_; }

  void* Allocate(size_t bytes);
  void Deallocate(void* memory, size_t bytes);
  // Where threads of the accelerator find what has this address.
  char* Mapped(const void* address) const { return threads_view_ + (static_cast<const char*>(address) - host_view_); }
  Stream* NewStream();

 private:
  const int64_t bytes_;
  char* host_view_ = nullptr;     // may not be touched
  char* threads_view_ = nullptr;  // the same memory
  std::mutex mu_;
  std::map<size_t, size_t> free_;  // offset, size
  uint64_t streams_ = 0;
};

// Of the device that a kernel runs on.
Accelerator& AcceleratorOf(int ordinal);

void RegisterDevice(TF_Status* status);
void RegisterElementwise(TF_Status* status);
void RegisterArray(TF_Status* status);
void RegisterReductions(TF_Status* status);
void RegisterMatrices(TF_Status* status);
void RegisterImages(TF_Status* status);
void RegisterTraining(TF_Status* status);

}  // namespace testacc
