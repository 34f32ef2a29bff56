// SPDX-License-Identifier: BSD-3-Clause
// What a training worker does: it pushes gradients, and the server adds them to its parameters. Shows a
// service with a format of its own that does not trust what it gets, answers that are errors, one that comes
// too late, and what a client sees of each. Exits 0 if good pushes were applied once, bad ones refused, and
// the late one given up in time.
#include <bx/bx.h>
#include <libbx/providers/loopback/loopback_fabric.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t kPort = 7000;
constexpr std::size_t kParameters = 1 << 16;

// A push: this, and then `count` floats to be added from parameter `first` on.
struct PushHeader {
  std::uint32_t first;
  std::uint32_t count;
};

class ParameterServer final : public bx::Service {
 public:
  void handle(bx::Request request) noexcept override {
    if (paused) return waiting_.push_back(std::move(request));  // answered later: a Request may be kept
    apply(std::move(request));
  }
  void resume() {
    paused = false;
    for (bx::Request& request : std::exchange(waiting_, {})) apply(std::move(request));
  }
  [[nodiscard]] float at(std::size_t parameter) const { return parameters_[parameter]; }
  bool paused = false;

 private:
  // Everything in a payload is the peer's word. What is wrong is refused, and the caller is told why.
  void apply(bx::Request request) noexcept {
    const std::span<const std::byte> bytes = std::as_const(request.payload()).bytes();
    PushHeader header{};
    if (bytes.size() < sizeof header) return request.reject(bx::ErrorCode::invalid_argument);
    std::memcpy(&header, bytes.data(), sizeof header);
    if (bytes.size() != sizeof header + std::uint64_t{header.count} * sizeof(float)) {
      return request.reject(bx::ErrorCode::invalid_argument);
    }
    if (header.first > kParameters || header.count > kParameters - header.first) {
      return request.reject(bx::ErrorCode::too_large);
    }
    for (std::size_t i = 0; i < header.count; ++i) {
      float gradient = 0;
      std::memcpy(&gradient, bytes.data() + sizeof header + i * sizeof gradient, sizeof gradient);
      parameters_[header.first + i] += gradient;
    }
    request.reply(bx::Buffer{});  // an answer may be empty
  }

  std::array<float, kParameters> parameters_{};
  std::vector<bx::Request> waiting_;
};

bx::Buffer make_push(bx::Worker worker, PushHeader header, std::size_t floats) {
  bx::Buffer buffer = worker.allocate(sizeof header + floats * sizeof(float)).value();
  std::memcpy(buffer.data(), &header, sizeof header);
  const float one = 1;
  for (std::size_t i = 0; i < floats; ++i) {
    std::memcpy(buffer.data() + sizeof header + i * sizeof one, &one, sizeof one);
  }
  return buffer;
}

bool failed_with(const bx::Result<bx::Buffer>& answer, bx::ErrorCode code, const char* what) {
  const bool as_meant = !answer && answer.error().code == code;
  std::printf("%-28s %s\n", what, answer ? "done" : to_string(answer.error().code).data());
  return as_meant;
}

bx::Task<bool> train(bx::Worker worker, ParameterServer& server) {
  auto session = co_await worker.connect("server", kPort);
  if (!session) co_return false;

  // A short push travels in a message, a long one by rendezvous: the code is the same.
  for (const std::uint32_t count : {16U, 50'000U}) {
    auto done = co_await session->call(make_push(worker, {.first = 100, .count = count}, count));
    if (!done) co_return false;
  }
  if (server.at(100) != 2 || server.at(115) != 2 || server.at(116) != 1) co_return false;

  // The service's own refusals arrive as the code it named, with scope operation: the session goes on.
  auto cut = co_await session->call(make_push(worker, {.first = 0, .count = 8}, 7));
  auto beyond = co_await session->call(make_push(worker, {.first = kParameters - 1, .count = 2}, 2));
  if (!failed_with(cut, bx::ErrorCode::invalid_argument, "a push cut short:")) co_return false;
  if (!failed_with(beyond, bx::ErrorCode::too_large, "a push beyond the end:")) co_return false;

  // Every call has a deadline; this one names its own. The server may still apply the push later: a caller
  // that repeats it must be able to bear it twice.
  server.paused = true;
  const bx::Instant deadline = worker.now() + 5ms;
  auto late = co_await session->call(make_push(worker, {.first = 0, .count = 1}, 1), {.deadline = deadline});
  if (!failed_with(late, bx::ErrorCode::deadline_exceeded, "a push to a paused server:")) co_return false;
  if (worker.now() != deadline) co_return false;
  server.resume();

  auto after = co_await session->call(make_push(worker, {.first = 0, .count = 1}, 1));
  co_return after&& server.at(0) == 2;
}

}  // namespace

int main() {
  bx::loopback::LoopbackFabric fabric;
  auto service = std::make_unique<ParameterServer>();
  auto server_host = fabric.open_host("server").value();
  auto client_host = fabric.open_host("client").value();
  auto server = bx::Context::create(*server_host, {}).value();
  auto client = bx::Context::create(*client_host, {}).value();
  if (!server->worker().serve(kPort, *service)) return EXIT_FAILURE;
  const auto good = bx::block_on(client->worker(), train(client->worker(), *service));
  return good && *good ? EXIT_SUCCESS : EXIT_FAILURE;
}
