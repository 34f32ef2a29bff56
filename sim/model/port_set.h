// SPDX-License-Identifier: GPL-2.0-only
// A set of the ports of a switch, walked in ascending order.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace bx::sim {

class PortSet {
 public:
  explicit PortSet(std::uint16_t ports) : more_((ports + 63U) / 64U - 1U, 0) {}  // one or more

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  void insert(std::uint16_t port) noexcept {
    std::uint64_t& word = word_of(port / 64U);
    const std::uint64_t bit = std::uint64_t{1} << (port % 64U);
    size_ += (word & bit) == 0 ? 1 : 0;
    word |= bit;
  }
  void erase(std::uint16_t port) noexcept {
    std::uint64_t& word = word_of(port / 64U);
    const std::uint64_t bit = std::uint64_t{1} << (port % 64U);
    size_ -= (word & bit) != 0 ? 1 : 0;
    word &= ~bit;
  }
  // `visit(port)` may erase that port.
  template <class Visit>
  void for_each(const Visit& visit) {
    for (std::size_t w = 0; w <= more_.size(); ++w) {
      for (std::uint64_t bits = word_of(w); bits != 0; bits &= bits - 1) {
        visit(static_cast<std::uint16_t>(w * 64 + static_cast<unsigned>(std::countr_zero(bits))));
      }
    }
  }

 private:
  [[nodiscard]] std::uint64_t& word_of(std::size_t index) noexcept {
    return index == 0 ? first_ : more_[index - 1];
  }
  std::uint32_t size_ = 0;
  std::uint64_t first_ = 0;          // of the first 64 ports
  std::vector<std::uint64_t> more_;  // of the others
};

}  // namespace bx::sim
