#include "agent/calls/java/constant_pool.h"

namespace classaccess {
namespace {

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

void append_u2(std::string* to, uint16_t value) {
  *to += static_cast<char>(value >> 8);
  *to += static_cast<char>(value);
}

}  // namespace

bool ConstantPool::read(ByteReader* reader) {
  count_ = reader->u2();
  if (!reader->ok() || count_ == 0) return false;
  entries_.resize(count_);
  ByteReader start = *reader;
  const size_t begin = reader->at();
  for (uint32_t index = 1; index < count_; ++index) {
    Entry& entry = entries_[index];
    entry.tag = reader->u1();
    switch (entry.tag) {
      case kUtf8: entry.body = reader->take(reader->u2()); break;
      case kInteger:
      case kFloat:
      case kField:
      case kMethod:
      case kInterfaceMethod:
      case kNameAndType:
      case kDynamic:
      case kInvokeDynamic: entry.body = reader->take(4); break;
      case kLong:
      case kDouble:
        entry.body = reader->take(8);
        ++index;  // takes two places
        break;
      case kClass:
      case kString:
      case kMethodType:
      case kModule:
      case kPackage: entry.body = reader->take(2); break;
      case kMethodHandle: entry.body = reader->take(3); break;
      default: return false;
    }
    if (!reader->ok()) return false;
  }
  original_ = start.take(reader->at() - begin);
  return true;
}

uint16_t ConstantPool::number_at(uint16_t index, uint8_t tag, size_t at) const {
  if (index >= entries_.size() || entries_[index].tag != tag) return 0;
  Bytes body = entries_[index].body;
  return static_cast<uint16_t>(body[at] << 8 | body[at + 1]);
}

std::string_view ConstantPool::utf8(uint16_t index) const {
  return index < entries_.size() && entries_[index].tag == kUtf8 ? text_of(entries_[index].body) : std::string_view();
}

std::string_view ConstantPool::class_name(uint16_t index) const { return utf8(number_at(index, kClass, 0)); }

std::string_view ConstantPool::method_name(uint16_t index) const {
  uint16_t name_and_type = number_at(index, kMethod, 2);
  if (name_and_type == 0) name_and_type = number_at(index, kInterfaceMethod, 2);
  return utf8(number_at(name_and_type, kNameAndType, 0));
}

uint16_t ConstantPool::add(const std::string& entry) {
  auto [at, is_new] = index_of_.try_emplace(entry, static_cast<uint16_t>(count_));
  if (!is_new) return at->second;
  constexpr uint32_t kMaxEntries = 65535;
  if (count_ >= kMaxEntries) {
    full_ = true;
    index_of_.erase(at);
    return 0;
  }
  ++count_;
  added_.put(std::string_view(entry));
  return at->second;
}

uint16_t ConstantPool::add_utf8(std::string_view text) {
  std::string entry(1, kUtf8);
  append_u2(&entry, static_cast<uint16_t>(text.size()));
  return add(entry.append(text));
}

uint16_t ConstantPool::add_class(std::string_view name) {
  std::string entry(1, kClass);
  append_u2(&entry, add_utf8(name));
  return add(entry);
}

uint16_t ConstantPool::add_integer(int32_t value) {
  std::string entry(1, kInteger);
  append_u2(&entry, static_cast<uint16_t>(static_cast<uint32_t>(value) >> 16));
  append_u2(&entry, static_cast<uint16_t>(value));
  return add(entry);
}

uint16_t ConstantPool::add_method(std::string_view class_name, std::string_view name, std::string_view descriptor) {
  std::string name_and_type(1, kNameAndType);
  append_u2(&name_and_type, add_utf8(name));
  append_u2(&name_and_type, add_utf8(descriptor));
  std::string entry(1, kMethod);
  append_u2(&entry, add_class(class_name));
  append_u2(&entry, add(name_and_type));
  return add(entry);
}

void ConstantPool::write(ByteWriter* out) const {
  out->u2(count_);
  out->put(original_);
  out->put(added_.bytes());
}

}  // namespace classaccess
