#include "tests/x86/corpus.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "agent/x86/decode.h"
#include "agent/x86/operand.h"

namespace classaccess::test {
namespace {

bool is_legacy_prefix(uint8_t b) {
  return b != 0 && strchr("\x66\x67\xf0\xf2\xf3\x26\x2e\x36\x3e\x64\x65", b) != nullptr;
}

// Offset of the ModRM byte.
size_t modrm_offset(const Instruction& in) {
  if (in.encoding == Encoding::kEvex) return 5;
  if (in.encoding == Encoding::kVex) return in.bytes[0] == 0xc5 ? 3 : 4;
  size_t at = 0;
  while (is_legacy_prefix(in.bytes[at])) ++at;
  if (in.rex) ++at;
  switch (in.map) {
    case OpcodeMap::k1Byte: return at + 1;
    case OpcodeMap::k0F: return at + 2;
    default: return at + 3;
  }
}

uint64_t low_register(const Instruction& in, uint64_t value) { return in.address32 ? value & 0xffffffffu : value; }

}  // namespace

bool parse_corpus_line(const std::string& text, CorpusLine* out) {
  std::istringstream in(text);
  std::string digits;
  if (!(in >> digits >> out->kinds >> out->weight)) return false;
  if (digits.size() % 2 != 0 || digits.size() > 30) return false;
  out->length = digits.size() / 2;
  for (size_t i = 0; i < out->length; ++i) {
    char* end = nullptr;
    std::string pair = digits.substr(2 * i, 2);
    out->bytes[i] = static_cast<uint8_t>(strtoul(pair.c_str(), &end, 16));
    if (*end != '\0') return false;
  }
  return out->length != 0;
}

std::vector<CorpusLine> read_corpus(const std::string& path) {
  std::vector<CorpusLine> lines;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    if (text.empty() || text[0] == '#') continue;
    CorpusLine line;
    if (!parse_corpus_line(text, &line)) {
      fprintf(stderr, "%s: malformed: %s\n", path.c_str(), text.c_str());
      abort();
    }
    lines.push_back(line);
  }
  return lines;
}

std::string corpus_text(const CorpusLine& line) {
  return hex(line.bytes, line.length) + " " + line.kinds + " " + std::to_string(line.weight);
}

bool normalise(CorpusLine* line) {
  Instruction in;
  if (!decode(line->bytes, line->length, &in) || in.length != line->length) return false;
  if (!in.has_modrm || !in.has_memory) return true;
  size_t at = modrm_offset(in);
  unsigned mod = in.modrm >> 6, rm = in.modrm & 7u;
  ++at;
  bool no_base = mod == 0 && (rm == 5 || (rm == 4 && (in.sib & 7) == 5));
  if (rm == 4) ++at;
  constexpr uint8_t kDisplacement[] = {0, 1, 0, 0}, kImmediate[] = {0x44, 0x33, 0x22, 0x11};
  if (mod == 1) {
    line->bytes[at++] = 0x10;
  } else if (mod == 2 || no_base) {
    memcpy(line->bytes + at, kDisplacement, 4);
    at += 4;
  }
  if (in.length - at == 4) memcpy(line->bytes + at, kImmediate, 4);
  return true;
}

bool make_corpus_case(const CorpusLine& line, uint64_t address, Random& random, Case* out) {
  randomize(random, &out->state);
  memcpy(out->bytes, line.bytes, line.length);
  out->length = line.length;
  if (!decode(out->bytes, out->length, &out->decoded)) return false;
  const Instruction& in = out->decoded;
  MachineState& state = out->state;
  if (in.base == kRip || in.segment != 0) return false;
  if (in.touch == Touch::kIndexed) {
    for (unsigned lane = 0; lane < 64u / in.index_bytes; ++lane) {
      int64_t index = static_cast<int64_t>(random() % 61) - 30;
      memcpy(state.zmm[in.index] + lane * in.index_bytes, &index, in.index_bytes);
    }
  }
  for (int attempt = 0; attempt < 3; ++attempt) {
    uint64_t delta = address - effective_address(in, cpu_state(state));
    if (delta == 0) return true;
    bool indexed = in.index != kNoReg && !in.vsib;
    if (in.base == kNoReg) {
      if (!indexed) return false;
      state.gpr[in.index] = low_register(in, state.gpr[in.index] + delta / in.scale);
    } else if (indexed && in.base == in.index) {
      state.gpr[in.base] += delta / (1u + in.scale);
    } else if (in.touch == Touch::kBitString && in.base == in.reg) {
      return false;
    } else {
      state.gpr[in.base] += delta;
    }
  }
  // With a scaled index alone the exact byte may not be reachable.
  uint64_t reached = effective_address(in, cpu_state(state));
  return reached <= address && address - reached < 16;
}

}  // namespace classaccess::test
