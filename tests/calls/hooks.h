// Hooks round a test, as the agent has them round a recording.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/calls/call_sink.h"

namespace classaccess {

struct FunctionTotals {
  uint64_t count = 0, untimed = 0, total = 0, self = 0, min = 0, max = 0;
  uint64_t by_ended[3] = {};
  std::string refused;
  bool found = false;
};

class Hooks {
 public:
  explicit Hooks(const std::vector<std::string>& patterns);
  ~Hooks() { stop(); }
  void stop();
  const std::string& error() const { return error_; }
  // Of all threads.
  FunctionTotals of(const std::string& name) const;
  // All functions that were entered or refused.
  std::map<std::string, FunctionTotals> all() const;
  // Calls under way: entered, not left.
  static uint64_t under_way();
  // The rows that lie in the rings.
  std::vector<CallRecord> take_rows() const;

 private:
  std::string error_;
  bool on_ = false;
};

}  // namespace classaccess
