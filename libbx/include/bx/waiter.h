// SPDX-License-Identifier: BSD-3-Clause
// What a coroutine that waits for the worker leaves with it: base of awaiters. One that is destroyed no
// longer waits.
#pragma once

#include <coroutine>

#include "libbx/base/intrusive_list.h"
#include "libbx/base/result.h"

namespace bx {

namespace engine {
class Worker;
}

class Waiter : public ListHook<> {
 public:
  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

 protected:
  ~Waiter() { unlink(); }
  Result<> result_;  // set before it is resumed
  std::coroutine_handle<> awaiting_;

 private:
  friend class engine::Worker;
};

}  // namespace bx
