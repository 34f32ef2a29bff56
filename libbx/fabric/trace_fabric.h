// SPDX-License-Identifier: BSD-3-Clause
// Any fabric, with a record of every call and every completion: for a post-mortem, and to prove that two runs
// were the same. It changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "libbx/fabric/decorator.h"
#include "libbx/fabric/trace_log.h"

namespace bx::fabric {

class TraceFabric final : public FabricDecorator {
 public:
  static constexpr std::size_t kDefaultCapacity = std::size_t{1} << 16U;

  explicit TraceFabric(std::unique_ptr<Fabric> inner, std::size_t capacity = kDefaultCapacity);
  [[nodiscard]] const TraceLog& log() const noexcept { return log_; }

 protected:
  std::unique_ptr<Host> decorate_host(std::unique_ptr<Host> inner) override;

 private:
  TraceLog log_;
  std::uint16_t hosts_ = 0;
};

}  // namespace bx::fabric
