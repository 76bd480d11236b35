#include "agent/cli/option_text.h"

#include <filesystem>

#include "agent/jvmti/options.h"

namespace classaccess {
namespace {

std::string in_quotes(const std::string& value) {
  if (!value.empty() && value.find_first_of(",\"\\@") == std::string::npos) return value;
  std::string text = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

}  // namespace

std::string option_text(const GivenOptions& given) {
  std::string text;
  for (const OptionRow& row : option_rows()) {
    auto it = given.find(row.key);
    if (it == given.end()) continue;
    std::string value = it->second;
    std::error_code ec;
    if (it->first == "out") value = std::filesystem::absolute(value, ec).string();
    text += (text.empty() ? "" : ",") + it->first + "=" + (row.is_list ? value : in_quotes(value));
  }
  return text;
}

}  // namespace classaccess
