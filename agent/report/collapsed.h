// Collapsed stacks (`class;method;field weight`), as flamegraph.pl and speedscope read them.
// Context: the classaccess command.
#pragma once

#include <string>

#include "agent/report/recording_file.h"

namespace classaccess {

// Of what is selected (r_count), sorted. `;` and line ends in names become `_`.
std::string collapsed_stacks(RecordingFile& file);

}  // namespace classaccess
