// SPDX-License-Identifier: BSD-3-Clause
// The smallest program: one host serves, another calls it, both in this process and in virtual time.
// Prints the answer and how long the call took; exits 0 if the answer is what was sent.
#include <bx/bx.h>
#include <libbx/providers/loopback/loopback_fabric.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

namespace {

constexpr std::uint16_t kPort = 7000;
constexpr std::string_view kGreeting = "hello over RDMA";

// A server is a bx::Service. Its handle() gets each request when its payload is all there, in memory that the
// NIC wrote to, and answers it at once or later. Here the answer is the very same memory.
class Echo final : public bx::Service {
 public:
  void handle(bx::Request request) noexcept override {
    bx::Buffer payload = std::move(request.payload());
    request.reply(std::move(payload));
  }
};

// A client is a coroutine. It takes what it works on by value, and each co_await may fail: nothing throws.
bx::Task<bool> greet(bx::Worker worker) {
  auto session = co_await worker.connect("server", kPort);
  if (!session) {
    std::fprintf(stderr, "connect: %s\n", session.error().detail);
    co_return false;
  }
  // Messages are written straight into registered memory; call() takes the buffer over.
  bx::Buffer request = worker.allocate(kGreeting.size()).value();
  std::ranges::copy(std::as_bytes(std::span(kGreeting)), request.data());
  const bx::Instant before = worker.now();
  auto answer = co_await session->call(std::move(request));
  if (!answer) {
    std::fprintf(stderr, "call: %s\n", answer.error().detail);
    co_return false;
  }
  const std::string_view text(reinterpret_cast<const char*>(answer->data()), answer->size());
  std::printf("%.*s (%lld ns)\n", static_cast<int>(text.size()), text.data(),
              static_cast<long long>((worker.now() - before).count()));
  co_return text == kGreeting;
}

}  // namespace

int main() {
  // A fabric is a network, a host one machine on it, a context the library on that host with its one worker.
  bx::loopback::LoopbackFabric fabric;
  Echo echo;
  auto server_host = fabric.open_host("server").value();
  auto client_host = fabric.open_host("client").value();
  auto server = bx::Context::create(*server_host, {}).value();
  auto client = bx::Context::create(*client_host, {}).value();
  if (!server->worker().serve(kPort, echo)) return EXIT_FAILURE;
  // block_on runs the world until the task is done.
  const auto good = bx::block_on(client->worker(), greet(client->worker()));
  return good && *good ? EXIT_SUCCESS : EXIT_FAILURE;
}
