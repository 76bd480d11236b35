// The call sink's tables, fabricated: what the writer reads of calls=.
#pragma once

#include "agent/calls/call_sink.h"

namespace classaccess {

class CallWorld {
 public:
  CallWorld();
  ~CallWorld();

  uint32_t add_function(FunctionKind kind, const char* name, const char* refused = nullptr);  // up to 7 with calls
  uint32_t add_context(uint32_t outer, uint32_t function);
  CallThread* add_thread(uint32_t thread_id, int32_t tid);
  // A call that has ended: its statistics, and its row.
  static void call(CallThread* thread, uint32_t function, uint64_t start, uint64_t total, uint64_t self,
                   uint64_t number, uint64_t parent = 0, EndedBy ended_by = EndedBy::kReturn);
};

}  // namespace classaccess
