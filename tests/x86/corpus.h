// The corpus: distinct memory instructions that trapped in real programs, tests/x86/corpus.txt.
//
// A line: HEX KINDS WEIGHT. HEX is the instruction with displacements of one byte replaced by 10h, of four by
// 100h and 32-bit immediates by 11223344h; everything else (prefixes, registers, 8-bit immediates) as it was.
// KINDS: i interpreter, 1 C1, 2 C2, s stub, v libjvm, g the collector's functions in it, n other libraries.
// WEIGHT: how often it was executed while harvested.
// Made by scripts/harvest-corpus.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/x86/variants.h"

namespace classaccess::test {

struct CorpusLine {
  uint8_t bytes[16] = {};
  size_t length = 0;
  std::string kinds;
  uint64_t weight = 0;
};

// False if the text is no line of the corpus.
bool parse_corpus_line(const std::string& text, CorpusLine* out);
// Lines that do not begin with '#'; aborts on a malformed one.
std::vector<CorpusLine> read_corpus(const std::string& path);
std::string corpus_text(const CorpusLine& line);

// Replaces displacement and immediate as described above. False if it does not decode.
bool normalise(CorpusLine* line);

// A case of exactly these bytes whose operand is at (or, where base and index are one
// register, near) `address`. False if the draw does not work out.
bool make_corpus_case(const CorpusLine& line, uint64_t address, Random& random, Case* out);

}  // namespace classaccess::test
