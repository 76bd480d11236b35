#include "agent/store/classify.h"

#include <algorithm>

#include "agent/heap/code_lookup.h"

namespace classaccess {
namespace {

// Walks an access from its first to its last byte; offsets are from the object's start.
class Pieces {
 public:
  Pieces(const AccessRecord& record, std::vector<AccessRow>* out)
      : record_(record),
        at_(static_cast<int64_t>(record.address - record.object)),
        end_(at_ + record.size),
        out_(out) {}

  int64_t at() const { return at_; }
  bool done() const { return at_ >= end_; }

  // A row for the access's bytes before `end`.
  void take_until(int64_t end, Part part, uint32_t field_id = 0) {
    end = std::min(end, end_);
    if (end <= at_) return;
    AccessRow row;
    row.class_id = part == Part::kUnknown ? 0 : record_.class_id;
    row.field_id = field_id;
    row.part = part;
    row.address = record_.object + static_cast<uint64_t>(at_);
    row.size = static_cast<uint32_t>(end - at_);
    out_->push_back(row);
    at_ = end;
  }

  // Rows for each of `fields` (sorted by offset) before `end`, gaps as padding.
  void take_fields(const FieldInfo* const* fields, uint32_t count, Part part, int64_t end) {
    auto first = std::partition_point(fields, fields + count, [this](const FieldInfo* f) {
      return static_cast<int64_t>(f->offset) + f->size <= at_;
    });
    for (; first != fields + count && !done() && (*first)->offset < end; ++first) {
      take_until((*first)->offset, Part::kPadding);
      take_until(static_cast<int64_t>((*first)->offset) + (*first)->size, part, (*first)->id);
    }
    take_until(end, Part::kPadding);
  }

 private:
  const AccessRecord& record_;
  int64_t at_, end_;
  std::vector<AccessRow>* out_;
};

// Mark word, Klass word, array length, up to the first byte of the body.
// Sources: share/oops/markWord.hpp, oop.hpp, arrayOop.hpp, through VmLayout.
void take_header(Pieces* pieces, const ClassInfo& klass, Op op, const VmLayout& layout) {
  // With compact headers the Klass is the upper 22 bits of the mark word, and a load of its
  // upper half is made for nothing else.
  if (layout.compact_headers && op == Op::kLoad && pieces->at() >= 4) pieces->take_until(8, Part::kKlass);
  pieces->take_until(8, Part::kMark);
  if (!layout.compact_headers) {
    pieces->take_until(layout.klass_offset, Part::kPadding);
    pieces->take_until(layout.klass_offset + (layout.compressed_class_pointers ? 4 : 8), Part::kKlass);
  }
  if (is_array_layout(klass.layout_helper)) {
    pieces->take_until(layout.array_length_offset, Part::kPadding);
    // The program cannot write a length: such a store creates the array.
    pieces->take_until(layout.array_length_offset + 4, op == Op::kStore ? Part::kInit : Part::kLength);
    pieces->take_until(array_header_bytes(klass.layout_helper), Part::kPadding);
  }
}

}  // namespace

void classify(const AccessRecord& record, const ClassInfo* klass, const FieldSet* fields, uint8_t bytecode,
              const VmLayout& layout, std::vector<AccessRow>* out) {
  constexpr int64_t kNoEnd = INT64_MAX;
  Pieces pieces(record, out);
  if (klass == nullptr || record.class_id == 0) {
    pieces.take_until(kNoEnd, Part::kUnknown);
    if (out->empty()) out->push_back({0, 0, Part::kUnknown, record.address, record.size});
    return;
  }
  auto whole = [&](Part part) { out->push_back({record.class_id, 0, part, record.address, record.size}); };
  if (record.kind == RecordKind::kKlassStore || (record.op == Op::kStore && creates_object(bytecode))) {
    return whole(Part::kInit);
  }
  if ((record.flags & kFlagNullCheck) != 0) return whole(Part::kNullCheck);
  if (record.size == 0) return whole(Part::kPadding);

  const int64_t end = record.extent != 0 ? static_cast<int64_t>(record.extent) : kNoEnd;
  pieces.take_until(0, Part::kUnknown);
  take_header(&pieces, *klass, record.op, layout);
  if (pieces.done()) return;
  if ((record.flags & kFlagMirror) != 0) {
    if (fields == nullptr) {
      pieces.take_until(end, Part::kInit);
    } else {
      pieces.take_fields(fields->statics, fields->static_count, Part::kStatic, end);
    }
  } else if (is_array_layout(klass->layout_helper)) {
    pieces.take_until(end, Part::kElement);
  } else if (fields == nullptr) {
    pieces.take_until(end, record.op == Op::kStore ? Part::kInit : Part::kField);
  } else {
    pieces.take_fields(fields->instance, fields->instance_count, Part::kField, end);
  }
  // Vector code may load more than it uses; what lies behind the object it did not ask for.
  pieces.take_until(kNoEnd, record.op == Op::kLoad ? Part::kPadding : Part::kUnknown);
}

}  // namespace classaccess
