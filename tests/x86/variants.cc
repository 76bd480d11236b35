#include "tests/x86/variants.h"

#include <sys/mman.h>

#include <cstring>

#include "agent/x86/decode.h"
#include "agent/x86/operand.h"

namespace classaccess::test {
namespace {

bool is_group(const Form& f) {
  if (f.encodings & kFormLegacy) {
    if (f.map == OpcodeMap::k1Byte) {
      uint8_t op = f.first;
      return op == 0x80 || op == 0x81 || op == 0x83 || op == 0xc0 || op == 0xc1 || (op >= 0xd0 && op <= 0xd3) ||
             op == 0xd8 || op == 0xda || op == 0xdc || op == 0xde;
    }
    return f.map == OpcodeMap::k0F && ((f.first >= 0x18 && f.last <= 0x1f) || f.first == 0x0d);
  }
  if (f.map == OpcodeMap::k0F38) return f.first == 0xf3 || f.first == 0xc6 || f.first == 0xf2;
  return f.map == OpcodeMap::k0F && f.first >= 0x71 && f.last <= 0x73;
}

bool needs_immediate(const Variant& v) {
  if (v.form->map == OpcodeMap::k0F3A) return true;
  if (v.form->map != OpcodeMap::k0F) return false;
  return (v.opcode >= 0x70 && v.opcode <= 0x73) || v.opcode == 0xc2 || (v.opcode >= 0xc4 && v.opcode <= 0xc6) ||
         v.opcode == 0xa4 || v.opcode == 0xac || v.opcode == 0xba;
}

size_t immediate_bytes(const Variant& v) {
  if (needs_immediate(v)) return 1;
  if (v.form->map != OpcodeMap::k1Byte) return 0;
  size_t z = v.prefix == Prefix::k66 && !v.w ? 2 : 4;
  switch (v.opcode) {
    case 0x80:
    case 0x83:
    case 0x6b:
    case 0xc0:
    case 0xc1:
    case 0xc6: return 1;
    case 0x81:
    case 0x69:
    case 0xc7: return z;
    case 0xf6: return v.digit <= 1 ? 1 : 0;
    case 0xf7: return v.digit <= 1 ? z : 0;
    default: return 0;
  }
}

bool is_moffs(const Variant& v) { return v.form->map == OpcodeMap::k1Byte && v.opcode >= 0xa0 && v.opcode <= 0xa3; }
bool is_indexed(const Variant& v) { return v.form->touch == FormTouch::kIndexed; }
bool is_selector(const Variant& v) { return v.form->map == OpcodeMap::k1Byte && v.opcode == 0x8e; }
bool is_byte_mask(const Variant& v) { return v.form->touch == FormTouch::kByteMask; }

uint8_t prefix_code(Prefix p) { return p == Prefix::k66 ? 1 : p == Prefix::kF3 ? 2 : p == Prefix::kF2 ? 3 : 0; }

struct Fields {
  unsigned reg = 0, base = 3, index = 4, scale = 0, vvvv = 0, mask = 0;
  int mod = 0;  // 0, 1, 2
  bool has_base = true, rip = false, high_index = false, zeroing = false, broadcast = false, lock = false, a32 = false;
  bool short_vex = false, force_rex = false;
  uint8_t segment = 0;  // prefix
  uint32_t displacement = 0;
  uint64_t moffs = 0;
  uint8_t immediate[4] = {};
};

class Writer {
 public:
  explicit Writer(Case* out) : out_(out) { out->length = 0; }
  void put(unsigned b) { out_->bytes[out_->length++] = static_cast<uint8_t>(b); }
  void put32(uint32_t v) {
    memcpy(out_->bytes + out_->length, &v, 4);
    out_->length += 4;
  }

 private:
  Case* out_;
};

void put_escape(Writer& w, OpcodeMap map) {
  if (map == OpcodeMap::k1Byte) return;
  w.put(0x0f);
  if (map == OpcodeMap::k0F38) w.put(0x38);
  if (map == OpcodeMap::k0F3A) w.put(0x3a);
}

void assemble(const Variant& v, const Fields& f, Case* out) {
  Writer w(out);
  if (f.lock) w.put(0xf0);
  if (f.segment != 0) w.put(f.segment);
  if (f.a32) w.put(0x67);
  unsigned r = f.reg >> 3 & 1, b = f.has_base ? f.base >> 3 & 1 : 0, x = f.index >> 3 & 1;
  unsigned pp = prefix_code(v.prefix), map = static_cast<unsigned>(v.form->map);
  if (v.encoding == Encoding::kLegacy) {
    if (v.prefix == Prefix::k66) w.put(0x66);
    if (v.prefix == Prefix::kF3) w.put(0xf3);
    if (v.prefix == Prefix::kF2) w.put(0xf2);
    unsigned rex = (v.w ? 8u : 0u) | r << 2 | x << 1 | b;
    if (rex != 0 || f.force_rex) w.put(0x40 | rex);
    put_escape(w, v.form->map);
  } else if (v.encoding == Encoding::kVex) {
    if (f.short_vex && map == 1 && !v.w && !x && !b) {
      w.put(0xc5);
      w.put((r ? 0u : 0x80u) | (~f.vvvv & 15u) << 3 | v.length << 2 | pp);
    } else {
      w.put(0xc4);
      w.put((r ? 0u : 0x80u) | (x ? 0u : 0x40u) | (b ? 0u : 0x20u) | map);
      w.put((v.w ? 0x80u : 0u) | (~f.vvvv & 15u) << 3 | v.length << 2 | pp);
    }
  } else {
    w.put(0x62);
    w.put((r ? 0u : 0x80u) | (x ? 0u : 0x40u) | (b ? 0u : 0x20u) | (f.reg & 16 ? 0u : 0x10u) | map);
    w.put((v.w ? 0x80u : 0u) | (~f.vvvv & 15u) << 3 | 4u | pp);
    bool high = f.high_index || (f.vvvv & 16);
    w.put((f.zeroing ? 0x80u : 0u) | v.length << 5 | (f.broadcast ? 0x10u : 0u) | (high ? 0u : 8u) | f.mask);
  }
  w.put(v.opcode);
  if (is_moffs(v)) {
    memcpy(out->bytes + out->length, &f.moffs, 8);
    out->length += f.a32 ? 4 : 8;
    return;
  }
  unsigned reg = (v.digit >= 0 ? static_cast<unsigned>(v.digit) : f.reg) & 7;
  if (is_byte_mask(v)) {
    w.put(0xc0 | reg << 3 | (f.base & 7));
    return;
  }
  if (f.rip) {
    w.put(reg << 3 | 5);
    w.put32(f.displacement);
  } else {
    bool sib = (f.index & 15) != 4 || (f.base & 7) == 4 || !f.has_base || is_indexed(v);
    int mod = f.has_base ? f.mod : 0;
    if (f.has_base && (f.base & 7) == 5 && mod == 0) mod = 1;
    w.put(static_cast<unsigned>(mod) << 6 | reg << 3 | (sib ? 4u : f.base & 7));
    if (sib) w.put(f.scale << 6 | (f.index & 7) << 3 | (f.has_base ? f.base & 7 : 5u));
    if (mod == 1) w.put(f.displacement & 0xff);
    if (mod == 2 || !f.has_base) w.put32(f.displacement);
  }
  for (size_t i = 0; i < immediate_bytes(v); ++i) w.put(f.immediate[i]);
}

Fields draw(const Variant& v, const Legal& legal, const Wish& wish, Random& random) {
  Fields f;
  bool evex = v.encoding == Encoding::kEvex;
  bool vector = v.encoding != Encoding::kLegacy;
  f.reg = static_cast<unsigned>(random() % (evex ? 32 : 16));
  if (random() % 2) f.reg &= 7;  // a mask destination must be k0..k7
  if (v.digit >= 0) f.reg = 0;
  f.base = static_cast<unsigned>(random() % 16);
  f.index = random() % 2 ? 4 : static_cast<unsigned>(random() % 16);
  f.scale = static_cast<unsigned>(random() % 4);
  f.mod = static_cast<int>(random() % 3);
  f.displacement = static_cast<uint32_t>(static_cast<int32_t>(random() % 256) - 128);
  if (f.mod == 2) f.displacement = static_cast<uint32_t>(random());
  if (!wish.addressing) {
    f.index = 4;
    f.mod = 2;
    f.base = 3;
  } else {
    f.a32 = random() % 8 == 0;
    f.has_base = random() % 12 != 0 || is_moffs(v);
    f.rip = f.has_base && !is_indexed(v) && random() % 12 == 0;
  }
  if (wish.addressing && random() % 8 == 0) {
    constexpr uint8_t kIgnored[] = {0x26, 0x2e, 0x36, 0x3e};  // ES, CS, SS, DS
    f.segment = kIgnored[random() % 4];
    // FS only where a register can make up for its base.
    bool reachable = !f.a32 && f.has_base && !f.rip && !is_moffs(v);
    if (reachable && random() % 4 == 0) f.segment = 0x64;
  }
  f.force_rex = random() % 2 != 0;
  f.short_vex = random() % 2 != 0;
  if (is_indexed(v)) {
    f.index = static_cast<unsigned>(random() % 16);
    f.high_index = evex && random() % 2;
    f.rip = false;
    f.vvvv = evex ? 0 : static_cast<unsigned>(random() % 16);
  } else if (vector && legal.vvvv) {
    f.vvvv = static_cast<unsigned>(random() % (evex ? 32 : 16));
  }
  if (is_byte_mask(v)) f.base = static_cast<unsigned>(random() % 16);
  if (evex && legal.mask && (!legal.no_mask || (!wish.plain && random() % 3 != 0))) {
    f.mask = 1 + static_cast<unsigned>(random() % 7);
    f.zeroing = legal.zeroing && random() % 2;
  }
  f.broadcast = legal.broadcast && !wish.plain && random() % 3 == 0;
  f.lock = legal.lock && random() % 2;
  for (uint8_t& b : f.immediate) b = static_cast<uint8_t>(random());
  if (is_selector(v)) f.reg = random() % 2 ? 0 : 3;  // ES, DS: the others matter to us
  if (moves_stack(v) && f.base == 4) f.mod = 2;      // the stack stays, the displacement is chosen
  return f;
}

bool place(const Variant& v, Fields f, uint64_t address, Random& random, Case* out) {
  if (is_moffs(v)) f.moffs = address;
  if (!f.has_base || f.rip) f.displacement = 0;
  assemble(v, f, out);
  if (!decode(out->bytes, out->length, &out->decoded) || out->decoded.length != out->length) return false;
  MachineState& state = out->state;
  bool by_displacement = f.rip || !f.has_base || (moves_stack(v) && f.base == 4);
  if (is_indexed(v)) {
    // Small indexes keep every lane near the address.
    for (unsigned lane = 0; lane < 64 / out->decoded.index_bytes; ++lane) {
      int64_t index = static_cast<int64_t>(random() % 61) - 30;
      memcpy(state.zmm[out->decoded.index] + lane * out->decoded.index_bytes, &index, out->decoded.index_bytes);
    }
  }
  for (int attempt = 0; attempt < 3; ++attempt) {
    CpuState cpu = cpu_state(state);
    uint64_t delta = address - effective_address(out->decoded, cpu);
    if (delta == 0) return true;
    if (is_moffs(v)) return false;
    if (by_displacement) {
      f.displacement += static_cast<uint32_t>(delta);
      MachineState kept = state;
      assemble(v, f, out);
      state = kept;
      if (!decode(out->bytes, out->length, &out->decoded)) return false;
    } else {
      state.gpr[is_byte_mask(v) ? 7 : out->decoded.base] += delta;
    }
  }
  return effective_address(out->decoded, cpu_state(state)) == address;
}

}  // namespace

std::string Variant::name() const {
  static const char* const kEncodings[] = {"legacy", "vex", "evex"};
  static const char* const kMaps[] = {"1byte", "0f", "0f38", "0f3a", "", "map5", "map6"};
  static const char* const kPrefixes[] = {"np", "66", "f3", "f2", "any"};
  char text[96];
  snprintf(text, sizeof(text), "%s %s %s %02x /%d w%d l%u", kEncodings[static_cast<int>(encoding)],
           kMaps[static_cast<int>(form->map)], kPrefixes[static_cast<int>(prefix)], opcode, digit, w, length);
  return text;
}

std::vector<Variant> all_variants() {
  std::vector<Variant> out;
  for (size_t row = 0; row < kFormCount; ++row) {
    const Form& form = kFormTable[row];
    for (unsigned e = 0; e < 3; ++e) {
      if (!(form.encodings & (1u << e))) continue;
      Encoding encoding = static_cast<Encoding>(e);
      std::vector<Prefix> prefixes{form.prefix};
      if (form.prefix == Prefix::kAny) {
        prefixes = {Prefix::kNone, Prefix::k66};
        if (encoding != Encoding::kLegacy) prefixes.insert(prefixes.end(), {Prefix::kF3, Prefix::kF2});
      }
      unsigned lengths = encoding == Encoding::kLegacy ? 1 : encoding == Encoding::kVex ? 2 : 3;
      std::vector<int> digits{form.digit};
      if (form.digit < 0 && is_group(form)) digits = {0, 1, 2, 3, 4, 5, 6, 7};
      for (unsigned op = form.first; op <= form.last; ++op) {
        for (Prefix prefix : prefixes) {
          for (int digit : digits) {
            for (int w = 0; w < 2; ++w) {
              if (form.w >= 0 && form.w != w) continue;
              const Form* found = find_form(encoding, form.map, static_cast<uint8_t>(op), prefix,
                                            digit < 0 ? 0u : static_cast<unsigned>(digit), w != 0);
              if (found != &form) continue;
              for (unsigned length = 0; length < lengths; ++length) {
                out.push_back(Variant{row, &form, encoding, static_cast<uint8_t>(op), prefix, digit, w != 0, length});
              }
            }
          }
        }
      }
    }
  }
  return out;
}

bool moves_stack(const Variant& v) {
  return v.form->map == OpcodeMap::k1Byte && (v.opcode == 0x8f || (v.opcode == 0xff && v.digit == 6));
}

bool runnable(const Variant& v) { return v.form->execute != Execute::kStep; }

bool needs_quiet_memory(const Variant& v) {
  if (v.form->map == OpcodeMap::k0F && v.opcode == 0xae) return true;  // MXCSR
  return is_selector(v);
}

void fill_memory(const Variant& v, Random& random, uint8_t* to, size_t bytes) {
  constexpr uint64_t kMxcsr = 0x00001f8000001f80u, kUserData = 0x002b002b002b002bu;
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t value = !needs_quiet_memory(v) ? random() : is_selector(v) ? kUserData : kMxcsr;
    memcpy(to + i, &value, 8);
  }
}

bool make_case(const Variant& v, const Legal& legal, const Wish& wish, uint64_t address, Random& random, Case* out) {
  randomize(random, &out->state);
  if (moves_stack(v)) out->state.gpr[4] = reinterpret_cast<uint64_t>(g_outside) + 4 * kPage + random() % 256;
  Fields f = draw(v, legal, wish, random);
  return place(v, f, address, random, out);
}

Legal find_legal(const Variant& v, Random& random) {
  Legal legal;
  uint64_t address = reinterpret_cast<uint64_t>(g_heap) + 4 * kPage;
  auto works = [&](const Legal& trial, bool need_mask, bool need_z, bool need_b, bool need_vvvv) {
    int wrong = 0;
    for (int i = 0; i < 60 && wrong < 12; ++i) {
      Case c;
      if (!make_case(v, trial, Wish{false, false}, address, random, &c)) continue;
      if (need_mask && c.decoded.mask == 0) continue;
      if (need_z && !c.decoded.zeroing) continue;
      if (need_b && !c.decoded.broadcast) continue;
      if (need_vvvv && c.decoded.vvvv == 0) continue;
      NativeResult r = run_native(c.bytes, c.length, &c.state);
      if (r.outcome == Outcome::kCompleted) return true;
      ++wrong;
    }
    return false;
  };
  Legal trial;
  trial.no_mask = true;
  legal.no_mask = works(trial, false, false, false, false);
  if (v.encoding == Encoding::kEvex) {
    Legal masked = trial;
    masked.mask = true;
    masked.no_mask = legal.no_mask;
    legal.mask = works(masked, true, false, false, false);
    if (legal.mask) {
      masked.zeroing = true;
      legal.zeroing = works(masked, true, true, false, false);
    }
  }
  legal.any = legal.no_mask || legal.mask;
  if (!legal.any) return legal;
  Legal more = legal;
  if (v.encoding != Encoding::kLegacy && !is_indexed(v)) {
    more.vvvv = true;
    legal.vvvv = works(more, false, false, false, true);
    more.vvvv = legal.vvvv;
  }
  if (v.encoding == Encoding::kEvex) {
    more.broadcast = true;
    legal.broadcast = works(more, false, false, true, false);
  }
  if (v.encoding == Encoding::kLegacy && v.form->op == FormOp::kRmw && v.form->execute == Execute::kEmulate)
    legal.lock = true;
  return legal;
}

}  // namespace classaccess::test
