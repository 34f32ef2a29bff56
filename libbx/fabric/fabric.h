// SPDX-License-Identifier: BSD-3-Clause
// A Fabric is a network that opens hosts; a Host is everything one machine offers to one worker. Both are
// handed to constructors: there is no global one.
#pragma once

#include <memory>
#include <string_view>

#include "libbx/base/prng.h"
#include "libbx/base/result.h"
#include "libbx/fabric/device.h"
#include "libbx/fabric/reactor.h"
#include "libbx/fabric/stream.h"

namespace bx::fabric {

// Must outlive everything made from it; the Fabric must outlive its hosts.
class Host {
 public:
  virtual ~Host() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  virtual Reactor& reactor() noexcept = 0;
  virtual Device& device() noexcept = 0;
  virtual StreamNetwork& streams() noexcept = 0;
  virtual Prng& prng() noexcept = 0;
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;  // "sim", "loopback", ...
  // Errors: unreachable (no such host in this fabric), exhausted (already open).
  virtual Result<std::unique_ptr<Host>> open_host(std::string_view host) = 0;
};

}  // namespace bx::fabric
