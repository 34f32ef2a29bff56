// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/log.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace bx {
namespace {

bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view(".:-_/#").find(c) != std::string_view::npos;
}

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
  return level == LogLevel::error ? "error" : "dump";
}

LogLine::LogLine(LogLevel level) noexcept {
  put("bx: ");
  put(to_string(level));
}

void LogLine::put(std::string_view text) noexcept {
  const std::size_t count = std::min(text.size(), text_.size() - size_);
  std::copy_n(text.begin(), count, text_.begin() + static_cast<std::ptrdiff_t>(size_));
  size_ += count;
}

LogLine& LogLine::nest(int depth, std::string_view object) noexcept {
  for (int i = 0; i < depth; ++i) put("  ");
  put(" ");
  put(object);
  return *this;
}

LogLine& LogLine::add(std::string_view key, std::string_view value) noexcept {
  put(" ");
  put(key);
  put("=");
  const bool plain = !value.empty() && std::all_of(value.begin(), value.end(), is_plain);
  if (plain) {
    put(value);
    return *this;
  }
  put("\"");
  for (const char c : value) {
    const bool harmless = c >= ' ' && c != '"' && c != '\\' && c != '\x7f';
    put(harmless ? std::string_view(&c, 1) : "?");
  }
  put("\"");
  return *this;
}

LogLine& LogLine::add(std::string_view key, std::uint64_t value) noexcept {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return add(key, std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
}

bool LogLimit::admit(Instant now, std::uint64_t& suppressed) noexcept {
  const auto earned = static_cast<std::uint64_t>(std::max<std::int64_t>(0, (now - refilled_) / kEvery));
  if (earned > 0) {
    left_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(kBurst, left_ + earned));
    refilled_ = now;
  }
  if (left_ == 0) {
    ++suppressed_;
    return false;
  }
  --left_;
  suppressed = suppressed_;
  suppressed_ = 0;
  return true;
}

void StderrLog::line(LogLevel /*level*/, std::string_view line) noexcept {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace bx
