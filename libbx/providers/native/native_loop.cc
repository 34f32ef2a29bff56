// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/native/native_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "libbx/base/check.h"
#include "libbx/providers/native/native_reactor.h"

namespace bx::native {
namespace {

std::int64_t clock_ns(clockid_t clock) noexcept {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Result<std::unique_ptr<NativeLoop>> NativeLoop::create(const WaitConfig& wait) {
  const int epoll_fd = ::epoll_create1(EPOLL_CLOEXEC);
  const int wake_fd = epoll_fd < 0 ? -1 : ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd < 0) {
    const int error = errno;
    if (epoll_fd >= 0) ::close(epoll_fd);
    return fail(ErrorCode::exhausted, ErrorScope::device,
                "no file descriptor for the run loop: raise ulimit -n", error);
  }
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake_fd, &event);
  return std::unique_ptr<NativeLoop>(new NativeLoop(wait, epoll_fd, wake_fd));
}

NativeLoop::NativeLoop(const WaitConfig& wait, int epoll_fd, int wake_fd)
    : wait_(wait), epoll_fd_(epoll_fd), wake_fd_(wake_fd), began_ns_(clock_ns(CLOCK_MONOTONIC)) {}

NativeLoop::~NativeLoop() {
  BX_CHECK(std::ranges::all_of(reactors_, [](const NativeReactor* reactor) { return reactor == nullptr; }),
           "a run loop was destroyed before its reactors");
  ::close(wake_fd_);
  ::close(epoll_fd_);
}

Instant NativeLoop::read_clock() const noexcept {
  return Instant(Duration(clock_ns(CLOCK_MONOTONIC) - began_ns_));
}

Duration NativeLoop::thread_cpu_time() noexcept {
  return Duration(clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

bool NativeLoop::watch(int fd, FdListener& listener) noexcept {
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.ptr = &listener}};
  return ::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void NativeLoop::forget(int fd, FdListener& listener) noexcept {
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  for (epoll_event& event : batch_) {
    if (event.data.ptr == &listener) event.data.ptr = nullptr;
  }
}

void NativeLoop::remove(NativeReactor& reactor) noexcept {
  std::ranges::replace(reactors_, &reactor, nullptr);
}

void NativeLoop::interrupt() noexcept {
  if (!sleeping_.load()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_, &one, sizeof one);  // full: it is awake anyway
}

fabric::RunEnd NativeLoop::run(Instant limit) noexcept {
  BX_CHECK(!in_callbacks_, "run() from inside a callback");
  stopped_ = false;
  for (;;) {
    now_ = read_clock();
    in_callbacks_ = true;
    bool worked = run_reactors();
    worked = look_at_queues() || worked;
    if (now_ - sockets_ >= kSocketInterval) worked = look_at_sockets(Duration::zero()) || worked;
    in_callbacks_ = false;
    if (stopped_) return fabric::RunEnd::stopped;
    if (worked) active_ = now_;
    if (now_ >= limit) return fabric::RunEnd::limit;
    if (worked || wait_.mode == WaitMode::polled) continue;
    if (wait_.mode == WaitMode::adaptive && now_ - active_ < wait_.spin) continue;
    in_callbacks_ = true;
    if (sleep(limit)) active_ = now_;
    in_callbacks_ = false;
  }
}

bool NativeLoop::run_reactors() noexcept {
  bool worked = false;
  for (std::size_t i = 0; i < reactors_.size(); ++i) {
    if (reactors_[i] != nullptr) worked = reactors_[i]->dispatch(now_) || worked;
  }
  std::erase(reactors_, nullptr);
  return worked;
}

// A queue that was looked at in vain goes to the end; one that its waker arms again is looked at in the next
// iteration.
bool NativeLoop::look_at_queues() noexcept {
  bool found = false;
  IntrusiveList<ArmedQueue> looking;
  while (ArmedQueue* queue = armed_.pop_front()) looking.push_back(*queue);
  while (ArmedQueue* queue = looking.pop_front()) {
    if (queue->look()) {
      found = true;
    } else {
      arm(*queue);
    }
  }
  return found;
}

bool NativeLoop::look_at_sockets(Duration timeout) noexcept {
  const auto ns = timeout.count();
  const timespec wait{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  const int count = ::epoll_pwait2(epoll_fd_, events_.data(), kEventBatch, &wait, nullptr);
  now_ = read_clock();
  sockets_ = now_;
  batch_ = std::span(events_).first(static_cast<std::size_t>(std::max(count, 0)));
  bool worked = false;
  while (!batch_.empty()) {
    const epoll_event event = batch_.front();
    batch_ = batch_.subspan(1);
    if (event.data.ptr != nullptr) {
      static_cast<FdListener*>(event.data.ptr)->on_ready(event.events);
      worked = true;
    }
  }
  return worked;
}

bool NativeLoop::sleep(Instant limit) noexcept {
  for (ArmedQueue* queue = armed_.front(); queue != nullptr; queue = armed_.next(*queue)) {
    queue->request_interrupt();
  }
  if (look_at_queues()) return true;
  sleeping_ = true;
  Instant until = limit;
  bool woken = false;
  for (const NativeReactor* reactor : reactors_) {
    if (reactor == nullptr) continue;
    until = std::min(until, reactor->next_timer());
    woken = woken || reactor->woken();
  }
  constexpr Duration kLongest = std::chrono::hours(1);
  const Duration wait = woken ? Duration::zero() : std::clamp(until - now_, Duration::zero(), kLongest);
  const bool worked = look_at_sockets(wait);
  sleeping_ = false;
  std::uint64_t rung = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_fd_, &rung, sizeof rung);
  return worked;
}

}  // namespace bx::native
