// SPDX-License-Identifier: BSD-3-Clause
// A child process must not take registered pages away from under the device. Linux from 5.12 on copies such
// pages for the child. For older ones libibverbs hides every registered page from children
// (ibv_fork_init(3)), whole pages, so that a child can miss neighbours on the heap; that is wanted only where
// nothing better is to be had.
#pragma once

#include <string_view>

namespace bx::verbs {

// By the release as uname(2) gives it, "6.1.0-57-amd64"; false if it cannot be read.
bool copies_registered_pages(std::string_view kernel_release) noexcept;
void protect_from_fork() noexcept;

}  // namespace bx::verbs
