#include "agent/store/java_names.h"

#include <cstdint>

namespace classaccess {
namespace {

constexpr uint32_t kBad = 0xFFFD;

void append_utf8(std::string* out, uint32_t c) {
  if (c < 0x80) {
    *out += static_cast<char>(c);
  } else if (c < 0x800) {
    *out += static_cast<char>(0xC0 | c >> 6);
    *out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    *out += static_cast<char>(0xE0 | c >> 12);
    *out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    *out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    *out += static_cast<char>(0xF0 | c >> 18);
    *out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    *out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    *out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

// One encoded unit at text[*at] (a surrogate counts as one); moves *at on by at least one
// byte. kBad for a malformed byte.
uint32_t take_unit(std::string_view text, size_t* at) {
  auto byte = [&](size_t i) -> uint32_t { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  auto continues = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  size_t i = *at;
  uint32_t b = byte(i);
  if (b < 0x80) {
    *at = i + 1;
    return b;
  }
  if ((b & 0xE0) == 0xC0 && continues(i + 1)) {
    uint32_t c = (b & 0x1F) << 6 | (byte(i + 1) & 0x3F);
    *at = i + 2;
    return c >= 0x80 || c == 0 ? c : kBad;
  }
  if ((b & 0xF0) == 0xE0 && continues(i + 1) && continues(i + 2)) {
    uint32_t c = (b & 0x0F) << 12 | (byte(i + 1) & 0x3F) << 6 | (byte(i + 2) & 0x3F);
    *at = i + 3;
    return c >= 0x800 ? c : kBad;
  }
  if ((b & 0xF8) == 0xF0 && continues(i + 1) && continues(i + 2) && continues(i + 3)) {
    uint32_t c = (b & 0x07) << 18 | (byte(i + 1) & 0x3F) << 12 | (byte(i + 2) & 0x3F) << 6 | (byte(i + 3) & 0x3F);
    *at = i + 4;
    return c >= 0x10000 && c < 0x110000 ? c : kBad;
  }
  *at = i + 1;
  return kBad;
}

const char* primitive(char code) {
  switch (code) {
    case 'B': return "byte";
    case 'C': return "char";
    case 'D': return "double";
    case 'F': return "float";
    case 'I': return "int";
    case 'J': return "long";
    case 'S': return "short";
    case 'Z': return "boolean";
    case 'V': return "void";
    default: return nullptr;
  }
}

std::string dots(std::string_view name) {
  std::string out = utf8_from_modified(name);
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == '/' && out.compare(i, 3, "/0x") != 0) out[i] = '.';
  }
  // A hidden class: `+` in the VM, `/` in Class.getName().
  size_t plus = out.rfind("+0x");
  if (plus != std::string::npos && plus + 3 < out.size() &&
      out.find_first_not_of("0123456789abcdef", plus + 3) == std::string::npos) {
    out[plus] = '/';
  }
  return out;
}

}  // namespace

std::string utf8_from_modified(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    uint32_t c = take_unit(text, &at);
    if (c >= 0xD800 && c < 0xDC00) {
      size_t after = at;
      uint32_t low = after < text.size() ? take_unit(text, &after) : 0;
      if (low >= 0xDC00 && low < 0xE000) {
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        at = after;
      } else {
        c = kBad;
      }
    } else if (c >= 0xDC00 && c < 0xE000) {
      c = kBad;
    }
    c == 0 ? void(out += "\\0") : append_utf8(&out, c);
  }
  return out;
}

std::string dotted_class_name(std::string_view vm_name) {
  return !vm_name.empty() && vm_name[0] == '[' ? type_of_descriptor(vm_name) : dots(vm_name);
}

std::string type_of_descriptor(std::string_view descriptor) {
  size_t depth = 0;
  while (depth < descriptor.size() && descriptor[depth] == '[') ++depth;
  std::string_view element = descriptor.substr(depth);
  std::string out;
  if (element.size() == 1 && primitive(element[0]) != nullptr) {
    out = primitive(element[0]);
  } else if (element.size() > 2 && element.front() == 'L' && element.back() == ';') {
    out = dots(element.substr(1, element.size() - 2));
  } else {
    out = dots(element);
  }
  for (size_t i = 0; i < depth; ++i) out += "[]";
  return out;
}

}  // namespace classaccess
