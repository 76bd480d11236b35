// The StackMapTable of moved code (JVM specification 4.7.4): each frame keeps its contents, positions change.
// Context: as class_bytes.h.
#pragma once

#include <cstdint>
#include <functional>

#include "agent/calls/java/class_bytes.h"

namespace classaccess {

class FrameWriter {
 public:
  // The table's contents go to `to`.
  explicit FrameWriter(ByteWriter* to) : to_(to), count_at_(to->size()) { to->u2(0); }

  // The offset_delta of the next frame, which stands at `pc`.
  uint32_t next_delta(uint32_t pc) {
    const uint32_t delta = count_ == 0 ? pc : pc - last_ - 1;
    last_ = pc;
    ++count_;
    return delta;
  }
  // The frame of a handler that knows nothing but the exception.
  void add_handler(uint32_t pc, uint16_t throwable);
  ByteWriter* to() { return to_; }
  // False: there are too many.
  bool finish();

 private:
  ByteWriter* to_;
  size_t count_at_;
  uint32_t count_ = 0, last_ = 0;
};

// Where an old position is now; UINT32_MAX: nowhere.
using MovedTo = std::function<uint32_t(uint32_t pc)>;

// `body` is the old attribute's. False: malformed; or, in a constructor (`initialised` is where its object has been
// initialised, else 0), a frame before that place does not hold an uninitialised `this`, or one from there on does.
bool move_frames(Bytes body, const MovedTo& moved_to, uint32_t initialised, FrameWriter* frames);

}  // namespace classaccess
