// SPDX-License-Identifier: Apache-2.0
#include "wire/reader_state.h"

#include "wire/table.h"

namespace millrace::wire {

const MessageInfo& ReaderState::Info() {
  static const MessageInfo& info =
      Table<ReaderState>("ReaderBaseState")
          .Field(1, "work_started", &ReaderState::work_started)
          .Field(2, "work_finished", &ReaderState::work_finished)
          .Field(3, "num_records_produced", &ReaderState::num_records_produced)
          .Field(4, "current_work", &ReaderState::current_work)
          .Build();
  return info;
}

}  // namespace millrace::wire
