// SPDX-License-Identifier: BSD-3-Clause
// fabric::StreamNetwork over kernel TCP. A host listens at its own address and connects from it, so that
// several hosts can live on one machine; names are looked up in the fabric's table, and an address is its own
// name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libbx/fabric/stream.h"
#include "libbx/providers/native/native_loop.h"
#include "libbx/providers/native/native_reactor.h"
#include "libbx/providers/native/socket_address.h"

namespace bx::native {

struct HostEntry {
  std::string name;
  std::string address;  // IPv4 or IPv6
};

// The hosts of a fabric by name.
class HostTable {
 public:
  explicit HostTable(std::vector<HostEntry> entries) : entries_(std::move(entries)) {}
  [[nodiscard]] const HostEntry* find(std::string_view name) const noexcept;
  // Of a host, or of the address that `name` is; nothing if it is neither.
  [[nodiscard]] std::optional<SocketAddress> address_of(std::string_view name, std::uint16_t port) const;

 private:
  std::vector<HostEntry> entries_;
};

class TcpStreams final : public fabric::StreamNetwork {
 public:
  static constexpr int kBacklog = 4096;

  TcpStreams(NativeLoop& loop, NativeReactor& reactor, const HostTable& hosts, std::string address)
      : loop_(loop), reactor_(reactor), hosts_(hosts), address_(std::move(address)) {}

  // Port 0 takes a free one. Errors: exhausted (taken, or no file descriptor), invalid_argument (the address
  // is none of this machine's, or the port needs a privilege).
  Result<std::unique_ptr<fabric::Listener>> listen(std::uint16_t port,
                                                   fabric::StreamAcceptor& acceptor) override;
  // Errors: unreachable (unknown name, no route), exhausted (file descriptors, ports).
  Result<std::unique_ptr<fabric::Stream>> connect(std::string_view host, std::uint16_t port,
                                                  fabric::StreamEvents& events) override;

 private:
  NativeLoop& loop_;
  NativeReactor& reactor_;
  const HostTable& hosts_;
  std::string address_;
};

}  // namespace bx::native
