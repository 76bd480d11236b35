#include "agent/calls/java/stack_frames.h"

namespace classaccess {
namespace {

// verification_type_info
constexpr uint8_t kUninitializedThis = 6, kObject = 7, kUninitialized = 8;
// stack_map_frame
constexpr uint8_t kSame = 63, kSameLocals1 = 127, kSameLocals1Extended = 247, kChopFirst = 248, kSameExtended = 251,
                  kFull = 255;

class FrameMover {
 public:
  FrameMover(Bytes body, const MovedTo& moved_to, uint32_t initialised, FrameWriter* frames)
      : reader_(body), moved_to_(moved_to), initialised_(initialised), frames_(frames), to_(frames->to()) {}

  bool run() {
    // As the first frame finds it: the implicit one of the method's start.
    this_open_ = initialised_ != 0;
    const uint32_t count = reader_.u2();
    int64_t old_pc = -1;
    for (uint32_t i = 0; i < count; ++i) {
      const uint8_t type = reader_.u1();
      const uint32_t delta = type <= kSame ? type : type <= kSameLocals1 ? type - 64u : reader_.u2();
      old_pc += delta + 1;
      const uint32_t pc = moved_to_(static_cast<uint32_t>(old_pc));
      if (pc == UINT32_MAX || !reader_.ok() || !put_frame(type, frames_->next_delta(pc))) return false;
      if (initialised_ != 0 && this_open_ != (old_pc < initialised_)) return false;
    }
    return reader_.ok();
  }

 private:
  bool put_frame(uint8_t type, uint32_t delta) {
    if (type <= kSame || type == kSameExtended) {
      if (delta <= kSame) {
        to_->u1(delta);
      } else {
        put_extended(kSameExtended, delta);
      }
      return true;
    }
    if (type <= kSameLocals1 || type == kSameLocals1Extended) {
      if (delta <= kSame) {
        to_->u1(64 + delta);
      } else {
        put_extended(kSameLocals1Extended, delta);
      }
      return put_type(false);
    }
    if (type < kSameLocals1Extended) return false;  // reserved
    put_extended(type, delta);
    if (type < kSameExtended) return true;  // chop
    if (type < kFull) return put_types(type - kSameExtended, false);
    uint32_t locals = reader_.u2();
    to_->u2(locals);
    this_open_ = false;
    if (!put_types(locals, true)) return false;
    uint32_t stack = reader_.u2();
    to_->u2(stack);
    return put_types(stack, false);
  }

  void put_extended(uint8_t type, uint32_t delta) {
    to_->u1(type);
    to_->u2(delta);
  }

  bool put_types(uint32_t count, bool locals) {
    for (; count > 0; --count) {
      if (!put_type(locals)) return false;
    }
    return true;
  }

  bool put_type(bool local) {
    const uint8_t tag = reader_.u1();
    to_->u1(tag);
    if (tag == kUninitializedThis && local) this_open_ = true;
    if (tag == kObject) to_->u2(reader_.u2());
    if (tag == kUninitialized) {
      const uint32_t made_at = moved_to_(reader_.u2());
      if (made_at == UINT32_MAX) return false;
      to_->u2(made_at);
    }
    return reader_.ok() && tag <= kUninitialized;
  }

  ByteReader reader_;
  const MovedTo& moved_to_;
  uint32_t initialised_;
  FrameWriter* frames_;
  ByteWriter* to_;
  bool this_open_ = false;  // `this` is not initialised in the frame read last
};

}  // namespace

void FrameWriter::add_handler(uint32_t pc, uint16_t throwable) {
  const uint32_t delta = next_delta(pc);
  to_->u1(kFull);
  to_->u2(delta);
  to_->u2(0);
  to_->u2(1);
  to_->u1(kObject);
  to_->u2(throwable);
}

bool FrameWriter::finish() {
  if (count_ > 65535) return false;
  to_->set_u2(count_at_, count_);
  return true;
}

bool move_frames(Bytes body, const MovedTo& moved_to, uint32_t initialised, FrameWriter* frames) {
  return FrameMover(body, moved_to, initialised, frames).run();
}

}  // namespace classaccess
