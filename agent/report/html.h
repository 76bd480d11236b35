// `report --html`: one page with charts, without network.
//
// Each chart is one SELECT over the tables and views that users have; the page holds its rows and shows its
// text, so a user can go on from there. The page is made of page/page.js, page/page.css and d3 (Debian's
// libjs-d3), put into this program at build time (page/embed.cmake).
// Context: the classaccess command.
#pragma once

#include <string>
#include <vector>

#include "agent/report/recording_file.h"

namespace classaccess {

struct Chart {
  const char* id;  // what page.js draws it as
  const char* title;
  const char* table;  // left out if the recording has no such table
  const char* sql;
  // The same rows by way of the tables behind the views, for charts of single rows: one number as the key of millions
  // of rows sorts fastest. Null: sql itself.
  const char* faster = nullptr;
};
const std::vector<Chart>& charts();

// The whole page; file.error() tells if it could not be made.
std::string html_page(RecordingFile& file);

}  // namespace classaccess
