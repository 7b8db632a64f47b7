// SPDX-License-Identifier: Apache-2.0
#include "tensor/prepared.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

#include "base/settings.h"

namespace millrace {
namespace {

constexpr int kPatience = 64;  // so often a form is asked for in vain after memory was short

std::atomic<int64_t> total_bytes{0};
void Count(const Buffer& form, int sign) { total_bytes.fetch_add(sign * static_cast<int64_t>(form.size())); }

// The forms of all buffers that have any. Lock order: this, then one of its members.
struct Everything {
  absl::Mutex mu;
  std::list<PreparedForms*> members ABSL_GUARDED_BY(mu);
};
Everything& All() {
  alignas(Everything) static std::byte place[sizeof(Everything)];  // never destroyed, and wants no memory
  static auto* const all = new (place) Everything;
  return *all;
}

// One of 63, for a form of what begins at `offset`.
uint64_t BitOf(absl::string_view form, int64_t offset) {
  const uint64_t hash = std::hash<std::string_view>()(std::string_view(form.data(), form.size()));
  return uint64_t{1} << ((hash + static_cast<uint64_t>(offset)) % 63);
}

int64_t Limit() {
  static const int64_t limit = NumberOr("MILLRACE_PREPARED_LIMIT_BYTES", std::numeric_limits<int64_t>::max());
  return limit;
}

}  // namespace

// Says that a form is no longer being made, also when making it throws.
class PreparedForms::Making {
 public:
  Making(PreparedForms& forms, absl::string_view name, const void* of) : forms_(forms), name_(name), of_(of) {}
  ~Making() { forms_.Keep(name_, of_, std::move(made)); }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  RefPtr<Buffer> made;

 private:
  PreparedForms& forms_;
  const absl::string_view name_;
  const void* const of_;
};

RefPtr<Buffer> PreparedForms::Of(const Tensor& value, absl::string_view form, size_t bytes, Allocator& allocator,
                                 absl::FunctionRef<Status(void* to)> make) {
  Buffer* const buffer = value.buffer();
  PreparedState* const state = buffer != nullptr ? PreparedStateOf(*buffer) : nullptr;
  if (state == nullptr || bytes == 0 || Limit() == 0) return nullptr;
  const uint64_t asked = state->asked.load(std::memory_order_relaxed);
  if ((asked & PreparedState::kLent) != 0) return nullptr;
  // Forms of equal bits are taken for one another here, and one is made when it is first asked for: no harm is done.
  const uint64_t bit = BitOf(form, static_cast<const char*>(value.raw()) - static_cast<const char*>(buffer->data()));
  if ((asked & bit) == 0) {
    state->asked.fetch_or(bit, std::memory_order_relaxed);
    return nullptr;
  }
  PreparedForms* const forms = Find(buffer);
  if (forms == nullptr) return nullptr;
  bool make_it = false;
  RefPtr<Buffer> found = forms->Ask(form, value.raw(), &make_it);
  if (!make_it) return found;
  Making making(*forms, form, value.raw());
  if (static_cast<int64_t>(bytes) > Limit() - total_bytes.load()) return nullptr;
  RefPtr<Buffer> made = RefPtr<Buffer>::Adopt(TryAllocateSpareBuffer(allocator, bytes));
  if (!made || !make(made->data()).ok()) return nullptr;
  making.made = made;
  return made;
}

PreparedForms* PreparedForms::Find(Buffer* buffer) try {
  std::atomic<PreparedForms*>& slot = PreparedStateOf(*buffer)->forms;
  if (PreparedForms* const found = slot.load(std::memory_order_acquire)) return found;
  absl::MutexLock list(&All().mu);
  if (PreparedForms* const found = slot.load(std::memory_order_acquire)) return found;
  std::list<PreparedForms*> place(1);
  place.front() = new PreparedForms(buffer);
  place.front()->place_ = place.begin();
  slot.store(place.front(), std::memory_order_release);
  All().members.splice(All().members.end(), place);
  return All().members.back();
} catch (const std::bad_alloc&) {
  return nullptr;
}

PreparedForms::Form* PreparedForms::Look(absl::string_view name, const void* of) {
  const auto it =
      std::find_if(forms_.begin(), forms_.end(), [&](const Form& f) { return f.of == of && f.name == name; });
  return it == forms_.end() ? nullptr : &*it;
}

RefPtr<Buffer> PreparedForms::Ask(absl::string_view name, const void* of, bool* make_it) try {
  absl::MutexLock lock(&mu_);
  Form* form = Look(name, of);
  if (form == nullptr) {
    if (forms_.size() == kMost) return nullptr;
    forms_.push_back({.name = std::string(name), .of = of});
    form = &forms_.back();
  }
  if (form->made || form->being_made || ++form->asked_in_vain < 1) return form->made;
  form->being_made = *make_it = true;
  return nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void PreparedForms::Keep(absl::string_view name, const void* of, RefPtr<Buffer> made) {
  const bool sweeps = static_cast<bool>(made);
  {
    absl::MutexLock lock(&mu_);
    Form& form = *Look(name, of);  // forms are never taken out
    form.being_made = false;
    if (!made) form.asked_in_vain = -kPatience;
    if (made) Count(*made, +1);
    form.made = std::move(made);
  }
  if (sweeps) DropUnusedPreparedForms();
}

void PreparedForms::Drop() {
  absl::MutexLock lock(&mu_);
  for (Form& form : forms_) {
    if (!form.made) continue;
    Count(*form.made, -1);
    form.made.reset();
    form.asked_in_vain = -kPatience;
  }
}

PreparedForms::~PreparedForms() { Drop(); }

void ReleasePrepared(Buffer* buffer) {
  PreparedState* const state = buffer != nullptr ? PreparedStateOf(*buffer) : nullptr;
  if (state == nullptr) return;
  if (state->forms.load(std::memory_order_acquire) == nullptr) {
    if (buffer->HasOneRef()) {
      const uint64_t asked = state->asked.load(std::memory_order_relaxed);
      state->asked.store(asked & PreparedState::kLent, std::memory_order_relaxed);
    }
    return;
  }
  absl::MutexLock list(&All().mu);
  PreparedForms* const forms = state->forms.load(std::memory_order_acquire);
  if (forms == nullptr) return;
  // The count without the share of the forms tells whether the caller's is the only one. While the caller holds one,
  // nobody finds himself alone meanwhile.
  forms->buffer_.reset();
  if (!buffer->HasOneRef()) {
    forms->buffer_ = RefPtr<Buffer>::Share(buffer);
    return;
  }
  state->forms.store(nullptr, std::memory_order_relaxed);
  state->asked.store(state->asked.load(std::memory_order_relaxed) & PreparedState::kLent, std::memory_order_relaxed);
  All().members.erase(forms->place_);
  delete forms;
}

int64_t DropPreparedForms() {
  DropUnusedPreparedForms();
  absl::MutexLock list(&All().mu);
  const int64_t before = total_bytes.load();
  for (PreparedForms* member : All().members) member->Drop();
  return before;
}

void DropUnusedPreparedForms() {
  absl::MutexLock list(&All().mu);
  std::list<PreparedForms*>& members = All().members;
  for (auto it = members.begin(); it != members.end();) {
    PreparedForms* const forms = *it++;
    if (!forms->buffer_->HasOneRef()) continue;
    members.erase(forms->place_);
    PreparedStateOf(*forms->buffer_)->forms.store(nullptr, std::memory_order_relaxed);
    delete forms;
  }
}

int64_t PreparedBytes() { return total_bytes.load(); }

void SetLent(const Buffer& buffer) {
  if (PreparedState* const state = PreparedStateOf(buffer)) state->asked.fetch_or(PreparedState::kLent);
}
bool IsLent(const Buffer& buffer) {
  const PreparedState* const state = PreparedStateOf(buffer);
  return state != nullptr && (state->asked.load(std::memory_order_relaxed) & PreparedState::kLent) != 0;
}

}  // namespace millrace
