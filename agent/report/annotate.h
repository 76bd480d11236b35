// `report --source DIR`: Java sources with what each line loads and stores beside it.
// Context: the classaccess command.
#pragma once

#include <cstddef>
#include <string>

#include "agent/report/recording_file.h"
#include "agent/report/selection.h"

namespace classaccess {

struct AnnotateOptions {
  std::string folder;
  std::string format;  // table: a listing for the terminal; csv, json: one row a line of source
  size_t width = 80;
  size_t top = 0;  // files; 0: all
};

// A class's file is the one whose path ends with its name (com/acme/Order.java or .kt, .scala, .groovy), whichever
// folder below `folder` it is in; nested classes are in that of the outermost. Accesses of methods without
// such a file are counted at the end. *problem: the folder cannot be read.
std::string annotated_sources(RecordingFile& file, const Selection& selection, const AnnotateOptions& options,
                              std::string* problem);

}  // namespace classaccess
