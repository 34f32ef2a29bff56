// SPDX-License-Identifier: GPL-2.0-only
// The secret of one run: whoever shows it is one of the run's own processes. Handed to an agent on its
// standard input, never on a command line, where every user of the machine could read it.
#pragma once

#include <string>
#include <string_view>

namespace bx::harness {

inline constexpr std::size_t kTokenBytes = 32;  // of randomness; twice as many hexadecimal digits

// From the kernel's generator. Empty if it gives nothing.
std::string make_token();

// Takes as long whatever differs, so that a guess learns nothing from how soon it was refused.
bool same_token(std::string_view expected, std::string_view shown) noexcept;

}  // namespace bx::harness
