// SPDX-License-Identifier: BSD-3-Clause
// An IPv4 or IPv6 address with a port, as sockets take it, and as the RoCE v2 GID it corresponds to.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "libbx/fabric/types.h"

namespace bx::native {

class SocketAddress {
 public:
  // "10.0.0.1" or "fd00::1"; nothing if it is neither.
  static std::optional<SocketAddress> parse(const std::string& text, std::uint16_t port = 0);

  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  [[nodiscard]] socklen_t size() const noexcept;
  [[nodiscard]] int family() const noexcept { return storage_.ss_family; }
  // The IPv6 address, or ::ffff:a.b.c.d (RoCE v2, annex A17.4.5 of the InfiniBand specification).
  [[nodiscard]] fabric::Gid gid() const noexcept;

 private:
  sockaddr_storage storage_{};
};

}  // namespace bx::native
