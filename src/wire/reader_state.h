// SPDX-License-Identifier: Apache-2.0
//
// Where a reader of files is (ReaderBaseState).
#pragma once

#include <cstdint>
#include <string>

#include "wire/message.h"

namespace millrace::wire {

struct ReaderState {
  int64_t work_started = 0;
  int64_t work_finished = 0;
  int64_t num_records_produced = 0;
  std::string current_work;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
