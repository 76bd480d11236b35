#include "agent/x86/access.h"

namespace classaccess {
namespace {

uint8_t operand_width(const Instruction& in) { return in.rex_w ? 8 : in.operand16 ? 2 : 4; }

// Bytes of the full operand, before embedded broadcast.
uint16_t form_size(const Form& form, const Instruction& in) {
  uint16_t vl = in.vector_bytes;
  switch (form.size) {
    case kSizeOperand: return operand_width(in);
    case kSizeWide: return in.rex_w ? 8 : 4;
    case kSizeStack: return in.operand16 && !in.rex_w ? 2 : 8;
    case kSizeVector: return vl;
    case kSizeHalf: return static_cast<uint16_t>(vl / 2);
    case kSizeQuarter: return static_cast<uint16_t>(vl / 4);
    case kSizeEighth: return static_cast<uint16_t>(vl / 8);
    case kSizeElement: return in.element_bytes;
    case kSizeDup: return vl == 16 ? 8 : vl;
    case kSize512: return 512;
    default: return form.size;
  }
}

uint8_t form_element(const Form& form, const Instruction& in) {
  switch (form.element) {
    case kElement4or8: return in.rex_w ? 8 : 4;
    case kElement1or2: return in.rex_w ? 2 : 1;
    default: return form.element;
  }
}

// CMP, TEST and BT: loads whose only result is flags.
bool sets_only_flags(const Instruction& in) {
  if (in.op != Op::kLoad || in.encoding != Encoding::kLegacy) return false;
  if (in.map == OpcodeMap::k1Byte) {
    uint8_t op = in.opcode;
    return (op >= 0x38 && op <= 0x3b) || (op >= 0x80 && op <= 0x85) || op == 0xf6 || op == 0xf7
               ? op < 0xf6 || ((in.modrm >> 3) & 7u) <= 1
               : false;
  }
  return in.map == OpcodeMap::k0F && (in.opcode == 0xa3 || in.opcode == 0xba);
}

void apply_touch(const Form& form, Instruction* out) {
  uint8_t element = out->element_bytes;
  uint16_t whole = out->size;
  bool masked = out->encoding == Encoding::kEvex && out->mask != 0;
  switch (form.touch) {
    case FormTouch::kWhole: break;
    case FormTouch::kLanes:
      if (masked) out->touch = Touch::kLanes;
      out->mask_lanes = element != 0 ? static_cast<uint8_t>(whole / element) : 0;
      break;
    case FormTouch::kBroadcastLanes:
      if (masked) out->touch = Touch::kLanes;
      out->mask_lanes = element != 0 ? static_cast<uint8_t>(out->vector_bytes / element) : 0;
      break;
    case FormTouch::kPacked:
      if (masked) out->touch = Touch::kPacked;
      out->mask_lanes = static_cast<uint8_t>(whole / element);
      break;
    case FormTouch::kIndexed: {
      out->touch = Touch::kIndexed;
      out->vsib = true;
      out->index_bytes = out->opcode & 1 ? 8 : 4;
      unsigned step = out->index_bytes > element ? out->index_bytes : element;
      out->mask_lanes = static_cast<uint8_t>(out->vector_bytes / step);
      break;
    }
    case FormTouch::kVectorMask:
      out->touch = Touch::kVectorMask;
      out->mask_lanes = static_cast<uint8_t>(whole / element);
      break;
    case FormTouch::kByteMask:
      out->touch = Touch::kByteMask;
      out->mask_lanes = static_cast<uint8_t>(whole);
      break;
    case FormTouch::kBitString: out->touch = Touch::kBitString; break;
  }
}

}  // namespace

void apply_form(const Form* form, const Extension& ext, const Memory& memory, Instruction* out) {
  bool evex = out->encoding == Encoding::kEvex;
  if (form == nullptr) {
    out->touches_memory = true;
    return;
  }
  out->element_bytes = form_element(*form, *out);
  out->size = form_size(*form, *out);
  out->execute = form->execute;
  if (form->op == FormOp::kNone) {
    out->execute = Execute::kDisplace;
  } else {
    out->touches_memory = true;
    out->op = form->op == FormOp::kLoad ? Op::kLoad : form->op == FormOp::kStore ? Op::kStore : Op::kRmw;
    apply_touch(*form, out);
  }
  if (out->broadcast && out->element_bytes != 0) out->size = out->element_bytes;
  if (evex && memory.short_displacement) {
    bool by_element = form->touch == FormTouch::kPacked || form->touch == FormTouch::kIndexed;
    int64_t scale = by_element || form->op == FormOp::kNone ? out->element_bytes : out->size;
    out->displacement *= scale;
  }
  if (form->touch == FormTouch::kIndexed || (evex && form->op == FormOp::kNone)) {
    out->index = static_cast<uint8_t>(((out->sib >> 3) & 7u) | ext.index | ext.vsib);
  }
  bool integer = out->encoding == Encoding::kLegacy && form->element == 0 &&
                 !(out->opcode >= 0xd8 && out->opcode <= 0xdf && out->map == OpcodeMap::k1Byte);
  if (form->size == kSizeOperand || form->size == kSizeWide || form->size == kSizeStack) {
    out->operand_bytes = static_cast<uint8_t>(out->size);
  } else if (form->execute == Execute::kEmulate && out->map == OpcodeMap::k0F && out->opcode != 0xb0 &&
             out->opcode != 0xc0) {
    out->operand_bytes = operand_width(*out);  // MOVZX, MOVSX, CMPXCHG8B: the register side
  } else if (form->execute == Execute::kEmulate && out->map == OpcodeMap::k1Byte && out->opcode == 0x63) {
    out->operand_bytes = operand_width(*out);
  } else if (integer && out->size == 1) {
    out->operand_bytes = 1;
  }
  out->writes_flags_only = sets_only_flags(*out);
}

void apply_string(uint8_t opcode, Instruction* out) {
  out->touches_memory = true;
  out->execute = Execute::kString;
  out->operand_bytes = opcode & 1 ? operand_width(*out) : 1;
  out->size = out->element_bytes = out->operand_bytes;
  switch (opcode & 0xfe) {
    case 0xa4:
      out->op = Op::kStore;
      out->base = 7;
      break;
    case 0xa6:
      out->op = Op::kLoad;
      out->base = 7;
      break;
    case 0xaa:
      out->op = Op::kStore;
      out->base = 7;
      break;
    case 0xac:
      out->op = Op::kLoad;
      out->base = 6;
      break;
    default:
      out->op = Op::kLoad;
      out->base = 7;
      break;
  }
  out->writes_flags_only = (opcode & 0xf6) == 0xa6;
}

void apply_implicit(Prefix prefix, Instruction* out) {
  if (out->encoding != Encoding::kEvex && out->map == OpcodeMap::k0F && out->opcode == 0xf7 && !out->has_memory &&
      (prefix == Prefix::k66 || (prefix == Prefix::kNone && out->encoding == Encoding::kLegacy))) {
    const Form* form = find_form(out->encoding, out->map, 0xf7, prefix, 0, out->rex_w);
    out->base = 7;
    apply_form(form, Extension{}, Memory{}, out);
  } else if (out->encoding == Encoding::kLegacy && out->map == OpcodeMap::k1Byte && out->opcode == 0xd7) {
    out->base = 3;  // XLAT: [rbx+al]
    out->size = out->operand_bytes = 1;
    out->touches_memory = true;
    out->execute = Execute::kDisplace;
  }
}

}  // namespace classaccess
