// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "harness/cli/commands.h"

namespace bx::harness {
namespace {

constexpr const char* kDefaultKnobFile = "bx.conf";

}  // namespace

std::vector<Assignment> read_override_options(const OverrideOptions& options, Diagnostics& diagnostics) {
  OverrideSources sources;
  sources.knob_file = options.knob_file;
  if (sources.knob_file.empty() && std::filesystem::exists(kDefaultKnobFile)) {
    sources.knob_file = kDefaultKnobFile;
    fmt::print(stderr, "bx: reading knobs from ./{}\n", kDefaultKnobFile);
  }
  sources.sets = options.sets;
  sources.seed = options.seed;
  std::vector<std::string> warnings;
  std::vector<Assignment> assignments = read_overrides(sources, diagnostics, warnings);
  for (const std::string& warning : warnings) fmt::print(stderr, "bx: warning: {}\n", warning);
  return assignments;
}

int usage_error(const Diagnostics& diagnostics) {
  fmt::print(stderr, "{}", diagnostics.text());
  return kExitUsage;
}

void print_warnings(const Scenario& scenario) {
  for (const std::string& warning : scenario.warnings) fmt::print(stderr, "{}\n", warning);
}

bool output_is_utf8() {
  if (::isatty(STDOUT_FILENO) == 0) return false;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string locale = value;
    std::ranges::transform(locale, locale.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

std::size_t output_width() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0;
  return known ? std::clamp<std::size_t>(size.ws_col, 80, 200) : 100;
}

}  // namespace bx::harness
