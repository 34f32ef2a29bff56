// SPDX-License-Identifier: GPL-2.0-only
// A set of the ports of a switch, walked in ascending order.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace bx::sim {

class PortSet {
 public:
  explicit PortSet(std::uint16_t ports) : words_((ports + 63U) / 64U, 0) {}

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  void insert(std::uint16_t port) noexcept {
    std::uint64_t& word = words_[port / 64U];
    const std::uint64_t bit = std::uint64_t{1} << (port % 64U);
    size_ += (word & bit) == 0 ? 1 : 0;
    word |= bit;
  }
  void erase(std::uint16_t port) noexcept {
    std::uint64_t& word = words_[port / 64U];
    const std::uint64_t bit = std::uint64_t{1} << (port % 64U);
    size_ -= (word & bit) != 0 ? 1 : 0;
    word &= ~bit;
  }
  // `visit(port)` may erase that port.
  template <class Visit>
  void for_each(const Visit& visit) {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (std::uint64_t bits = words_[w]; bits != 0; bits &= bits - 1) {
        visit(static_cast<std::uint16_t>(w * 64 + static_cast<unsigned>(std::countr_zero(bits))));
      }
    }
  }

 private:
  std::vector<std::uint64_t> words_;
  std::uint32_t size_ = 0;
};

}  // namespace bx::sim
