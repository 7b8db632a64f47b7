// SPDX-License-Identifier: Apache-2.0
// Forms of a buffer's contents that kernels keep beside it: weights in the layout of a convolution's inner loops, say.
//
// A form belongs to the contents. While a buffer has forms they hold a share of it, as a reader does, so nobody writes
// into it: a constant, or a variable that does not change, keeps its forms for every plan, session and thread that
// reads it, and an update is a new version without any. Who holds the only share besides theirs and is about to write,
// or to let go, calls ReleasePrepared (a variable does). Forms of what nobody else holds any more go when the next form
// is made, when a session ends, and when memory is short.
//
// A form is made when it is asked for the second time: what changes from step to step gets none.
//
// Forms are memory like any other in the statistics of their allocator. When an allocation fails, all forms are dropped
// that no kernel reads at this moment, and what was dropped is made again only after many more steps. With
// MILLRACE_PREPARED_LIMIT_BYTES in the environment there are not many more than so many bytes of them; 0: none.
//
// Thread-safe. Who asks for a form holds a share of the buffer. The forms of a buffer go away, as an object, only when
// no share is left but theirs and that of who drops them, and the count of shares orders this after whatever other
// holders did; everything else is under the locks of this class.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "tensor/tensor.h"

namespace millrace {

class PreparedForms {
 public:
  // A form of `value`, an input of a kernel or a part of one, that `make` writes into `bytes` bytes. `form` names it,
  // with all that its bytes depend on besides the value's. Null when there is none, because it was not asked for
  // before, another thread is making it, or memory is short: the kernel then does without. `allocator` must outlive it.
  // `make` runs without a lock; when it fails, or throws, another one makes the form later.
  static RefPtr<Buffer> Of(const Tensor& value, absl::string_view form, size_t bytes, Allocator& allocator,
                           absl::FunctionRef<Status(void* to)> make);

  PreparedForms(const PreparedForms&) = delete;
  PreparedForms& operator=(const PreparedForms&) = delete;

 private:
  friend void ReleasePrepared(Buffer* buffer);
  friend int64_t DropPreparedForms();
  friend void DropUnusedPreparedForms();
  struct Form {
    std::string name;
    const void* of = nullptr;  // where the value begins in the buffer
    RefPtr<Buffer> made;
    int asked_in_vain = 0;  // below zero: memory was short
    bool being_made = false;
  };
  class Making;
  static constexpr size_t kMost = 16;  // forms of one buffer

  explicit PreparedForms(Buffer* buffer) : buffer_(RefPtr<Buffer>::Share(buffer)) {}
  ~PreparedForms();
  static PreparedForms* Find(Buffer* buffer);
  // The form, if it is there; if not, `*make_it` says whether the caller is to make it.
  RefPtr<Buffer> Ask(absl::string_view name, const void* of, bool* make_it);
  Form* Look(absl::string_view name, const void* of) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The end of making it; null: it failed.
  void Keep(absl::string_view name, const void* of, RefPtr<Buffer> made);
  void Drop();

  RefPtr<Buffer> buffer_;
  std::list<PreparedForms*>::iterator place_;  // among all
  absl::Mutex mu_;
  std::vector<Form> forms_ ABSL_GUARDED_BY(mu_);
};

// For a holder of `buffer` (may be null) that is about to write, or to let go of it: drops its forms if there is no
// other holder, so that writing in place needs no copy.
void ReleasePrepared(Buffer* buffer);
// Drops all forms; one that a kernel reads goes when it has done so. Returns the bytes of all.
int64_t DropPreparedForms();
// Drops the forms of what nobody holds any more.
void DropUnusedPreparedForms();
// Of all forms there are.
int64_t PreparedBytes();

// A client has the address of `buffer` and may write there between steps, whoever holds it: nothing is prepared from
// the contents. To be called before others hold it.
void SetLent(const Buffer& buffer);
bool IsLent(const Buffer& buffer);

// What a buffer in memory of an allocator knows of its forms.
struct PreparedState {
  static constexpr uint64_t kLent = uint64_t{1} << 63;
  std::atomic<uint64_t> asked{0};  // bits of the forms that were asked for, and kLent
  std::atomic<PreparedForms*> forms{nullptr};
};
// Null for memory of others, and for elements that are objects.
PreparedState* PreparedStateOf(const Buffer& buffer);

// As TryAllocateBuffer, but forms stay as they are: for memory that one can do without.
Buffer* TryAllocateSpareBuffer(Allocator& allocator, size_t bytes);

}  // namespace millrace
