// SPDX-License-Identifier: BSD-3-Clause
// The one place where a signal reaches the library. A handler gets no argument of ours, so the count it
// raises is the process's; nothing else here is.
#include <bx/worker.h>

#include <csignal>

#include "libbx/engine/worker.h"

namespace bx {
namespace {

std::atomic<std::uint32_t> dumps_asked{0};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "a signal handler must not take a lock");

extern "C" void on_dump_signal(int /*signal*/) {
  dumps_asked.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Result<> dump_on_signal(Worker worker, int signal) {
  struct sigaction action {};
  action.sa_handler = on_dump_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, &action, nullptr) != 0) {
    return fail(ErrorCode::invalid_argument, ErrorScope::operation, "that signal cannot be handled");
  }
  worker.worker_->watch(dumps_asked);
  return {};
}

}  // namespace bx
