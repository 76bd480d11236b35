#include "agent/report/sections.h"

#include "agent/report/text.h"

namespace classaccess {
namespace {

bool always(RecordingFile&) { return true; }
bool has_pages(RecordingFile& file) {
  return file.has("page_access") && !is_null(file.value("SELECT 1 FROM main.page_access LIMIT 1"));
}
// A recording of pages has no accesses; any other shows that there are none.
bool has_accesses(RecordingFile& file) {
  return !is_null(file.value("SELECT 1 FROM main.access_count LIMIT 1")) || !has_pages(file);
}
bool has_calls(RecordingFile& file) {
  return file.has("call_stat") && !is_null(file.value("SELECT 1 FROM main.call_stat LIMIT 1"));
}

}  // namespace

const char kOperationSums[] =
    "coalesce(sum(t.count) FILTER (WHERE t.op = 'load'), 0) AS loads, "
    "coalesce(sum(t.count) FILTER (WHERE t.op = 'store'), 0) AS stores, "
    "coalesce(sum(t.count) FILTER (WHERE t.op = 'rmw'), 0) AS rmws";

const std::vector<Section>& report_sections() {
  static const std::vector<Section> all = {
      {"run", "what was recorded, how, how long", run_section, always},
      {"classes", "classes by accesses", classes_section, has_accesses},
      {"fields", "each class's layout: hot, cold, never read", fields_section, has_accesses},
      {"sites", "methods and lines that make the accesses", sites_section, has_accesses},
      {"threads", "threads by accesses", threads_section, has_accesses},
      {"sharing", "classes that several threads touch", sharing_section, has_accesses},
      {"false-sharing", "cache lines stored by one thread, touched elsewhere by another", false_sharing_section,
       has_accesses},
      {"never-read", "fields that are stored and never loaded", never_read_section, has_accesses},
      {"pages", "pages by touches (mode=pages)", pages_section, has_pages},
      {"transitions", "which page was touched after which (mode=pages)", transitions_section, has_pages},
      {"calls", "functions by time (calls=)", calls_section, has_calls},
      {"call-classes", "classes that a call's accesses are of (calls=)", call_classes_section, has_calls},
      {"problems", "what the tool could not do", problems_section, always},
      {"cost", "what the tool did and what it cost", cost_section, always},
  };
  return all;
}

const Section* find_section(const std::string& name) {
  for (const Section& section : report_sections()) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

void fill(const SectionInput& input, const std::string& sql, Table* table) {
  size_t more = 0;
  input.file.each(sql, {}, [&](const CellRow& row) {
    if (input.top == 0 || table->rows.size() < input.top) {
      table->rows.push_back(row);
      table->rows.back().resize(table->columns.size());
    } else {
      ++more;
    }
  });
  if (more > 0) {
    table->notes.insert(table->notes.begin(), with_commas(static_cast<int64_t>(more)) + " more (--top 0 shows all)");
  }
}

void keep_if_used(const std::string& column, Table* table) {
  for (size_t i = 0; i < table->columns.size(); ++i) {
    if (table->columns[i].name != column) continue;
    for (const CellRow& row : table->rows) {
      if (integer_of(row[i]) != 0) table->columns[i].rank = 0;
    }
  }
}

}  // namespace classaccess
