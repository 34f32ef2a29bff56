// SPDX-License-Identifier: BSD-3-Clause
// Every file of every corpus through its fuzz function, in a build without libFuzzer.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <vector>

#include "tests/fuzz/targets.h"

namespace bx::fuzz {
namespace {

struct Target {
  const char* name;
  void (*function)(std::span<const std::byte>);
};

void PrintTo(const Target& target, std::ostream* out) {
  *out << target.name;
}

std::vector<std::byte> contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> raw((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(raw.size());
  std::ranges::transform(raw, bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

class Replay : public ::testing::TestWithParam<Target> {};

TEST_P(Replay, corpus__passes) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(BX_FUZZ_CORPUS) / GetParam().name)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  ASSERT_FALSE(files.empty());
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename());
    const auto bytes = contents(file);
    GetParam().function(bytes);
    // Cut short as well: parsers fail at their ends.
    for (std::size_t size = 0; size < std::min<std::size_t>(bytes.size(), 256); ++size) {
      GetParam().function(std::span(bytes).first(size));
    }
  }
}

#define BX_FUZZ_ENTRY(name) Target{#name, &fuzz_##name},
INSTANTIATE_TEST_SUITE_P(Targets, Replay, ::testing::ValuesIn({BX_FUZZ_TARGETS(BX_FUZZ_ENTRY)}),
                         [](const auto& param) { return std::string(param.param.name); });
#undef BX_FUZZ_ENTRY

}  // namespace
}  // namespace bx::fuzz
