// SPDX-License-Identifier: BSD-3-Clause
// The public handles, each a word or two over the engine.
#include <bx/bx.h>

#include "libbx/engine/worker.h"

namespace bx {

void Request::reject(ErrorCode code) noexcept {
  BX_CHECK(worker_ != nullptr, "a request was answered twice");
  payload_.reset();
  std::exchange(worker_, nullptr)->reply(id_, Buffer{}, wire::status_of(code));
}

void Request::drop() noexcept {
  if (worker_ != nullptr) reject(ErrorCode::cancelled);
}

void Request::reply(Gather answer) noexcept {
  BX_CHECK(worker_ != nullptr, "a request was answered twice");
  payload_.reset();
  std::exchange(worker_, nullptr)->reply(id_, std::move(answer));
}

FramePool& Request::frame_pool() noexcept {
  return worker_->frame_pool();
}

Result<Buffer> Request::allocate(std::size_t size) noexcept {
  return worker_->allocate(size);
}

void ConnectAwaiter::await_suspend(std::coroutine_handle<> awaiting) noexcept {
  worker_->connect(*this, awaiting);
}

Result<> Worker::serve(std::uint16_t port, Service& service, ServeOptions options) noexcept {
  return worker_->serve(port, service, options);
}
ConnectAwaiter Worker::connect(std::string_view host, std::uint16_t port) noexcept {
  return {*worker_, host, port};
}
Result<Buffer> Worker::allocate(std::size_t size) noexcept {
  return worker_->allocate(size);
}
Result<Buffer> Worker::copy_in(std::span<const std::byte> bytes) noexcept {
  return worker_->copy_in(bytes);
}
Result<UserMemory> Worker::register_memory(std::span<std::byte> bytes, std::uint64_t generation) {
  return worker_->register_memory(bytes, generation);
}
void Worker::forget_memory(std::span<std::byte> bytes) noexcept {
  worker_->forget_memory(bytes);
}
void Worker::set_pressure_listener(PressureListener* listener) noexcept {
  worker_->set_pressure_listener(listener);
}
Result<Exposed> Worker::expose(Buffer buffer) {
  return worker_->expose(std::move(buffer));
}
void Worker::spawn(Task<> task) {
  worker_->spawn(std::move(task));
}
void Worker::start(Task<>& task) {
  worker_->start(task.handle());
}
SleepAwaiter Worker::sleep_until(Instant when) noexcept {
  return {worker_->reactor(), when};
}
Instant Worker::now() const noexcept {
  return worker_->reactor().now();
}
fabric::Reactor& Worker::reactor() noexcept {
  return worker_->reactor();
}
FramePool& Worker::frame_pool() noexcept {
  return worker_->frame_pool();
}
const Config& Worker::config() const noexcept {
  return worker_->config();
}
void Worker::close() noexcept {
  worker_->close();
}
DrainAwaiter Worker::drain(Instant deadline) noexcept {
  return {*worker_, deadline};
}
bool Worker::draining() const noexcept {
  return worker_->draining();
}
WorkerGauges Worker::gauges() const noexcept {
  return worker_->gauges();
}
void Worker::report(MetricSink& sink) const {
  worker_->report(sink);
}
void Worker::report(LabelledMetricSink& sink) const {
  worker_->report(sink);
}
void Worker::set_log(LogSink* sink) noexcept {
  worker_->set_log(sink);
}
void Worker::dump(LogSink& sink) const {
  worker_->dump(sink);
}
bool Worker::idle() const noexcept {
  return worker_->idle();
}
void Worker::check_invariants() const {
  worker_->check_invariants();
}

Context::Context(std::unique_ptr<engine::Worker> worker) : worker_(std::move(worker)) {}
Context::~Context() = default;

Result<std::unique_ptr<Context>> Context::create(fabric::Host& host, const Config& config) {
  auto worker = engine::Worker::create(host, config);
  if (!worker) return tl::unexpected<Error>(worker.error());
  return std::unique_ptr<Context>(new Context(std::move(*worker)));
}

Findings Context::preflight(fabric::Host& host, const Config& config) {
  return engine::Worker::preflight(host, config);
}

const Findings& Context::findings() const noexcept {
  return worker_->findings();
}

Worker Context::worker() noexcept {
  return Worker(*worker_);
}

}  // namespace bx
