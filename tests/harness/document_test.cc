// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/document.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace bx::harness {
namespace {

namespace fs = std::filesystem;

class DocumentFile : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("bx-document-test-" + std::to_string(::getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string file(const std::string& content) {
    const std::string path = (directory_ / "s.toml").string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  // The diagnostic without the path, or "" when the file was read.
  std::string error_of(const std::string& path) {
    Diagnostics diagnostics;
    std::string text;
    if (read_text_file(path, text, diagnostics)) return "";
    return diagnostics.text().substr(path.size());
  }

  fs::path directory_;
};

TEST(document, parse_toml__values_know_kind_and_place) {
  Diagnostics diagnostics;
  const Value root = parse_toml("a = 1\n[t]\n  b = 'x'\nc = [true, 2.5]\nd = 2020-01-01\n", "f", diagnostics);
  ASSERT_TRUE(diagnostics.ok()) << diagnostics.text();
  ASSERT_EQ(root.fields.size(), 2U);
  EXPECT_EQ(root.find("a")->integer, 1);
  const Value& table = *root.find("t");
  EXPECT_EQ(table.find("b")->text, "x");
  EXPECT_EQ(table.fields[0].place, (Place{3, 3}));
  EXPECT_EQ(table.find("b")->place, (Place{3, 7}));
  EXPECT_EQ(table.find("c")->items[0].kind, Value::Kind::flag);
  EXPECT_DOUBLE_EQ(table.find("c")->items[1].real, 2.5);
  EXPECT_EQ(table.find("d")->kind, Value::Kind::time);
  EXPECT_EQ(root.find("missing"), nullptr);
}

TEST(document, parse_toml__a_syntax_error_has_its_place) {
  Diagnostics diagnostics;
  parse_toml("a = 1\nb = \n", "f", diagnostics);
  EXPECT_EQ(diagnostics.text().substr(0, 31), "f:2:5: error: not valid TOML: E");
}

TEST(document, parse_loose_value__toml_where_it_is_and_text_where_not) {
  EXPECT_EQ(parse_loose_value("3").integer, 3);
  EXPECT_TRUE(parse_loose_value("true").flag);
  EXPECT_EQ(parse_loose_value("64KiB").text, "64KiB");
  EXPECT_EQ(parse_loose_value("\"quoted\"").text, "quoted");
  EXPECT_EQ(parse_loose_value("[1, 2]").items.size(), 2U);
  EXPECT_EQ(parse_loose_value("").text, "");
  // A second key must not slip in, and the value stands nowhere.
  EXPECT_EQ(parse_loose_value("1\nb = 2").kind, Value::Kind::text);
  EXPECT_EQ(parse_loose_value("[1]").items[0].place, Place{});
}

TEST_F(DocumentFile, read_text_file__reads_a_text) {
  EXPECT_EQ(error_of(file("name = 'x'\n")), "");
}

TEST_F(DocumentFile, read_text_file__empty) {
  EXPECT_EQ(error_of(file("")), ":1:1: error: is empty\n");
  EXPECT_EQ(error_of(file(" \n\t\r\n")), ":1:1: error: is empty\n");
}

TEST_F(DocumentFile, read_text_file__not_utf8) {
  EXPECT_EQ(error_of(file("name = 'x'\ntitle = '\xe9t\xe9'\n")),
            ":2:10: error: is not UTF-8: byte 0xe9 at offset 20; save the file as UTF-8\n");
}

TEST_F(DocumentFile, read_text_file__binary) {
  EXPECT_EQ(error_of(file(std::string("\x7f"
                                      "ELF\0\0",
                                      6))),
            ":1:5: error: is binary: it contains a zero byte; a scenario is a TOML text\n");
}

TEST_F(DocumentFile, read_text_file__too_long_is_refused_unread) {
  const std::string path = file("x");
  fs::resize_file(path, 100'000'000);  // sparse
  EXPECT_EQ(error_of(path), ": error: is 100000000 bytes long; a scenario has at most 1048576 (1 MiB)\n");
}

TEST_F(DocumentFile, read_text_file__missing_directory_and_device) {
  EXPECT_EQ(error_of("/nonexistent/s.toml"), ": error: cannot be read: No such file or directory\n");
  EXPECT_EQ(error_of(directory_.string()), ": error: is a directory; name a file in it\n");
  EXPECT_EQ(error_of("/dev/null"), ": error: is not a regular file\n");
}

}  // namespace
}  // namespace bx::harness
