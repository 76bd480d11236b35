#include "agent/heap/method_table.h"

#include <gtest/gtest.h>

#include <vector>

#include "agent/heap/line_table.h"
#include "tests/unit/hotspot/fake_vm.h"

namespace classaccess {
namespace {

// Encoders, written from the grammar, for the two variants.
void put_unsigned5(bool excludes_zero, uint32_t value, std::vector<uint8_t>* out) {
  const uint32_t bias = excludes_zero ? 1 : 0, low = 192 - bias;
  for (int i = 0; i < 4 && value >= low; ++i) {
    out->push_back(static_cast<uint8_t>(low + bias + (value - low) % 64));
    value = (value - low) / 64;
  }
  out->push_back(static_cast<uint8_t>(value + bias));
}

uint32_t fold_sign(int32_t value) { return (static_cast<uint32_t>(value) << 1) ^ static_cast<uint32_t>(value >> 31); }

void put_pair(bool excludes_zero, int32_t bci_delta, int32_t line_delta, std::vector<uint8_t>* out) {
  if (bci_delta >= 0 && bci_delta < 31 && line_delta >= 0 && line_delta < 8) {
    out->push_back(static_cast<uint8_t>(bci_delta << 3 | line_delta));
    return;
  }
  out->push_back(0xff);
  put_unsigned5(excludes_zero, fold_sign(bci_delta), out);
  put_unsigned5(excludes_zero, fold_sign(line_delta), out);
}

TEST(Unsigned5, BothVariantsRoundTrip) {
  for (bool excludes_zero : {false, true}) {
    std::vector<uint32_t> values = {0,   1,   63,  64,    190,   191,      192,       193,
                                    254, 255, 256, 12480, 65535, 1u << 24, 0xffffffff};
    for (uint32_t v = 300; v < 4000000; v = v * 3 / 2 + 7) values.push_back(v);
    for (uint32_t value : values) {
      std::vector<uint8_t> bytes;
      put_unsigned5(excludes_zero, value, &bytes);
      ASSERT_LE(bytes.size(), 5u);
      size_t at = 0;
      uint32_t read = 0;
      ASSERT_TRUE(read_unsigned5(
          excludes_zero,
          [&](uint8_t* byte) {
            if (at == bytes.size()) return false;
            *byte = bytes[at++];
            return true;
          },
          &read));
      EXPECT_EQ(value, read);
      EXPECT_EQ(bytes.size(), at);
    }
  }
}

TEST(Unsigned5, KnownBytes) {
  auto read = [](bool excludes_zero, std::vector<uint8_t> bytes) {
    size_t at = 0;
    uint32_t value = 0xdead;
    bool ok = read_unsigned5(
        excludes_zero,
        [&](uint8_t* byte) {
          if (at == bytes.size()) return false;
          *byte = bytes[at++];
          return true;
        },
        &value);
    return ok ? static_cast<int64_t>(value) : -1;
  };
  EXPECT_EQ(0, read(false, {0}));
  EXPECT_EQ(191, read(false, {191}));
  EXPECT_EQ(192, read(false, {192, 0}));
  EXPECT_EQ(0, read(true, {1}));
  EXPECT_EQ(190, read(true, {191}));
  EXPECT_EQ(191, read(true, {192, 1}));
  EXPECT_EQ(-1, read(true, {0}));
  EXPECT_EQ(-1, read(false, {200})) << "cut off";
}

TEST(LineTable, LinesOfBothVariants) {
  struct Entry {
    int32_t bci, line;
  };
  // Backward lines, a bci delta of 32 with line delta 0 (a 0 byte in the 17 variant), large numbers.
  const std::vector<Entry> entries = {{0, 10}, {4, 12}, {36, 12}, {40, 5}, {300, 70000}, {301, 70001}};
  for (bool excludes_zero : {false, true}) {
    std::vector<uint8_t> bytes;
    int32_t bci = 0, line = 0;
    for (const Entry& e : entries) {
      put_pair(excludes_zero, e.bci - bci, e.line - line, &bytes);
      bci = e.bci;
      line = e.line;
    }
    bytes.push_back(0);
    MethodInfo method;
    method.line_table = bytes.data();
    method.line_table_bytes = static_cast<uint32_t>(bytes.size());
    method.unsigned5_excludes_zero = excludes_zero;
    for (const Entry& e : entries) EXPECT_EQ(static_cast<uint32_t>(e.line), MethodTable::line_of(method, e.bci));
    EXPECT_EQ(10u, MethodTable::line_of(method, 3));
    EXPECT_EQ(5u, MethodTable::line_of(method, 299));
    EXPECT_EQ(70001u, MethodTable::line_of(method, 5000));
    EXPECT_EQ(0u, MethodTable::line_of(method, -1));
  }
}

class MethodTableTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(classes_.create(&patterns_, &vm_.layout));
    ASSERT_TRUE(table_.create(&classes_, &vm_.layout));
    holder_ = vm_.make_klass("acme/Order", 24, 0);
  }

  uint64_t make_method(const char* name, const char* signature, uint16_t code_size, std::vector<uint8_t> lines) {
    uint64_t pool = vm_.take(72 + 8 * 3), const_method = vm_.take(56 + code_size + lines.size()), method = vm_.take(88);
    vm_.put(pool + 24, holder_);
    vm_.put(pool + 60, int32_t{3});
    vm_.put(pool + 72 + 8, vm_.symbol(name));
    vm_.put(pool + 72 + 16, vm_.symbol(signature));
    vm_.put(const_method + 8, pool);
    vm_.put(const_method + 28, uint32_t{lines.empty() ? 0u : 1u});
    vm_.put(const_method + 34, code_size);
    vm_.put(const_method + 36, uint16_t{1});
    vm_.put(const_method + 38, uint16_t{2});
    for (size_t i = 0; i < lines.size(); ++i) vm_.put(const_method + 56 + code_size + i, lines[i]);
    vm_.put(method + 8, const_method);
    return method;
  }

  FakeVm vm_;
  ClassPatterns patterns_;
  ClassTable classes_;
  MethodTable table_;
  uint64_t holder_ = 0;
};

TEST_F(MethodTableTest, ReadsAMethod) {
  uint64_t method = make_method("total", "(I)V", 9, {0x07, 0x29, 0});
  MethodInfo* row = table_.find_or_add(method);
  ASSERT_NE(nullptr, row);
  EXPECT_TRUE(row->ready);
  EXPECT_STREQ("total", row->name);
  EXPECT_STREQ("(I)V", row->signature);
  EXPECT_EQ(9u, row->code_size);
  EXPECT_EQ(3u, row->line_table_bytes);
  EXPECT_EQ(7u, MethodTable::line_of(*row, 4));
  EXPECT_EQ(8u, MethodTable::line_of(*row, 5));
  EXPECT_STREQ("acme/Order", classes_.row(row->holder_class_id).name);
  EXPECT_EQ(row, table_.find(method));
  EXPECT_EQ(row, table_.find_or_add(method));
}

TEST_F(MethodTableTest, RefusesWhatIsNoMethod) {
  uint64_t method = make_method("total", "(I)V", 9, {});
  uint64_t const_method, pool;
  std::memcpy(&const_method, reinterpret_cast<void*>(method + 8), 8);
  std::memcpy(&pool, reinterpret_cast<void*>(const_method + 8), 8);
  EXPECT_EQ(nullptr, table_.find_or_add(0));
  EXPECT_EQ(nullptr, table_.find_or_add(FakeVm::kHeap));
  EXPECT_EQ(nullptr, table_.find_or_add(method + 8));
  vm_.put(const_method + 36, uint16_t{3});
  EXPECT_EQ(nullptr, table_.find_or_add(method)) << "name index behind the pool";
  vm_.put(const_method + 36, uint16_t{1});
  vm_.put(pool + 24, holder_ + 8);
  EXPECT_EQ(nullptr, table_.find_or_add(method)) << "the holder is no class";
  vm_.put(pool + 24, holder_);
  EXPECT_NE(nullptr, table_.find_or_add(method));
}

TEST_F(MethodTableTest, ATableWithoutEndIsNotTaken) {
  uint64_t method = make_method("total", "(I)V", 9, std::vector<uint8_t>(70000, 0x09));
  MethodInfo* row = table_.find_or_add(method);
  ASSERT_NE(nullptr, row);
  EXPECT_EQ(nullptr, row->line_table);
  EXPECT_EQ(0u, MethodTable::line_of(*row, 0));
}

TEST_F(MethodTableTest, AReusedAddressIsAnotherMethod) {
  uint64_t method = make_method("first", "()V", 1, {});
  MethodInfo* first = table_.find_or_add(method);
  uint64_t other = make_method("second", "()V", 1, {});
  uint64_t const_method;
  std::memcpy(&const_method, reinterpret_cast<void*>(other + 8), 8);
  vm_.put(method + 8, const_method);
  MethodInfo* second = table_.find_or_add(method);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_NE(first, second);
  EXPECT_STREQ("first", first->name);
  EXPECT_STREQ("second", second->name);
}

}  // namespace
}  // namespace classaccess
