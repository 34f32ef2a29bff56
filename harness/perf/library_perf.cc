// SPDX-License-Identifier: GPL-2.0-only
#include "harness/perf/library_perf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace bx::harness {
namespace {

constexpr std::uint64_t kSmallRequest = 64;
// Asked for instead of an answer's length:
constexpr std::uint64_t kFinish = ~std::uint64_t{0};
constexpr std::uint64_t kExpose = kFinish - 1;
constexpr Duration kRedial{100'000'000};

std::uint64_t now_ns(Worker& worker) {
  return static_cast<std::uint64_t>(worker.now().time_since_epoch().count());
}

void put_wish(std::span<std::byte> bytes, std::uint64_t answer_bytes) {
  std::memcpy(bytes.data(), &answer_bytes, sizeof answer_bytes);
}

bool is_one_sided(PerfCase which) {
  return which == PerfCase::get_bandwidth || which == PerfCase::put_bandwidth;
}

}  // namespace

void PerfService::handle(Request request) noexcept {
  std::uint64_t answer_bytes = 0;
  if (request.payload().size() < kPerfRequestMin) return request.reject(ErrorCode::protocol);
  std::memcpy(&answer_bytes, request.payload().data(), sizeof answer_bytes);
  request.payload() = {};
  if (answer_bytes == kFinish) {
    finished_ = true;
    request.reply(Buffer{});
    if (at_end_ == AtEnd::stop_reactor) worker_.reactor().stop();
    return;
  }
  if (answer_bytes == kExpose) {
    if (!exposed_) {
      Result<Buffer> memory = worker_.allocate(kPerfSizeMax);
      if (!memory) return request.reject(memory.error().code);
      Result<Exposed> exposed = worker_.expose(std::move(*memory));
      if (!exposed) return request.reject(exposed.error().code);
      exposed_ = std::move(*exposed);
    }
    Result<Buffer> answer = request.allocate(sizeof(RemoteRegion));
    if (!answer) return request.reject(answer.error().code);
    std::memcpy(answer->data(), &exposed_->remote(), sizeof(RemoteRegion));
    return request.reply(std::move(*answer));
  }
  if (answer_bytes > kPerfSizeMax) return request.reject(ErrorCode::protocol);
  Result<Buffer> answer = request.allocate(answer_bytes);
  if (!answer) return request.reject(answer.error().code);
  request.reply(std::move(*answer));
}

LibraryClient::LibraryClient(Worker worker, std::string peer, const PerfPlan& plan)
    : worker_(worker), peer_(std::move(peer)), plan_(plan) {
  for (std::uint32_t i = 0; i < kPerfDepth; ++i) {
    calls_.push_back(std::make_unique<Call>());
    calls_.back()->client = this;
  }
}

Task<bool> LibraryClient::run(Worker worker, Duration patience) {
  const Instant give_up = worker.now() + patience;
  for (;;) {
    Result<Session> session = co_await worker.connect(peer_, kLibraryPort);
    if (session) {
      session_ = *session;
      break;
    }
    if (worker.now() >= give_up) {
      error_ = fmt::format("{}: {}", peer_, session.error().detail);
      co_return false;
    }
    co_await worker.sleep_until(worker.now() + kRedial);
  }
  for (const PerfCase which : plan_.cases) {
    if (spec_of(which).raw) continue;
    if (is_one_sided(which) && region_.length == 0 && !co_await ask_for_region(worker)) co_return false;
    for (const std::uint64_t size : plan_.sizes) {
      begin_point(which, size);
      co_await Quiet{*this};
      if (!error_.empty()) co_return false;
      points_.push_back(timer_->result());
    }
  }
  Result<Buffer> last = worker.allocate(kPerfRequestMin);
  if (last) {
    put_wish(last->bytes(), kFinish);
    (void)co_await session_.call(std::move(*last));  // the server may be gone before its answer is
  }
  co_return true;
}

Task<bool> LibraryClient::ask_for_region(Worker worker) {
  Result<Buffer> request = worker.allocate(kPerfRequestMin);
  if (request) {
    put_wish(request->bytes(), kExpose);
    const Result<Buffer> answer = co_await session_.call(std::move(*request));
    if (answer && answer->size() == sizeof region_) {
      std::memcpy(&region_, answer->data(), sizeof region_);
      co_return true;
    }
  }
  error_ = "the server exposes no memory";
  co_return false;
}

void LibraryClient::begin_point(PerfCase which, std::uint64_t size) {
  which_ = which;
  size_ = size;
  const std::uint64_t padded = std::max(size, kPerfRequestMin);
  request_bytes_ = which == PerfCase::fetch_bandwidth ? kSmallRequest : padded;
  answer_bytes_ = which == PerfCase::push_bandwidth ? 0 : size;
  timer_.emplace(which, size, plan_.point_ns);
  timer_->start(now_ns(worker_));
  const std::size_t depth = spec_of(which).latency ? 1 : calls_.size();
  for (std::size_t i = 0; i < depth; ++i) start(*calls_[i]);
}

void LibraryClient::start(Call& call) {
  if (!is_one_sided(which_)) return start_call(call);
  if (call.memory.size() != size_) {
    Result<Buffer> memory = worker_.allocate(size_);
    if (!memory) {
      error_ = fmt::format("a buffer of {} bytes: {}", size_, memory.error().detail);
      return;
    }
    call.memory = std::move(*memory);
  }
  call.started = worker_.now();
  ++under_way_;
  if (which_ == PerfCase::get_bandwidth) {
    session_.start_get(std::move(call.memory), region_, call);
  } else {
    session_.start_put(std::move(call.memory), region_, call);
  }
}

void LibraryClient::start_call(Call& call) {
  Result<Buffer> request = worker_.allocate(request_bytes_);
  if (!request) {
    error_ = fmt::format("a request of {} bytes: {}", request_bytes_, request.error().detail);
    return;
  }
  put_wish(request->bytes(), answer_bytes_);
  call.started = worker_.now();
  ++under_way_;
  session_.start_call(std::move(*request), call);
}

void LibraryClient::on_complete(Call& call) {
  --under_way_;
  const std::uint64_t expected = is_one_sided(which_) ? size_ : answer_bytes_;
  if (!call.result() || call.result()->size() != expected) {
    if (error_.empty()) {
      error_ = fmt::format("a call failed: {}",
                           call.result() ? "an answer of another length" : call.result().error().detail);
    }
  } else {
    const auto taken = static_cast<double>((worker_.now() - call.started).count());
    if (is_one_sided(which_)) call.memory = std::move(*call.result());
    call.result() = Buffer{};
    timer_->complete(now_ns(worker_), taken / 2);
    if (error_.empty() && !timer_->done()) start(call);
  }
  if (under_way_ != 0) return;
  for (const auto& each : calls_) each->memory.reset();
  if (awaiting_) std::exchange(awaiting_, {}).resume();
}

}  // namespace bx::harness
