// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/rig.h"

#include <algorithm>

#include "libbx/base/check.h"

namespace bx::conformance {
namespace {

// The loop is run in steps of this length, so that a completion is polled soon after it came.
constexpr Duration kStep{2'000};

class CallGuard {
 public:
  explicit CallGuard(int& open) : open_(open) { ++open_; }
  ~CallGuard() { --open_; }
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

 private:
  int& open_;
};

std::byte pattern(std::size_t position, std::uint8_t seed) {
  return static_cast<std::byte>((position * 131U + position / 251U + seed * 29U + 1U) & 0xffU);
}

std::unique_ptr<fabric::Host> open(fabric::Fabric& fabric, const char* name) {
  auto host = fabric.open_host(name);
  BX_CHECK(host.has_value(), "a conformance provider must open its two hosts");
  return std::move(*host);
}

template <class T>
std::unique_ptr<T> must(Result<std::unique_ptr<T>> made) {
  BX_CHECK(made.has_value(), "a conformance provider refused to make an object within its caps");
  return std::move(*made);
}

}  // namespace

Endpoint::Endpoint(std::unique_ptr<fabric::Host> opened, const RigConfig& given, int& open_calls)
    : config(given),
      calls_open(open_calls),
      host(std::move(opened)),
      memory(given.memory_bytes),
      send_waker(open_calls),
      recv_waker(open_calls),
      event_waker(open_calls) {
  const CallGuard guard(calls_open);
  fabric::Device& device = host->device();
  device.set_event_waker(&event_waker);
  mr = must(device.register_memory(memory, config.access));
  send_cq = must(device.create_cq({.depth = config.send_cq_depth, .waker = &send_waker}));
  recv_cq = must(device.create_cq({.depth = config.recv_cq_depth, .waker = &recv_waker}));
  srq = must(device.create_srq({.depth = config.srq_depth, .sges_max = config.recv_sges_max}));
  qp = make_qp();
}

std::unique_ptr<fabric::QueuePair> Endpoint::make_qp() {
  return must(host->device().create_qp({.send_cq = send_cq.get(),
                                        .recv_cq = recv_cq.get(),
                                        .srq = srq.get(),
                                        .send_depth = config.send_depth,
                                        .sges_max = config.sges_max,
                                        .inline_max = config.inline_max}));
}

Sge Endpoint::sge(std::size_t offset, std::size_t length) const {
  return {reinterpret_cast<std::uint64_t>(memory.data()) + offset, static_cast<std::uint32_t>(length),
          mr->lkey()};
}

fabric::RemoteSpan Endpoint::remote(std::size_t offset) const {
  return {reinterpret_cast<std::uint64_t>(memory.data()) + offset, mr->rkey()};
}

std::span<std::byte> Endpoint::bytes(std::size_t offset, std::size_t length) {
  return std::span(memory).subspan(offset, length);
}

void Endpoint::fill(std::size_t offset, std::size_t length, std::uint8_t seed) {
  for (std::size_t i = 0; i < length; ++i) memory[offset + i] = pattern(i, seed);
}

bool Endpoint::holds(std::size_t offset, std::size_t length, std::uint8_t seed) const {
  for (std::size_t i = 0; i < length; ++i) {
    if (memory[offset + i] != pattern(i, seed)) return false;
  }
  return true;
}

std::size_t Endpoint::post(std::span<const SendWr> requests) {
  const CallGuard guard(calls_open);
  return qp->post_send(requests);
}

std::size_t Endpoint::post_recv(std::uint64_t first, std::size_t count, std::size_t offset,
                                std::size_t length) {
  const Sge element = sge(offset, length);
  std::size_t posted = 0;
  for (std::size_t i = 0; i < count; ++i) {
    posted += post_recv({.wr_id = WrId{first + i}, .sges = {&element, length > 0 ? 1U : 0U}});
  }
  return posted;
}

std::size_t Endpoint::post_recv(const RecvWr& request) {
  const CallGuard guard(calls_open);
  return srq->post_recv({&request, 1});
}

std::vector<Completion> Endpoint::poll(fabric::CompletionQueue& cq, std::size_t max) {
  const CallGuard guard(calls_open);
  std::vector<Completion> polled;
  Completion one;
  while (polled.size() < max && cq.poll({&one, 1}) == 1) polled.push_back(one);
  return polled;
}

void Endpoint::fail() {
  const CallGuard guard(calls_open);
  qp->fail();
}

Rig::Rig(std::unique_ptr<fabric::Fabric> made, const std::array<const char*, 2>& hosts,
         const RigConfig& config)
    : fabric(std::move(made)) {
  alpha = std::make_unique<Endpoint>(open(*fabric, hosts[0]), config, calls_open);
  RigConfig beta_config = config;
  if (config.beta_path) beta_config.path = *config.beta_path;
  beta = std::make_unique<Endpoint>(open(*fabric, hosts[1]), beta_config, calls_open);
  connect(*alpha, *alpha->qp, *beta, *beta->qp);
}

Rig::~Rig() = default;

RigConfig Rig::fitted(RigConfig config, Clock clock) {
  const auto fit = [](PathConfig& path) {
    constexpr std::uint8_t kShortest = 14;                                                // 67 ms
    if (path.ack_timeout != 0) path.ack_timeout = std::max(path.ack_timeout, kShortest);  // 0 is for ever
  };
  if (clock == Clock::virtual_time) return config;
  fit(config.path);
  if (config.beta_path) fit(*config.beta_path);
  return config;
}

void Rig::connect(Endpoint& a, fabric::QueuePair& a_qp, Endpoint& b, fabric::QueuePair& b_qp) {
  const CallGuard guard(a.calls_open);
  BX_CHECK(a_qp.connect(b_qp.address(), a.config.path).has_value(), "connect failed");
  BX_CHECK(b_qp.connect(a_qp.address(), b.config.path).has_value(), "connect failed");
}

bool Rig::run_until(const std::function<bool()>& done, Duration limit) {
  constexpr int kPatience = 20;  // with a real clock; it shows only in what fails
  const Instant end = now() + (clock == Clock::real ? limit * kPatience : limit);
  while (!done()) {
    if (now() >= end) return false;
    if (alpha->host->reactor().run(now() + kStep) == fabric::RunEnd::idle) return done();
  }
  return true;
}

void Rig::run_for(Duration duration) {
  const Instant end = now() + duration;
  run_until([&] { return now() >= end; }, duration);
}

std::vector<Completion> Rig::wait(Endpoint& at, fabric::CompletionQueue& cq, std::size_t count,
                                  Duration limit) {
  std::vector<Completion> all;
  const auto enough = [&] {
    for (const Completion& completion : at.poll(cq, count - all.size())) all.push_back(completion);
    return all.size() >= count;
  };
  run_until(enough, limit);
  return all;
}

bool Rig::failed(Endpoint& at) {
  constexpr std::uint64_t kProbe = 0xdead;
  if (at.post(send_wr(kProbe, {})) != 1) return false;
  const auto done = wait_sends(at, 1);
  return done.size() == 1 && done[0].status == WcStatus::flushed && done[0].wr_id == WrId{kProbe};
}

SendWr send_wr(std::uint64_t id, std::span<const Sge> sges, SendFlags flags) {
  return {.wr_id = WrId{id}, .sges = sges, .opcode = Opcode::send, .flags = flags};
}

SendWr remote_wr(Opcode opcode, std::uint64_t id, std::span<const Sge> sges, fabric::RemoteSpan remote) {
  return {.wr_id = WrId{id}, .sges = sges, .remote = remote, .opcode = opcode};
}

std::vector<std::uint64_t> ids(const std::vector<Completion>& completions) {
  std::vector<std::uint64_t> result;
  for (const Completion& completion : completions) {
    result.push_back(static_cast<std::uint64_t>(completion.wr_id));
  }
  return result;
}

std::vector<std::uint64_t> numbers(std::uint64_t first, std::size_t count) {
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(first + i);
  return result;
}

std::vector<WcStatus> statuses(const std::vector<Completion>& completions) {
  std::vector<WcStatus> result;
  for (const Completion& completion : completions) result.push_back(completion.status);
  return result;
}

std::string provider_name(const testing::TestParamInfo<Provider>& info) {
  return info.param.name;
}

}  // namespace bx::conformance
