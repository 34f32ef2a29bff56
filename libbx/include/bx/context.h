// SPDX-License-Identifier: BSD-3-Clause
// Everything of the library on one host: made from a fabric::Host and a Config, owns the worker.
//
//   auto context = bx::Context::create(host, config);
//   if (!context) return report(context.error());
//   bx::block_on((*context)->worker(), my_application((*context)->worker()));
#pragma once

#include <bx/config.h>
#include <bx/preflight.h>
#include <bx/worker.h>

#include <memory>

#include "libbx/base/result.h"
#include "libbx/fabric/fabric.h"

namespace bx {

class Context {
 public:
  // Checks the config against itself and the device before anything is made. Errors: invalid_argument (a knob
  // out of its range, or knobs that contradict each other; detail names it), exhausted (the device's limits
  // are too small), device (registration or creation failed).
  static Result<std::unique_ptr<Context>> create(fabric::Host& host, const Config& config);
  // What create() would find of what the config and the limits of device and operating system refuse or warn
  // of, with numbers and remedies; nothing is made. Errors come first.
  static Findings preflight(fabric::Host& host, const Config& config);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] Worker worker() noexcept;
  // Warnings of the start: smaller pages than wished for, limits that may be met later.
  [[nodiscard]] const Findings& findings() const noexcept;

 private:
  explicit Context(std::unique_ptr<engine::Worker> worker);
  std::unique_ptr<engine::Worker> worker_;
};

}  // namespace bx
