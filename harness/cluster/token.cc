// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cluster/token.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cstdint>

namespace bx::harness {

std::string make_token() {
  std::array<std::uint8_t, kTokenBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  std::string token;
  for (const std::uint8_t byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

bool same_token(std::string_view expected, std::string_view shown) noexcept {
  if (expected.size() != 2 * kTokenBytes || shown.size() != expected.size()) return false;
  volatile unsigned different = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    different = different | static_cast<unsigned>(static_cast<unsigned char>(expected[i]) ^
                                                  static_cast<unsigned char>(shown[i]));
  }
  return different == 0;
}

}  // namespace bx::harness
