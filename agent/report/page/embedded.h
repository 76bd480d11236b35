// Files put into the program at build time (embed.cmake).
#pragma once

#include <string_view>

namespace classaccess::embedded {

extern const std::string_view kPageJs, kPageCss;
extern const std::string_view kD3, kD3Licence;  // Debian's libjs-d3

}  // namespace classaccess::embedded
