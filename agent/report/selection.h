// What of a recording is reported on, as temporary tables that every section reads:
//
//   r_class, r_thread   id, name, label of the selected ones. Labels are unique: a name that
//                       several have is followed by #id.
//   r_part              part -> label, for what is no field: [element], [mark word], ...
//   r_all               columns of access_count, for the selected threads and times
//   r_count             r_all, for the selected classes (view)
//   r_row               columns of access, all of it (view)
//   r_object            gc_id, object, class_id, thread_id, n: of the single rows but
//                       statics (theirs is the class's mirror); made by need_objects()
//
// A count has no time: with --since or --until the counts are those of the single rows.
// Context: the classaccess command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/report/recording_file.h"

namespace classaccess {

struct SelectionOptions {
  std::vector<std::string> classes, threads;  // patterns; empty: all
  std::optional<double> since, until;         // seconds since the recording's start; until: excluded
};

class Selection {
 public:
  // Empty string, or what is wrong: a pattern that no class or thread of the recording matches.
  std::string prepare(RecordingFile& file, const SelectionOptions& options);
  void need_objects(RecordingFile& file);

  bool all_classes() const { return all_classes_; }
  bool all_threads() const { return all_threads_; }
  bool has_times() const { return has_times_; }
  int64_t since_ns() const { return since_ns_; }
  int64_t until_ns() const { return until_ns_; }
  // Of the whole recording.
  int64_t accesses() const { return accesses_; }
  int64_t single_rows() const { return single_rows_; }
  // There are fewer rows than accesses: what comes from rows covers the beginning only.
  bool rows_are_part() const { return single_rows_ < accesses_; }
  // One sentence about where rows end; empty if they are all there.
  std::string about_rows() const;
  // What was selected, one line; empty: everything.
  const std::string& description() const { return description_; }

 private:
  void select_classes(RecordingFile& file, const std::vector<std::string>& patterns, std::string* problem);
  void select_threads(RecordingFile& file, const std::vector<std::string>& patterns, std::string* problem);
  std::string conditions(bool with_classes) const;

  bool all_classes_ = true, all_threads_ = true, has_times_ = false, has_objects_ = false;
  int64_t since_ns_ = 0, until_ns_ = 0, accesses_ = 0, single_rows_ = 0, last_row_ns_ = 0;
  std::string description_;
};

}  // namespace classaccess
