// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/native/socket_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

namespace bx::native {

std::optional<SocketAddress> SocketAddress::parse(const std::string& text, std::uint16_t port) {
  SocketAddress address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage_);
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    return address;
  }
  address = {};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage_);
  if (::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    return address;
  }
  return std::nullopt;
}

socklen_t SocketAddress::size() const noexcept {
  return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

fabric::Gid SocketAddress::gid() const noexcept {
  fabric::Gid gid{};
  if (family() == AF_INET) {
    gid[10] = gid[11] = 0xff;
    std::memcpy(gid.data() + 12, &reinterpret_cast<const sockaddr_in&>(storage_).sin_addr, 4);
  } else {
    std::memcpy(gid.data(), &reinterpret_cast<const sockaddr_in6&>(storage_).sin6_addr, 16);
  }
  return gid;
}

}  // namespace bx::native
