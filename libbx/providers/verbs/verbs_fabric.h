// SPDX-License-Identifier: BSD-3-Clause
// The fabric of real machines: RDMA devices through libibverbs, kernel TCP for handshakes, the thread's
// clock. A process opens the host that it is; one that plays several opens several, and their reactors share
// the thread.
//
//   VerbsFabric: table of hosts (name, address), NativeLoop
//        | open_host(name): the port whose GID is the host's address
//        v
//   VerbsHost: NativeReactor, VerbsDevice, TcpStreams, Prng
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libbx/fabric/fabric.h"
#include "libbx/providers/native/native_loop.h"
#include "libbx/providers/native/tcp_streams.h"

namespace bx::verbs {

struct VerbsConfig {
  std::vector<native::HostEntry> hosts{};  // of the whole fabric
  std::string device{};  // of the hosts opened here; empty: whichever has the host's address
  native::WaitConfig wait{};
  std::uint8_t service_level = 0;
  std::uint64_t seed = 1;  // of first PSNs and each host's Prng
};

class VerbsFabric final : public fabric::Fabric {
 public:
  // Errors: exhausted (file descriptors).
  static Result<std::unique_ptr<VerbsFabric>> create(const VerbsConfig& config);
  ~VerbsFabric() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "verbs"; }
  // Errors: unreachable, with what to do (unknown name, no device or GID with its address, port down);
  // exhausted (open already); device.
  Result<std::unique_ptr<fabric::Host>> open_host(std::string_view host) override;

 private:
  VerbsFabric(const VerbsConfig& config, std::unique_ptr<native::NativeLoop> loop);

  VerbsConfig config_;
  native::HostTable hosts_;
  Prng prng_;
  std::unique_ptr<native::NativeLoop> loop_;
  std::vector<std::string> open_;  // names of the hosts that are
};

}  // namespace bx::verbs
