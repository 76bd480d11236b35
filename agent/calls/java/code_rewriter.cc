#include "agent/calls/java/code_rewriter.h"

#include <vector>

#include "agent/calls/java/instructions.h"
#include "agent/calls/java/stack_frames.h"

namespace classaccess {
namespace {

using namespace bytecode;

constexpr uint32_t kProbeBytes = 6;    // ldc_w, invokestatic
constexpr uint32_t kHandlerBytes = 7;  // and athrow
constexpr uint32_t kMaxCode = 65535;

constexpr char kMalformed[] = "its code is not understood";
constexpr char kTooLarge[] = "its code would be too large";
constexpr char kFlow[] = "a constructor whose object is initialised in more than one place";

struct Range {
  uint32_t start = 0, end = 0;
};

class CodeRewriter {
 public:
  CodeRewriter(const MethodCode& method, const ConstantPool& pool, const ProbeEntries& entries)
      : method_(method), pool_(pool), entries_(entries) {}

  std::string run(ByteWriter* out) {
    std::string problem = read();
    if (problem.empty()) problem = check();
    if (problem.empty() && method_.constructor) problem = find_initialisation();
    if (problem.empty()) problem = place();
    if (problem.empty()) problem = write(out);
    return problem;
  }

 private:
  std::string read() {
    ByteReader reader(method_.attribute);
    max_stack_ = reader.u2();
    max_locals_ = reader.u2();
    code_ = reader.take(reader.u4());
    const uint32_t handlers = reader.u2();
    handlers_ = reader.take(8 * handlers);
    attribute_count_ = reader.u2();
    attributes_ = reader.take(reader.left());
    return reader.ok() && !code_.empty() && code_.size() <= kMaxCode ? "" : kMalformed;
  }

  std::string check() const {
    for (uint32_t pc = 0; pc < code_.size();) {
      const uint32_t length = length_at(code_, pc);
      if (length == 0) return kMalformed;
      pc += length;
    }
    return "";
  }

  // The instruction behind the one call of another constructor for `this`. A `new` and its constructor call come in
  // pairs, whatever branches lie between them.
  std::string find_initialisation() {
    uint32_t made = 0;
    for (uint32_t pc = 0; pc < code_.size(); pc += length_at(code_, pc)) {
      if (code_[pc] == kNew) ++made;
      if (code_[pc] != kInvokeSpecial || pool_.method_name(u2(pc + 1)) != "<init>") continue;
      if (made > 0) {
        --made;
      } else if (entry_ != 0) {
        return kFlow;
      } else {
        entry_ = pc + 3;
      }
    }
    return entry_ != 0 ? "" : kFlow;
  }

  // Where each instruction will be. A branch to the one behind our call at the entry does not enter again.
  std::string place() {
    const auto size = static_cast<uint32_t>(code_.size());
    moved_.assign(size + 1, kNowhere);
    uint32_t to = 0;
    for (uint32_t pc = 0; pc < size;) {
      const uint32_t length = length_at(code_, pc);
      if (pc == entry_) to += kProbeBytes;
      moved_[pc] = to;
      to += length;
      if (is_return(code_[pc])) to += kProbeBytes;
      if (is_switch(code_[pc])) to += switch_padding(moved_[pc]) - switch_padding(pc);
      pc += length;
    }
    moved_[size] = to;
    return to + kHandlerBytes <= kMaxCode ? "" : kTooLarge;
  }

  uint16_t u2(uint32_t pc) const { return static_cast<uint16_t>(code_[pc] << 8 | code_[pc + 1]); }
  int32_t s4(uint32_t pc) const { return static_cast<int32_t>(static_cast<uint32_t>(u2(pc)) << 16 | u2(pc + 2)); }

  // The new place of an instruction or of the code's end; kNowhere if there is none at `pc`.
  uint32_t moved(int64_t pc) const {
    return pc >= 0 && pc < static_cast<int64_t>(moved_.size()) ? moved_[static_cast<size_t>(pc)] : kNowhere;
  }

  void put_probe(uint16_t function, ByteWriter* to) const {
    to->u1(kLdcW);
    to->u2(method_.id_constant);
    to->u1(kInvokeStatic);
    to->u2(function);
  }

  bool put_target(uint32_t pc, int64_t offset, bool wide, ByteWriter* to) const {
    const uint32_t target = moved(pc + offset);
    if (target == kNowhere) return false;
    const int64_t distance = int64_t{target} - moved_[pc];
    if (wide) {
      to->u4(static_cast<uint64_t>(distance));
    } else {
      to->u2(static_cast<uint64_t>(distance));
    }
    return wide || distance == static_cast<int16_t>(distance);
  }

  bool put_switch(uint32_t pc, ByteWriter* to) const {
    to->u1(code_[pc]);
    for (uint32_t i = switch_padding(moved_[pc]); i > 0; --i) to->u1(0);
    uint32_t at = pc + 1 + switch_padding(pc);
    bool good = put_target(pc, s4(at), true, to);
    const bool pairs = code_[pc] == kLookupSwitch;
    to->put(code_.subspan(at + 4, pairs ? 4 : 8));
    at += pairs ? 8 : 12;
    for (const uint32_t end = pc + length_at(code_, pc); at < end; at += 4) {
      if (pairs) {
        to->put(code_.subspan(at, 4));
        at += 4;
      }
      good = good && put_target(pc, s4(at), true, to);
    }
    return good;
  }

  std::string put_code(ByteWriter* to) {
    for (uint32_t pc = 0; pc < code_.size(); pc += length_at(code_, pc)) {
      const uint8_t opcode = code_[pc];
      const uint32_t length = length_at(code_, pc);
      if (pc == entry_) {
        put_probe(entries_.enter, to);
        range_start_ = moved_[pc];
      }
      if (is_return(opcode)) {
        end_range(moved_[pc]);
        range_start_ = moved_[pc] + kProbeBytes + 1;
        put_probe(entries_.leave, to);
        to->u1(opcode);
      } else if (is_switch(opcode)) {
        if (!put_switch(pc, to)) return kMalformed;
      } else if (is_wide_branch(opcode)) {
        to->u1(opcode);
        if (!put_target(pc, s4(pc + 1), true, to)) return kMalformed;
      } else if (is_short_branch(opcode)) {
        to->u1(opcode);
        if (!put_target(pc, static_cast<int16_t>(u2(pc + 1)), false, to)) return kTooLarge;
      } else {
        to->put(code_.subspan(pc, length));
      }
    }
    end_range(moved_[code_.size()]);
    if (!ranges_.empty()) {
      put_probe(entries_.thrown, to);
      to->u1(kAThrow);
    }
    return "";
  }

  void end_range(uint32_t end) {
    if (end > range_start_) ranges_.push_back({range_start_, end});
    range_start_ = end;
  }
  uint32_t handler() const { return moved_[code_.size()]; }

  std::string put_handlers(ByteWriter* to) const {
    const uint64_t count = handlers_.size() / 8 + ranges_.size();
    if (count > 65535) return kTooLarge;
    to->u2(count);
    ByteReader own(handlers_);
    while (own.left() > 0) {
      for (int i = 0; i < 3; ++i) {
        const uint32_t pc = moved(own.u2());
        if (pc == kNowhere) return kMalformed;
        to->u2(pc);
      }
      to->u2(own.u2());
    }
    for (const Range& range : ranges_) {
      to->u2(range.start);
      to->u2(range.end);
      to->u2(handler());
      to->u2(0);  // whatever is thrown
    }
    return "";
  }

  // What starts with the method starts before our call.
  uint32_t moved_or_start(uint32_t pc) const { return pc == 0 ? 0 : moved(pc); }

  std::string put_lines(Bytes body, ByteWriter* to) const {
    ByteReader reader(body);
    uint32_t left = reader.u2();
    to->u2(left);
    for (; left > 0; --left) {
      const uint32_t pc = moved_or_start(reader.u2());
      if (pc == kNowhere || !reader.ok()) return kMalformed;
      to->u2(pc);
      to->u2(reader.u2());
    }
    return "";
  }

  // LocalVariableTable and LocalVariableTypeTable.
  std::string put_variables(Bytes body, ByteWriter* to) const {
    ByteReader reader(body);
    uint32_t left = reader.u2();
    to->u2(left);
    for (; left > 0; --left) {
      const uint32_t from = reader.u2(), length = reader.u2();
      const uint32_t start = moved_or_start(from), end = moved(int64_t{from} + length);
      if (start == kNowhere || end == kNowhere || end < start || !reader.ok()) return kMalformed;
      to->u2(start);
      to->u2(end - start);
      to->put(reader.take(6));
    }
    return reader.ok() ? "" : kMalformed;
  }

  std::string put_frames(Bytes body, ByteWriter* to) const {
    FrameWriter frames(to);
    auto map = [this](uint32_t pc) { return moved(pc); };
    if (!body.empty() && !move_frames(body, map, entry_, &frames)) return method_.constructor ? kFlow : kMalformed;
    if (!ranges_.empty()) frames.add_handler(handler(), entries_.throwable);
    return frames.finish() ? "" : kTooLarge;
  }

  std::string put_attributes(ByteWriter* to) const {
    constexpr uint16_t kFirstWithFrames = 50;
    const size_t count_at = to->size();
    uint32_t count = 0;
    to->u2(0);
    Bytes frames;
    ByteReader reader(attributes_);
    for (uint32_t left = attribute_count_; left > 0; --left) {
      const uint16_t name_index = reader.u2();
      const Bytes body = reader.take(reader.u4());
      if (!reader.ok()) return kMalformed;
      const std::string_view name = pool_.utf8(name_index);
      if (name == "StackMapTable") {
        frames = body;
        continue;
      }
      // Of use to nobody at run time, and full of positions.
      if (name == "RuntimeVisibleTypeAnnotations" || name == "RuntimeInvisibleTypeAnnotations") continue;
      to->u2(name_index);
      const size_t start = to->open_length();
      std::string problem;
      if (name == "LineNumberTable") {
        problem = put_lines(body, to);
      } else if (name == "LocalVariableTable" || name == "LocalVariableTypeTable") {
        problem = put_variables(body, to);
      } else {
        to->put(body);
      }
      if (!problem.empty()) return problem;
      to->close_length(start);
      ++count;
    }
    if (method_.class_major >= kFirstWithFrames) {
      to->u2(entries_.stack_map_table);
      const size_t start = to->open_length();
      std::string problem = put_frames(frames, to);
      if (!problem.empty()) return problem;
      to->close_length(start);
      ++count;
    }
    to->set_u2(count_at, count);
    return "";
  }

  std::string write(ByteWriter* out) {
    if (max_stack_ > 65533) return kTooLarge;
    ByteWriter code, rest;
    std::string problem = put_code(&code);
    if (problem.empty()) problem = put_handlers(&rest);
    if (problem.empty()) problem = put_attributes(&rest);
    if (!problem.empty()) return problem;
    out->u2(max_stack_ < 1 ? 2 : max_stack_ + 1u);  // the id on top; in a handler on the exception
    out->u2(max_locals_);
    out->u4(code.size());
    out->put(code.bytes());
    out->put(rest.bytes());
    return "";
  }

  static constexpr uint32_t kNowhere = UINT32_MAX;

  const MethodCode& method_;
  const ConstantPool& pool_;
  const ProbeEntries& entries_;
  uint32_t max_stack_ = 0, max_locals_ = 0, attribute_count_ = 0;
  Bytes code_, handlers_, attributes_;
  std::vector<uint32_t> moved_;
  uint32_t entry_ = 0;  // of the method, old position: the instruction that our call stands before
  uint32_t range_start_ = 0;
  std::vector<Range> ranges_;
};

}  // namespace

std::string rewrite_code(const MethodCode& method, const ConstantPool& pool, const ProbeEntries& entries,
                         ByteWriter* out) {
  return CodeRewriter(method, pool, entries).run(out);
}

}  // namespace classaccess
