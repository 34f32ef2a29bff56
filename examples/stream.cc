// SPDX-License-Identifier: BSD-3-Clause
// An answer in parts, and a server that leaves in good order. The server sends a table of
// rows block by block, each block made when the client has room for it; then it drains: what was begun ends
// well, what comes later is refused, and the session closes. Prints what happened; exits 0 if all of it did.
#include <bx/bx.h>
#include <libbx/providers/loopback/loopback_fabric.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace {

constexpr std::uint16_t kPort = 7000;
constexpr std::uint32_t kBlocks = 100;
constexpr std::size_t kBlockBytes = 64 * 1024;

struct Scan {
  std::uint32_t blocks = 0;
};

class Table final : public bx::Service {
 public:
  explicit Table(bx::Worker worker) : worker_(worker) {}
  // An ordinary call: how many rows there are. Here only to be refused once the server drains.
  void handle(bx::Request request) noexcept override { request.reply(bx::Buffer{}); }
  // A caller that wants the answer in parts.
  void open(bx::StreamWriter writer) noexcept override { worker_.spawn(scan(std::move(writer))); }
  std::uint32_t blocks_made = 0;

 private:
  bx::Task<> scan(bx::StreamWriter writer) {
    Scan wanted;
    if (writer.request().size() < sizeof wanted) co_return writer.fail(bx::ErrorCode::invalid_argument);
    std::memcpy(&wanted, writer.request().data(), sizeof wanted);
    writer.request().reset();
    for (std::uint32_t i = 0; i < wanted.blocks; ++i) {
      auto block = writer.allocate(kBlockBytes);
      if (!block) co_return writer.fail(block.error().code);
      std::memset(block->data(), static_cast<int>(i), block->size());
      ++blocks_made;
      // Waits until the client has room. An error says that nobody reads any more.
      if (auto written = co_await writer.write(std::move(*block)); !written) co_return;
    }
    writer.finish();
  }
  bx::Worker worker_;
};

bx::Task<> leave(bx::Worker worker) {
  auto drained = co_await worker.drain(worker.now() + bx::Duration(1'000'000'000));
  std::printf("server: %s\n", drained ? "drained and closed" : drained.error().detail);
}

bx::Task<bool> read_table(bx::Worker worker, bx::Worker server) {
  auto session = co_await worker.connect("server", kPort);
  if (!session) co_return false;
  const Scan wanted{.blocks = kBlocks};
  bx::Buffer request = worker.copy_in(std::as_bytes(std::span(&wanted, 1))).value();
  auto reader = co_await session->open_stream(std::move(request), {.window = 4});
  if (!reader) co_return false;
  std::uint32_t blocks = 0;
  bool right = true;
  for (;; ++blocks) {
    auto block = co_await reader->next();
    if (!block) {
      std::fprintf(stderr, "block %u: %s\n", blocks, block.error().detail);
      co_return false;
    }
    if (!*block) break;  // the end
    right = right && (*block)->size() == kBlockBytes && (*block)->data()[0] == static_cast<std::byte>(blocks);
    if (blocks == kBlocks / 2) server.spawn(leave(server));  // in the middle of it
  }
  std::printf("client: %u blocks, %s\n", blocks, right ? "all as they should be" : "some of them wrong");
  // What comes now is refused: `draining` while the server finishes, `closed` when it has gone.
  auto late = co_await session->call(bx::Buffer{});
  std::printf("client: a late call: %s\n", late ? "answered" : bx::to_string(late.error().code).data());
  co_return blocks == kBlocks&& right && !late;
}

}  // namespace

int main() {
  bx::loopback::LoopbackFabric fabric;
  auto server_host = fabric.open_host("server").value();
  auto client_host = fabric.open_host("client").value();
  auto server = bx::Context::create(*server_host, {}).value();
  auto client = bx::Context::create(*client_host, {}).value();
  Table table(server->worker());
  if (!server->worker().serve(kPort, table)) return EXIT_FAILURE;
  const auto good = bx::block_on(client->worker(), read_table(client->worker(), server->worker()));
  return good && *good ? EXIT_SUCCESS : EXIT_FAILURE;
}
