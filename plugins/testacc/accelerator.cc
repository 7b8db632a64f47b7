// SPDX-License-Identifier: Apache-2.0
#include "accelerator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace testacc {
namespace {

constexpr size_t kGranule = 64;
constexpr unsigned char kFreed = 0xdd;

std::atomic<uint64_t> seed{0};
std::atomic<int> max_delay{0};

struct Failure {
  std::mutex mu;
  std::string node;
  int left = 0;
};
Failure& TheFailure() {
  static auto* const failure = new Failure;
  return *failure;
}

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::atoll(text) : otherwise;
}

size_t Rounded(size_t bytes) { return (bytes + kGranule - 1) / kGranule * kGranule; }

}  // namespace

Settings SettingsFromEnvironment() {
  Settings s;
  s.devices = static_cast<int>(FromEnvironment("TESTACC_DEVICES", s.devices));
  s.memory_bytes = FromEnvironment("TESTACC_MEMORY_BYTES", s.memory_bytes);
  s.seed = static_cast<uint64_t>(FromEnvironment("TESTACC_SEED", 0));
  s.max_delay_micros = static_cast<int>(FromEnvironment("TESTACC_MAX_DELAY_MICROS", s.max_delay_micros));
  return s;
}

void SetDelays(uint64_t new_seed, int max_delay_micros) {
  max_delay = max_delay_micros;
  seed = new_seed;
}

void FailLate(const std::string& node, int nth) {
  Failure& failure = TheFailure();
  const std::lock_guard<std::mutex> lock(failure.mu);
  failure.node = node;
  failure.left = nth;
}

bool MustFail(const std::string& node) {
  Failure& failure = TheFailure();
  const std::lock_guard<std::mutex> lock(failure.mu);
  if (failure.node.empty() || failure.node != node || --failure.left > 0) return false;
  failure.node.clear();
  return true;
}

Stream::Stream(uint64_t number) : number_(number), thread_([this] { Run(); }) {}

void Stream::Queue(std::function<void()> work) {
  const std::lock_guard<std::mutex> lock(mu_);
  queue_.push_back(std::move(work));
  changed_.notify_all();
}

void Stream::Synchronize() {
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

void Stream::Run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock<std::mutex> lock(mu_);
      changed_.wait(lock, [this] { return !queue_.empty(); });
      work = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
    }
    Dawdle();
    work();
    work = nullptr;  // what it held goes before the stream counts as idle
    const std::lock_guard<std::mutex> lock(mu_);
    busy_ = false;
    if (queue_.empty()) changed_.notify_all();
  }
}

void Stream::Dawdle() {
  const uint64_t now = seed;
  if (now == 0) return;
  if (now != seeded_) {
    random_.seed(now * 1'000'003 + number_);
    seeded_ = now;
  }
  const uint64_t chance = random_();
  const int most = max_delay;
  if (chance % 4 != 0 || most <= 0) return;
  std::this_thread::sleep_for(std::chrono::microseconds((chance >> 8) % static_cast<uint64_t>(most)));
}

void Event::Record(Stream& stream) {
  auto happening = std::make_shared<Happening>();
  {
    const std::lock_guard<std::mutex> lock(mu_);
    last_ = happening;
  }
  stream.Queue([happening] {
    const std::lock_guard<std::mutex> lock(happening->mu);
    happening->happened = true;
    happening->changed.notify_all();
  });
}

void Event::Wait(Stream& stream) {
  std::shared_ptr<Happening> happening;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    happening = last_;
  }
  if (!happening) return;
  stream.Queue([happening] {
    std::unique_lock<std::mutex> lock(happening->mu);
    happening->changed.wait(lock, [&] { return happening->happened; });
  });
}

Accelerator::Accelerator(int64_t bytes) : bytes_(bytes) {
  const int file = memfd_create("testacc", MFD_CLOEXEC);
  if (file < 0) return;
  if (bytes > 0 && ftruncate(file, bytes) == 0) {
    const auto size = static_cast<size_t>(bytes);
    void* const host = mmap(nullptr, size, PROT_NONE, MAP_SHARED, file, 0);
    void* const threads = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (host != MAP_FAILED && threads != MAP_FAILED) {
      host_view_ = static_cast<char*>(host);
      threads_view_ = static_cast<char*>(threads);
      free_[0] = size / kGranule * kGranule;
    }
  }
  close(file);
}

// The first that fits.
void* Accelerator::Allocate(size_t bytes) {
  if (bytes == 0 || bytes > static_cast<size_t>(bytes_)) return nullptr;
  const size_t want = Rounded(bytes);
  const std::lock_guard<std::mutex> lock(mu_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [offset, size] = *it;
    if (size < want) continue;
    free_.erase(it);
    if (size > want) free_[offset + want] = size - want;
    return host_view_ + offset;
  }
  return nullptr;
}

// Nothing that is queued uses it any more: who reads it all the same finds rubbish.
void Accelerator::Deallocate(void* memory, size_t bytes) {
  const auto begin = static_cast<size_t>(static_cast<char*>(memory) - host_view_);
  const std::lock_guard<std::mutex> lock(mu_);
  std::memset(threads_view_ + begin, kFreed, bytes);
  auto it = free_.emplace(begin, Rounded(bytes)).first;
  if (auto next = std::next(it); next != free_.end() && it->first + it->second == next->first) {
    it->second += next->second;
    free_.erase(next);
  }
  if (it == free_.begin()) return;
  auto before = std::prev(it);
  if (before->first + before->second != it->first) return;
  before->second += it->second;
  free_.erase(it);
}

Stream* Accelerator::NewStream() {
  const std::lock_guard<std::mutex> lock(mu_);
  return new Stream(++streams_);  // lives as long as the process
}

}  // namespace testacc
