// What the tool itself did, cost, and could not do: the `diagnostic` table in words.
#include <algorithm>
#include <iterator>
#include <map>

#include "agent/report/sections.h"
#include "agent/report/text.h"

namespace classaccess {
namespace {

struct Meaning {
  const char* name;
  bool is_problem;
  const char* text;
};

// In the order in which they are printed. A row of `diagnostic` that is not here is printed without a meaning.
constexpr Meaning kMeanings[] = {
    {"dropped", true, "records lost after the database could not be written any more"},
    {"unresolved", true, "accesses whose object could not be told: class (not resolved)"},
    {"table_full", true, "classes, methods or sites without a row: what they did has no name"},
    {"threads_full", true, "threads that were not recorded: too many"},
    {"virtual_threads_full", true, "accesses of virtual threads that were given to their carrier"},
    {"windows", true, "times a page was opened for an access: with mprotect other threads' accesses of it are missed"},
    {"no_twin", true, "1: there was no second view of the heap (twin=off, or memfd_create refused)"},
    {"decode_failures", true, "traps of instructions that are not known; they were single-stepped"},
    {"handlers_replaced", true, "times another library took our signal handler away; it was put back"},
    {"pages_merged", true, "1: larger pages or a smaller window than asked for (vm.max_map_count)"},
    {"page_windows_shared", true, "threads that shared one window of open pages: no protection key was left for them"},
    {"page_opens_refused", true, "pages that stay closed: the kernel has no mapping left (vm.max_map_count)"},
    {"page_closes_refused", true, "pages that stay open: later touches are not seen"},
    {"probes_stuck", true, "probes that could not be taken back where HotSpot looks at the code"},
    {"call_rows_dropped", true, "single rows of calls lost, the statistics have them: the writer was too slow"},
    {"call_threads_full", true, "calls that were not timed: too many threads, or virtual threads inside of calls"},
    {"call_contexts_full", true, "calls whose accesses are counted for the calls round them only"},
    {"call_functions_full", true, "functions that are not timed: too many in this process"},
    {"call_memory_full", true, "calls that are not in the statistics: no memory"},
    {"call_too_deep", true, "calls that were not timed: too many inside each other"},
    {"call_no_shadow", true, "native calls that were not timed: no memory for return addresses"},
    {"disagreements", true, "answers of the resolver that the heap does not confirm"},
    {"self_ns", false, "in the trap handler, all threads together"},
    {"writer_ns", false, "processor time of the writer thread"},
    {"longest_commit_ns", false, "longest commit of the database"},
    {"waits", false, "times a thread waited for the writer"},
    {"accesses", false, "accesses in the counts"},
    {"events", false, "accesses kept as single rows"},
    {"call_rows", false, "calls kept as single rows"},
    {"call_java_inside", false, "own cost inside a timed Java method, subtracted from its time, in picoseconds"},
    {"call_java_cost", false, "own cost of a timed Java method, subtracted from those round it, in picoseconds"},
    {"call_native_inside", false, "own cost inside a timed native function, subtracted from its time, in picoseconds"},
    {"call_native_cost", false, "own cost of a timed native function, subtracted from those round it, in picoseconds"},
    {"call_busy", false, "calls that were not timed: made by a signal handler inside our code"},
    {"call_other_caller", false, "native calls that were not timed: not entered by a call of the function"},
    {"call_code_cache", false, "native calls that were not timed: from code whose return address HotSpot reads"},
    {"traps", false, "accesses that trapped"},
    {"probed", false, "accesses made by inline probes"},
    {"filtered", false, "accesses of classes that are not selected"},
    {"emulated", false, "instructions performed in the handler"},
    {"displaced", false, "instructions performed by a displaced copy"},
    {"stepped", false, "instructions that were single-stepped"},
    {"chained", false, "signals passed to the handler that was there before"},
    {"unrecorded", false, "traps of threads that are not recorded"},
    {"foreign_opened", false, "threads that are no Java threads and were let in"},
    {"recorded", false, "records made"},
    {"unresolved_at_trap", false, "accesses whose object was not known yet when they were made"},
    {"page_touches", false, "touches counted (mode=pages)"},
    {"page_windows", false, "windows that touches were counted in (mode=pages)"},
    {"page_opens", false, "pages opened (mode=pages)"},
    {"page_reopens", false, "pages opened that were in the window already"},
    {"probes_laid", false, "instructions that became inline probes"},
    {"probes_relaid", false, "of these, laid again for a neighbour"},
    {"probes_taken_back", false, "of these, taken back"},
    {"probes_outside", false, "of these, taken back since they mostly met memory outside the heap"},
    {"sites_unfit", false, "instructions not probed: their form cannot run in a probe"},
    {"sites_immediate", false, "instructions not probed: their constant may be an object's address"},
    {"sites_successor", false, "instructions not probed: the bytes behind may change"},
    {"sites_no_room", false, "instructions not probed: no free address in reach"},
    {"sites_bytes_changed", false, "instructions not probed: the code changed meanwhile"},
    {"traps_unfit", false, "traps of these: unfit form"},
    {"traps_immediate", false, "traps of these: constant"},
    {"traps_successor", false, "traps of these: bytes behind"},
    {"traps_no_room", false, "traps of these: no room"},
    {"traps_bytes_changed", false, "traps of these: code changed"},
    {"traps_native", false, "traps in libraries, where those are not probed"},
    {"criticals", false, "JNI critical arrays and strings handed out"},
    {"kernel_runs", false, "parts of the heap touched by system calls"},
    {"library_texts_left_out", false, "parts of libraries whose code is not probed: there are too many"},
    {"verified", false, "answers of the resolver that the heap confirms (verifying build)"},
    {"unverified", false, "answers of the resolver that could not be compared (verifying build)"},
    {"handlers_behind", false, "signal handlers of other libraries, put behind ours"},
    {"commits", false, "parts of the heap made shared and closed"},
    {"uncommits", false, "parts of the heap given back"},
    {"heap_walks", false, "walks of a region for the starts of its objects"},
    {"dictionary", false, "different (thread, site, class, field, part, operation)"},
};

}  // namespace

bool has_meaning(const std::string& diagnostic) {
  return std::any_of(std::begin(kMeanings), std::end(kMeanings),
                     [&](const Meaning& meaning) { return diagnostic == meaning.name; });
}

namespace {

struct Measured {
  int64_t value = 0;
  std::string unit;
};

std::map<std::string, Measured> measured(RecordingFile& file) {
  std::map<std::string, Measured> all;
  file.each("SELECT name, value, unit FROM main.diagnostic WHERE value <> 0", {}, [&](const CellRow& row) {
    all[text_of(row[0])] = {integer_of(row[1]), text_of(row[2])};
  });
  return all;
}

std::vector<Column> columns_with_meaning() {
  return {{"what", Kind::kTail, 0, 16},
          {"value", Kind::kMeasured},
          {"unit", Kind::kTail, kOnlyData},
          {"meaning", Kind::kWrapped, 0, 24}};
}

CellRow row_of(const std::string& name, const Measured& measured, const std::string& meaning) {
  return {name, measured.value, measured.unit, meaning.empty() ? measured.unit : meaning};
}

}  // namespace

Table problems_section(const SectionInput& input) {
  Table table;
  table.title = "What the tool could not do";
  table.columns = columns_with_meaning();
  table.if_empty = "nothing: every access of the chosen classes and threads was recorded, with its object";
  std::map<std::string, Measured> all = measured(input.file);
  for (const Meaning& meaning : kMeanings) {
    auto it = all.find(meaning.name);
    if (meaning.is_problem && it != all.end()) table.rows.push_back(row_of(it->first, it->second, meaning.text));
  }
  const Selection& selection = input.selection;
  if (selection.rows_are_part()) {
    table.rows.push_back(
        {"rows_not_kept", selection.accesses() - selection.single_rows(), "accesses",
         "accesses that are in the counts but not single rows (events=N): their time and object are not "
         "known"});
  }
  if (text_of(input.file.value("SELECT status FROM main.run")) == "running") {
    table.rows.push_back({"not_ended", int64_t{1}, "recordings", "the recording goes on, or the JVM was killed"});
  }
  return table;
}

Table cost_section(const SectionInput& input) {
  Table table;
  table.title = "What the tool did and cost";
  table.columns = columns_with_meaning();
  table.if_empty = "nothing was counted";
  std::map<std::string, Measured> all = measured(input.file);
  if (!all.empty()) {
    int64_t bytes = input.file.bytes();
    int64_t rows = input.selection.single_rows();
    std::string each =
        rows > 0 ? ", " + fixed(static_cast<double>(bytes) / static_cast<double>(rows), 1) + " a single row" : "";
    table.rows.push_back({"database", bytes, "bytes", "bytes of the file" + each});
  }
  for (const Meaning& meaning : kMeanings) {
    auto it = all.find(meaning.name);
    if (it == all.end()) continue;
    if (!meaning.is_problem) table.rows.push_back(row_of(it->first, it->second, meaning.text));
    all.erase(it);
  }
  for (const auto& [name, value] : all) table.rows.push_back(row_of(name, value, ""));
  return table;
}

}  // namespace classaccess
