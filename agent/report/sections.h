// The tables of a report, in the order in which they are printed.
// Context: the classaccess command.
#pragma once

#include <string>
#include <vector>

#include "agent/report/recording_file.h"
#include "agent/report/selection.h"
#include "agent/report/table.h"

namespace classaccess {

struct SectionInput {
  RecordingFile& file;
  Selection& selection;
  size_t top;  // rows (of `fields`: classes); 0: all
};

struct Section {
  const char* name;
  const char* shows;  // one line for --help
  Table (*make)(const SectionInput& input);
  // Printed without being asked for: the recording is of the kind that has it.
  bool (*applies)(RecordingFile& file);
};

const std::vector<Section>& report_sections();
const Section* find_section(const std::string& name);

// Adds the rows of a statement, `top` of them, and a note about the others.
void fill(const SectionInput& input, const std::string& sql, Table* table);

// A column that is not zero in some row is not left out where there is no room: its rank becomes 0.
void keep_if_used(const std::string& column, Table* table);

// The report says what this row of `diagnostic` means.
bool has_meaning(const std::string& diagnostic);

// A part of a SELECT over r_count or r_all, with alias t: loads, stores, rmws.
extern const char kOperationSums[];

Table run_section(const SectionInput& input);
Table classes_section(const SectionInput& input);
Table fields_section(const SectionInput& input);
Table sites_section(const SectionInput& input);
Table threads_section(const SectionInput& input);
Table sharing_section(const SectionInput& input);
Table false_sharing_section(const SectionInput& input);
Table never_read_section(const SectionInput& input);
Table pages_section(const SectionInput& input);
Table transitions_section(const SectionInput& input);
Table calls_section(const SectionInput& input);
Table call_classes_section(const SectionInput& input);
Table problems_section(const SectionInput& input);
Table cost_section(const SectionInput& input);

}  // namespace classaccess
