#include "agent/x86/decode.h"

#include <cstring>

#include "agent/x86/access.h"
#include "agent/x86/forms.h"

namespace classaccess {
namespace {

// What follows each opcode, one letter an opcode (Intel SDM vol. 2, appendix A):
//   M ModRM           m ModRM, imm8        N ModRM, imm16/32
//   . nothing         b imm8               w imm16            z imm16/32      v imm16/32/64
//   j rel32 (66 is ignored)                e imm16, imm8      o moffs
//   T ModRM, imm8 if /0 or /1              U ModRM, imm16/32 if /0 or /1
//   ! invalid, a prefix or an escape
constexpr char kFollows1[257] =
    "MMMMbz!!MMMMbz!!"
    "MMMMbz!!MMMMbz!!"
    "MMMMbz!!MMMMbz!!"
    "MMMMbz!!MMMMbz!!"
    "!!!!!!!!!!!!!!!!"
    "................"
    "!!!M!!!!zNbm...."
    "bbbbbbbbbbbbbbbb"
    "mN!mMMMMMMMMMMMM"
    "..........!....."
    "oooo....bz......"
    "bbbbbbbbvvvvvvvv"
    "mmw.!!mNe.w..b!."
    "MMMM!!!.MMMMMMMM"
    "bbbbbbbbjj!b...."
    "!.!!..TU......MM";
constexpr char kFollows0F[257] =
    "MMMM!.....!.!M.!"
    "MMMMMMMMMMMMMMMM"
    "MMMM!!!!MMMMMMMM"
    "......!.!!!!!!!!"
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMMM"
    "mmmmMMM.MM!!MMMM"
    "jjjjjjjjjjjjjjjj"
    "MMMMMMMMMMMMMMMM"
    "...MmM!!...MmMMM"
    "MMMMMMMMMMmMMMMM"
    "MMmMmmmM........"
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMMM";

struct Cursor {
  const uint8_t* bytes;
  size_t at, end;
  bool has(size_t n) const { return end - at >= n; }
};

bool take_signed(Cursor* c, size_t n, uint64_t* out) {
  if (!c->has(n)) return false;
  uint64_t value = 0;
  std::memcpy(&value, c->bytes + c->at, n);
  c->at += n;
  unsigned shift = static_cast<unsigned>(64 - 8 * n);
  *out = static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
  return true;
}

bool take_modrm(Cursor* c, const Extension& ext, Instruction* out, Memory* memory) {
  if (!c->has(1)) return false;
  out->modrm = c->bytes[c->at++];
  out->has_modrm = true;
  unsigned mod = out->modrm >> 6, rm = out->modrm & 7u;
  out->reg = static_cast<uint8_t>(((out->modrm >> 3) & 7u) | ext.reg);
  if (mod == 3) {
    out->rm = static_cast<uint8_t>(rm | ext.base | ext.vector_rm);
    return true;
  }
  out->has_memory = true;
  if (rm == 4) {
    if (!c->has(1)) return false;
    out->sib = c->bytes[c->at++];
    unsigned index = ((out->sib >> 3) & 7u) | ext.index;
    out->scale = static_cast<uint8_t>(1u << (out->sib >> 6));
    out->index = index == 4 ? kNoReg : static_cast<uint8_t>(index);
    if ((out->sib & 7u) == 5 && mod == 0) {
      out->base = kNoReg;
    } else {
      out->base = static_cast<uint8_t>((out->sib & 7u) | ext.base);
    }
  } else if (rm == 5 && mod == 0) {
    out->base = kRip;
  } else {
    out->base = static_cast<uint8_t>(rm | ext.base);
  }
  size_t displacement = 0;
  if (mod == 1) displacement = 1;
  if (mod == 2 || out->base == kRip || (rm == 4 && out->base == kNoReg)) displacement = 4;
  memory->short_displacement = displacement == 1;
  uint64_t value = 0;
  if (displacement != 0 && !take_signed(c, displacement, &value)) return false;
  out->displacement = static_cast<int64_t>(value);
  return true;
}

bool take_immediate(Cursor* c, char follows, Instruction* out) {
  size_t z = out->operand16 && !out->rex_w ? 2 : 4;
  unsigned digit = (out->modrm >> 3) & 7u;
  switch (follows) {
    case 'm':
    case 'b': return take_signed(c, 1, &out->immediate);
    case 'w': return take_signed(c, 2, &out->immediate);
    case 'N':
    case 'z': return take_signed(c, z, &out->immediate);
    case 'v': return take_signed(c, out->rex_w ? 8 : z, &out->immediate);
    case 'j': return take_signed(c, 4, &out->immediate);
    case 'e': return take_signed(c, 3, &out->immediate);
    case 'T': return digit > 1 || take_signed(c, 1, &out->immediate);
    case 'U': return digit > 1 || take_signed(c, z, &out->immediate);
    default: return true;
  }
}

bool is_string(uint8_t opcode) { return (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf); }

bool finish(const Cursor& c, Instruction* out) {
  out->length = static_cast<uint8_t>(c.at);
  std::memcpy(out->bytes, c.bytes, c.at);
  return true;
}

bool decode_vector(Cursor c, uint8_t escape, Instruction* out) {
  Extension ext;
  unsigned map, pp;
  bool evex = escape == 0x62;
  if (escape == 0xc5) {
    if (!c.has(2)) return false;
    uint8_t p = c.bytes[c.at++];
    ext.reg = p & 0x80 ? 0 : 8;
    out->vvvv = static_cast<uint8_t>(~(p >> 3) & 15);
    out->vector_bytes = p & 4 ? 32 : 16;
    map = 1;
    pp = p & 3u;
  } else if (escape == 0xc4) {
    if (!c.has(3)) return false;
    uint8_t p0 = c.bytes[c.at], p1 = c.bytes[c.at + 1];
    c.at += 2;
    ext.reg = p0 & 0x80 ? 0 : 8;
    ext.index = p0 & 0x40 ? 0 : 8;
    ext.base = p0 & 0x20 ? 0 : 8;
    map = p0 & 0x1fu;
    out->rex_w = (p1 & 0x80) != 0;
    out->vvvv = static_cast<uint8_t>(~(p1 >> 3) & 15);
    out->vector_bytes = p1 & 4 ? 32 : 16;
    pp = p1 & 3u;
    if (map < 1 || map > 3) return false;
  } else {
    if (!c.has(4)) return false;
    uint8_t p0 = c.bytes[c.at], p1 = c.bytes[c.at + 1], p2 = c.bytes[c.at + 2];
    c.at += 3;
    if ((p0 & 0x08) || !(p1 & 0x04)) return false;  // APX
    ext.reg = static_cast<uint8_t>((p0 & 0x80 ? 0 : 8) | (p0 & 0x10 ? 0 : 16));
    ext.index = p0 & 0x40 ? 0 : 8;
    ext.vector_rm = p0 & 0x40 ? 0 : 16;
    ext.base = p0 & 0x20 ? 0 : 8;
    ext.vsib = p2 & 0x08 ? 0 : 16;
    map = p0 & 7u;
    out->rex_w = (p1 & 0x80) != 0;
    out->vvvv = static_cast<uint8_t>((~(p1 >> 3) & 15) | ext.vsib);
    pp = p1 & 3u;
    out->mask = p2 & 7;
    out->zeroing = (p2 & 0x80) != 0;
    out->broadcast = (p2 & 0x10) != 0;
    unsigned ll = (p2 >> 5) & 3u;
    out->vector_bytes = ll == 0 ? 16 : ll == 1 ? 32 : 64;  // 3 only means rounding, with registers
    if (map == 0 || map == 4 || map == 7) return false;
  }
  out->encoding = evex ? Encoding::kEvex : Encoding::kVex;
  out->map = static_cast<OpcodeMap>(map);
  constexpr Prefix kPrefixes[] = {Prefix::kNone, Prefix::k66, Prefix::kF3, Prefix::kF2};
  Prefix prefix = kPrefixes[pp];
  out->opcode = c.bytes[c.at++];
  char follows = 'M';
  if (map == 1) {
    follows = kFollows0F[out->opcode];
    if (follows == '.' && out->opcode == 0x77 && !evex) return finish(c, out);  // VZEROUPPER
    if (evex && (out->opcode == 0x7a || out->opcode == 0x7b)) follows = 'M';    // no legacy counterpart
    if (follows != 'M' && follows != 'm') return false;
    // Immediate forms of the 0F map that exist as vectors; the rest (SHLD, BA ...) do not.
    bool vector_immediate = (out->opcode >= 0x70 && out->opcode <= 0x73) || out->opcode == 0xc2 ||
                            (out->opcode >= 0xc4 && out->opcode <= 0xc6);
    if (follows == 'm' && !vector_immediate) return false;
  } else if (map == 3) {
    follows = 'm';
  }
  Memory memory;
  if (!take_modrm(&c, ext, out, &memory)) return false;
  if (!take_immediate(&c, follows, out)) return false;
  if (out->has_memory) {
    const Form* form = find_form(out->encoding, out->map, out->opcode, prefix, (out->modrm >> 3) & 7u, out->rex_w);
    apply_form(form, ext, memory, out);
    if (out->touch == Touch::kIndexed && (out->modrm & 7u) != 4) return false;
  } else {
    apply_implicit(prefix, out);
  }
  return finish(c, out);
}

}  // namespace

bool decode(const uint8_t* bytes, size_t available, Instruction* out) {
  *out = Instruction{};
  Cursor c{bytes, 0, available < 15 ? available : 15};
  uint8_t rex = 0;
  Prefix last_repeat = Prefix::kNone;
  for (;; ++c.at) {
    if (!c.has(1)) return false;
    uint8_t b = bytes[c.at];
    if (b == 0x66) {
      out->operand16 = true;
    } else if (b == 0x67) {
      out->address32 = true;
    } else if (b == 0xf0) {
      out->lock = true;
    } else if (b == 0xf2) {
      last_repeat = Prefix::kF2;
    } else if (b == 0xf3) {
      last_repeat = Prefix::kF3;
    } else if (b == 0x64 || b == 0x65) {
      out->segment = b;
    } else if (b == 0x26 || b == 0x2e || b == 0x36 || b == 0x3e) {
      // Ignored in 64-bit mode.
    } else if ((b & 0xf0) == 0x40) {
      rex = b;
      continue;
    } else {
      break;
    }
    rex = 0;  // a REX counts only right before the opcode
  }
  out->rep = last_repeat == Prefix::kF3;
  out->repne = last_repeat == Prefix::kF2;
  out->rex = rex != 0;
  out->rex_w = (rex & 8) != 0;
  uint8_t opcode = bytes[c.at++];
  if (opcode == 0xc4 || opcode == 0xc5 || opcode == 0x62) {
    if (rex != 0 || out->operand16 || out->lock || last_repeat != Prefix::kNone) return false;
    return decode_vector(c, opcode, out);
  }
  OpcodeMap map = OpcodeMap::k1Byte;
  if (opcode == 0x0f) {
    if (!c.has(1)) return false;
    opcode = bytes[c.at++];
    map = OpcodeMap::k0F;
    if (opcode == 0x38 || opcode == 0x3a) {
      map = opcode == 0x38 ? OpcodeMap::k0F38 : OpcodeMap::k0F3A;
      if (!c.has(1)) return false;
      opcode = bytes[c.at++];
    }
  }
  out->map = map;
  out->opcode = opcode;
  char follows = map == OpcodeMap::k1Byte  ? kFollows1[opcode]
                 : map == OpcodeMap::k0F   ? kFollows0F[opcode]
                 : map == OpcodeMap::k0F38 ? 'M'
                                           : 'm';
  if (follows == '!') return false;
  Prefix prefix = last_repeat != Prefix::kNone ? last_repeat : out->operand16 ? Prefix::k66 : Prefix::kNone;
  if (map == OpcodeMap::k0F && (opcode == 0x78 && (prefix == Prefix::k66 || prefix == Prefix::kF2)))
    return false;                                        // SSE4a
  if (map != OpcodeMap::k1Byte) out->vector_bytes = 16;  // for SSE; cleared below for integer forms

  if (follows == 'o') {
    size_t n = out->address32 ? 4 : 8;
    uint64_t address = 0;
    if (!take_signed(&c, n, &address)) return false;
    out->displacement = static_cast<int64_t>(n == 4 ? address & 0xffffffffu : address);
    out->has_memory = true;
    const Form* form = find_form(Encoding::kLegacy, map, opcode, prefix, 0, out->rex_w);
    apply_form(form, Extension{}, Memory{}, out);
    return finish(c, out);
  }
  Extension ext;
  ext.reg = rex & 4 ? 8 : 0;
  ext.index = rex & 2 ? 8 : 0;
  ext.base = rex & 1 ? 8 : 0;
  bool modrm = follows == 'M' || follows == 'm' || follows == 'N' || follows == 'T' || follows == 'U';
  Memory memory;
  if (modrm) {
    bool registers_only = map == OpcodeMap::k0F && opcode >= 0x20 && opcode <= 0x23;  // MOV CR, DR: mod is ignored
    if (registers_only) {
      if (!c.has(1)) return false;
      out->modrm = static_cast<uint8_t>(bytes[c.at++] | 0xc0);
      out->has_modrm = true;
    } else if (!take_modrm(&c, ext, out, &memory)) {
      return false;
    }
  }
  if (map == OpcodeMap::k1Byte && opcode == 0x8f && (out->modrm & 0x38) != 0) return false;  // XOP
  if (!take_immediate(&c, follows, out)) return false;
  if (out->has_memory) {
    apply_form(find_form(Encoding::kLegacy, map, opcode, prefix, (out->modrm >> 3) & 7u, out->rex_w), ext, memory, out);
  } else if (map == OpcodeMap::k1Byte && is_string(opcode)) {
    apply_string(opcode, out);
  } else {
    apply_implicit(prefix, out);
  }
  if (out->operand_bytes != 0) out->vector_bytes = 0;
  return finish(c, out);
}

}  // namespace classaccess
