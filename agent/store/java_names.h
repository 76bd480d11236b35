// Names as the VM has them -> names as the database shows them.
// Context: writer thread. Pure functions; the result is always valid UTF-8 without NUL.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace classaccess {

// Modified UTF-8 (JVM specification 4.4.7) -> UTF-8: surrogate pairs become one 4-byte
// character, lone surrogates and malformed bytes U+FFFD, an embedded NUL (C0 80) the two
// characters \0. Ordinary UTF-8 passes unchanged.
std::string utf8_from_modified(std::string_view text);

// `com/acme/Order` -> `com.acme.Order`, `[[I` -> `int[][]`, `[Lcom/acme/Order;` ->
// `com.acme.Order[]`. The suffix of a hidden class is `/0x...`, as in Class.getName().
std::string dotted_class_name(std::string_view vm_name);

// A field descriptor as a type: `I` -> `int`, `Ljava/lang/String;` -> `java.lang.String`.
std::string type_of_descriptor(std::string_view descriptor);

}  // namespace classaccess
