// SPDX-License-Identifier: Apache-2.0
#include "tensor/prepared.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tensor/plain_allocator.h"

namespace millrace {
namespace {

constexpr int64_t kElements = 256;
constexpr size_t kBytes = kElements * sizeof(int32_t);

Tensor Filled(int32_t value, Allocator& allocator = HostAllocator()) {
  Tensor t = *Tensor::Make(DType::kInt32, Shape::Vector(kElements), allocator);
  for (int32_t& v : t.mutable_flat<int32_t>()) v = value;
  return t;
}

// Asks for a form of which every element is that of the value plus `by`; counts how often it is made.
struct Adder {
  int by = 1;
  Allocator& allocator = HostAllocator();
  std::atomic<int> made{0};

  RefPtr<Buffer> Ask(const Tensor& t) {
    return PreparedForms::Of(t, std::string("plus ") + std::to_string(by), kBytes, allocator, [&](void* to) {
      ++made;
      for (int64_t i = 0; i < kElements; ++i) static_cast<int32_t*>(to)[i] = t.data<int32_t>()[i] + by;
      return absl::OkStatus();
    });
  }
};
// Stands between an allocator and who uses it: its forms go before it does.
struct FormsGo {
  ~FormsGo() { DropUnusedPreparedForms(); }
};
int32_t First(const RefPtr<Buffer>& form) { return *static_cast<const int32_t*>(form->data()); }

TEST(Prepared, IsMadeWhenItIsAskedForAgain) {
  DropUnusedPreparedForms();
  const int64_t before = PreparedBytes();
  Adder one{.by = 1}, two{.by = 2};
  {
    const Tensor t = Filled(10);
    EXPECT_FALSE(one.Ask(t));
    EXPECT_FALSE(two.Ask(t)) << "another form";
    EXPECT_EQ(First(one.Ask(t)), 11);
    EXPECT_EQ(First(two.Ask(t)), 12);
    const RefPtr<Buffer> again = one.Ask(Tensor(t));
    EXPECT_EQ(First(again), 11);
    EXPECT_EQ(one.made, 1);
    EXPECT_EQ(PreparedBytes() - before, static_cast<int64_t>(2 * kBytes));
  }
  DropUnusedPreparedForms();
  EXPECT_EQ(PreparedBytes(), before) << "they go with the value";
}

TEST(Prepared, PartsOfAValueHaveFormsOfTheirOwn) {
  const Tensor t = Filled(0);
  int made = 0;
  const auto ask = [&](int64_t row) {
    const Tensor part = *t.Rows(row, row + 8);
    return PreparedForms::Of(part, "copy", 8 * sizeof(int32_t), HostAllocator(), [&](void* to) {
      ++made;
      std::memcpy(to, part.raw(), 8 * sizeof(int32_t));
      return absl::OkStatus();
    });
  };
  EXPECT_FALSE(ask(0));
  EXPECT_FALSE(ask(8));
  EXPECT_TRUE(ask(0));
  EXPECT_TRUE(ask(8));
  EXPECT_EQ(made, 2);
}

TEST(Prepared, FormsOfWhatNobodyHoldsGoWhenAnotherIsMade) {
  DropUnusedPreparedForms();
  const int64_t before = PreparedBytes();
  Adder one;
  for (int i = 0; i < 5; ++i) {
    const Tensor t = Filled(i);
    EXPECT_FALSE(one.Ask(t));
    EXPECT_EQ(First(one.Ask(t)), i + 1);
    EXPECT_EQ(PreparedBytes() - before, static_cast<int64_t>(kBytes));
  }
  DropUnusedPreparedForms();
}

TEST(Prepared, WhoWritesInPlaceDropsTheForms) {
  Adder one;
  Tensor t = Filled(1);
  EXPECT_FALSE(one.Ask(t));
  const RefPtr<Buffer> old = one.Ask(t);
  ASSERT_TRUE(old);
  EXPECT_FALSE(t.OwnsBufferAlone()) << "forms hold a share";
  {
    const Tensor reader = t;
    ReleasePrepared(t.buffer());
    EXPECT_FALSE(t.OwnsBufferAlone());
    EXPECT_EQ(one.Ask(t), old) << "nobody may write while there is a reader";
  }
  ReleasePrepared(t.buffer());
  ASSERT_TRUE(t.OwnsBufferAlone());
  for (int32_t& v : t.mutable_flat<int32_t>()) v = 5;
  EXPECT_FALSE(one.Ask(t));
  EXPECT_EQ(First(one.Ask(t)), 6);
  EXPECT_EQ(First(old), 2) << "a kernel that still reads the old form is not disturbed";
}

TEST(Prepared, NothingIsPreparedOfWhatAClientMayChange) {
  Adder one;
  const Tensor lent = Filled(1);
  SetLent(*lent.buffer());
  EXPECT_TRUE(IsLent(*lent.buffer()));
  int32_t memory[kElements] = {};
  const Tensor foreign = *Tensor::FromBuffer(
      DType::kInt32, Shape::Vector(kElements), WrapBuffer(memory, sizeof(memory), nullptr, nullptr, false));
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(one.Ask(lent));
    EXPECT_FALSE(one.Ask(foreign));
  }
  EXPECT_EQ(one.made, 0);
}

TEST(Prepared, FormsAreDroppedBeforeAnAllocationFails) {
  PlainAllocator limited(64 << 10);
  const FormsGo forms_go;
  Adder one{.by = 1, .allocator = limited};
  const Tensor t = Filled(7, limited);
  EXPECT_FALSE(one.Ask(t));
  ASSERT_TRUE(one.Ask(t));
  const int64_t in_use = limited.Stats().bytes_in_use;
  EXPECT_GE(in_use, static_cast<int64_t>(2 * kBytes)) << "a form counts";
  {  // a byte more than fits beside the form
    const size_t rest = (64 << 10) - static_cast<size_t>(in_use) - Allocator::kAlignment + 1;
    const StatusOr<RefPtr<Buffer>> large = AllocateBuffer(limited, rest);
    ASSERT_TRUE(large.ok()) << large.status();
  }
  EXPECT_FALSE(one.Ask(t)) << "it has gone, and is not made at once";
  EXPECT_EQ(one.made, 1);
  int asked = 1;
  while (!one.Ask(t) && asked < 1000) ++asked;
  EXPECT_GT(asked, 10);
  EXPECT_LT(asked, 1000) << "it is made again in the end";
}

TEST(Prepared, AFormThatDoesNotFitIsDoneWithout) {
  PlainAllocator limited(2000);
  const FormsGo forms_go;
  Adder one{.by = 1, .allocator = limited};
  const Tensor t = Filled(7, limited);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(one.Ask(t));
  EXPECT_EQ(one.made, 0);
}

TEST(Prepared, AFailureToMakeItIsNotKept) {
  const Tensor t = Filled(3);
  int calls = 0;
  const auto ask = [&](absl::FunctionRef<Status(void*)> make) {
    return PreparedForms::Of(t, "fails", kBytes, HostAllocator(), make);
  };
  const auto fails = [&](void*) -> Status {
    if (++calls == 1) return Internal("cannot");
    throw std::runtime_error("cannot");
  };
  const auto works = [](void*) { return absl::OkStatus(); };
  EXPECT_FALSE(ask(fails));
  EXPECT_FALSE(ask(fails));
  EXPECT_EQ(calls, 1);
  for (int i = 0; i < 1000 && calls == 1; ++i) {
    try {
      EXPECT_FALSE(ask(fails));
    } catch (const std::runtime_error&) {
    }
  }
  EXPECT_EQ(calls, 2);
  bool made = false;
  for (int i = 0; i < 1000 && !made; ++i) made = static_cast<bool>(ask(works));
  EXPECT_TRUE(made);
}

TEST(Prepared, ManyThreadsMayAskAndDrop) {
  Adder one;
  const Tensor t = Filled(1);
  std::atomic<int> wrong{0}, served{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 2000; ++k) {
        const Tensor mine = t;
        if (const RefPtr<Buffer> form = one.Ask(mine)) {
          ++served;
          wrong += First(form) != 2;
        }
        if (i == 0 && k % 100 == 0) DropPreparedForms();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(served, 0);
}

}  // namespace
}  // namespace millrace
