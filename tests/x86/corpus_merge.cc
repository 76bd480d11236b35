// Merges harvested lines into the corpus: corpus_merge CORPUS < LINES. LINES are corpus lines with the bytes as they
// were executed. Writes the file anew, sorted; says how many lines are new.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "tests/x86/corpus.h"

using namespace classaccess::test;

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: corpus_merge CORPUS < LINES\n");
    return 2;
  }
  std::map<std::string, CorpusLine> lines;
  auto add = [&](const CorpusLine& line) {
    CorpusLine& known = lines[hex(line.bytes, line.length)];
    std::set<char> kinds(known.kinds.begin(), known.kinds.end());
    kinds.insert(line.kinds.begin(), line.kinds.end());
    uint64_t weight = known.weight + line.weight;
    known = line;
    known.kinds.assign(kinds.begin(), kinds.end());
    known.weight = weight;
  };
  for (const CorpusLine& line : read_corpus(argv[1])) add(line);
  size_t before = lines.size();
  size_t refused = 0;
  for (std::string text; std::getline(std::cin, text);) {
    CorpusLine line;
    // What does not decode is kept as it is: the test is to fail for it.
    if (!parse_corpus_line(text, &line)) {
      ++refused;
      continue;
    }
    normalise(&line);
    add(line);
  }
  std::ofstream out(argv[1], std::ios::trunc);
  out << "# Memory instructions that trapped in real programs: HEX KINDS WEIGHT, see corpus.h.\n"
         "# Made by scripts/harvest-corpus; do not edit.\n";
  for (const auto& [text, line] : lines) out << corpus_text(line) << "\n";
  out.close();
  printf("%zu lines, %zu of them new, %zu malformed\n", lines.size(), lines.size() - before, refused);
  return out && refused == 0 ? 0 : 1;
}
