// SPDX-License-Identifier: BSD-3-Clause
// call_loop CALLS [BYTES [DEPTH]]: one worker calls an echo service of another over the loopback provider,
// DEPTH calls at a time, with everything on that a real program has on. scripts/bench counts the instructions
// of two runs of different length and divides the difference.
#include <bx/bx.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "libbx/providers/loopback/loopback_fabric.h"

namespace {

constexpr std::uint16_t kPort = 7000;

class Echo final : public bx::Service {
 public:
  void handle(bx::Request request) noexcept override {
    bx::Buffer payload = std::move(request.payload());
    request.reply(std::move(payload));
  }
};

struct Loop {
  bx::Worker worker;
  bx::Session session{};
  std::size_t bytes = 64;
  std::uint64_t to_start = 0;
  std::uint64_t completed = 0;
};

class Call final : public bx::CallOp {
 public:
  Loop* loop = nullptr;
  void start() {
    if (loop->to_start == 0) return;
    --loop->to_start;
    bx::Buffer request = loop->worker.allocate(loop->bytes).value();
    loop->session.start_call(std::move(request), *this);
  }
  void on_complete() noexcept override {
    if (!result()) {
      std::fprintf(stderr, "call_loop: %s\n", result().error().detail);
      std::exit(EXIT_FAILURE);
    }
    result() = bx::Buffer{};
    ++loop->completed;
    start();
  }
};

bx::Task<> run(Loop& loop, std::vector<std::unique_ptr<Call>>& calls) {
  loop.session = (co_await loop.worker.connect("server", kPort)).value();
  for (const auto& call : calls) call->start();
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, std::uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  bx::loopback::LoopbackFabric fabric;
  const auto server_host = fabric.open_host("server").value();
  const auto client_host = fabric.open_host("client").value();
  const auto server = bx::Context::create(*server_host, {}).value();
  const auto client = bx::Context::create(*client_host, {}).value();
  Echo echo;
  if (!server->worker().serve(kPort, echo)) return EXIT_FAILURE;
  Loop loop{.worker = client->worker(), .bytes = argument(2, 64), .to_start = argument(1, 1000)};
  const std::uint64_t wanted = loop.to_start;
  std::vector<std::unique_ptr<Call>> calls;
  for (std::uint64_t i = 0; i < argument(3, 1); ++i) {
    calls.push_back(std::make_unique<Call>());
    calls.back()->loop = &loop;
  }
  client->worker().spawn(run(loop, calls));
  client->worker().reactor().run(bx::kNever);
  return loop.completed == wanted ? EXIT_SUCCESS : EXIT_FAILURE;
}
