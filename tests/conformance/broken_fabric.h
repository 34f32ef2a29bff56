// SPDX-License-Identifier: BSD-3-Clause
// A good fabric, broken in one way.
#pragma once

#include <memory>
#include <vector>

#include "libbx/fabric/decorator.h"
#include "tests/conformance/breakage.h"

namespace bx::conformance {

class BrokenFabric final : public fabric::FabricDecorator {
 public:
  BrokenFabric(std::unique_ptr<fabric::Fabric> inner, Breakage breakage)
      : FabricDecorator(std::move(inner)), breakage_(breakage) {}

 protected:
  std::unique_ptr<fabric::Host> decorate_host(std::unique_ptr<fabric::Host> inner) override;

 private:
  Breakage breakage_;
};

}  // namespace bx::conformance
