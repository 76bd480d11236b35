#include "agent/fault/probe_buffer.h"

#include <time.h>

#include "agent/base/wake.h"

namespace classaccess {

DrainScope::DrainScope(ProbeBuffer* buffer, bool wait) : buffer_(buffer) {
  const auto self = reinterpret_cast<uint64_t>(&t_probe);
  for (int tries = 0;; ++tries) {
    uint64_t holder = 0;
    if (buffer->holder.compare_exchange_strong(holder, self, std::memory_order_acquire)) {
      held_ = first_ = true;
      return;
    }
    if (holder == self) {
      held_ = true;
      return;
    }
    if (!wait) return;
    if (tries < 100) {
      asm volatile("pause");
    } else {
      raw_sleep(20000);
    }
  }
}

DrainScope::~DrainScope() {
  if (first_) buffer_->holder.store(0, std::memory_order_release);
}

}  // namespace classaccess
