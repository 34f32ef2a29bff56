// SPDX-License-Identifier: BSD-3-Clause
// What an inference worker does: the rows of an embedding table lie on several servers, row r on server
// r mod 4; one lookup asks all of them at once and waits for the last. Shows an answer made by the service,
// many calls at once by callback, and a coroutine that waits for all of them.
// Exits 0 if every row is the one asked for.
#include <bx/bx.h>
#include <libbx/providers/loopback/loopback_fabric.h>

#include <algorithm>
#include <array>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::uint16_t kPort = 7000;
constexpr std::size_t kServers = 4;
constexpr std::size_t kRows = 4096;
constexpr std::size_t kLookup = 512;  // rows of one lookup

using Row = std::array<float, 64>;
using RowId = std::uint32_t;

float value_at(RowId row, std::size_t column) {
  return static_cast<float>(row) + static_cast<float>(column) / 64;
}

// A request is a list of row ids, its answer the rows in that order.
class Shard final : public bx::Service {
 public:
  void handle(bx::Request request) noexcept override {
    const std::size_t count = request.payload().size() / sizeof(RowId);
    auto answer = request.allocate(count * sizeof(Row));
    if (!answer) return request.reject(answer.error().code);
    for (std::size_t i = 0; i < count; ++i) {
      RowId id = 0;
      std::memcpy(&id, request.payload().data() + i * sizeof id, sizeof id);
      Row row;
      for (std::size_t column = 0; column < row.size(); ++column) row[column] = value_at(id, column);
      std::memcpy(answer->data() + i * sizeof row, row.data(), sizeof row);
    }
    request.reply(std::move(*answer));
  }
};

// One lookup: a call to each server, completed by callback; whoever co_awaits it goes on when the last is in.
// A CallOp stays where it is until it has completed, so they live in the gather, and the gather in a
// coroutine.
class Gather {
 public:
  Gather(bx::Worker worker, std::array<bx::Session, kServers>& sessions, const std::vector<RowId>& ids) {
    for (const RowId id : ids) parts_[id % kServers].ids.push_back(id);
    for (std::size_t server = 0; server < kServers; ++server) {
      Part& part = parts_[server];
      part.gather = this;
      bx::Buffer request = worker.allocate(part.ids.size() * sizeof(RowId)).value();
      std::ranges::copy(std::as_bytes(std::span(part.ids)), request.data());
      ++left_;
      sessions[server].start_call(std::move(request), part);
    }
  }
  bool await_ready() const noexcept { return left_ == 0; }
  void await_suspend(std::coroutine_handle<> waiting) noexcept { waiting_ = waiting; }
  // True if every row is there and right.
  bool await_resume() noexcept {
    return std::ranges::all_of(parts_, [](Part& part) { return part.good(); });
  }

 private:
  struct Part final : bx::CallOp {
    void on_complete() noexcept override {
      if (--gather->left_ == 0 && gather->waiting_) gather->waiting_.resume();
    }
    bool good() {
      if (!result() || result()->size() != ids.size() * sizeof(Row)) return false;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        Row row;
        std::memcpy(row.data(), result()->data() + i * sizeof row, sizeof row);
        if (row.front() != value_at(ids[i], 0) || row.back() != value_at(ids[i], row.size() - 1))
          return false;
      }
      return true;
    }
    Gather* gather = nullptr;
    std::vector<RowId> ids;
  };

  std::array<Part, kServers> parts_;
  std::size_t left_ = 0;
  std::coroutine_handle<> waiting_;
};

bx::Task<bool> look_up(bx::Worker worker) {
  std::array<bx::Session, kServers> sessions;
  for (std::size_t server = 0; server < kServers; ++server) {
    auto session = co_await worker.connect("server" + std::to_string(server), kPort);
    if (!session) co_return false;
    sessions[server] = *session;
  }
  bool good = true;
  const bx::Instant before = worker.now();
  constexpr std::size_t kLookups = 100;
  for (std::size_t n = 0; n < kLookups && good; ++n) {
    std::vector<RowId> ids(kLookup);
    for (std::size_t i = 0; i < kLookup; ++i) ids[i] = static_cast<RowId>((i * 2654435761U + n) % kRows);
    good = co_await Gather(worker, sessions, ids);
  }
  const auto time = (worker.now() - before).count() / static_cast<std::int64_t>(kLookups);
  std::printf("%zu lookups of %zu rows from %zu servers, %lld ns each\n", kLookups, kLookup, kServers,
              static_cast<long long>(time));
  co_return good;
}

}  // namespace

int main() {
  bx::loopback::LoopbackFabric fabric;
  Shard shard;  // stateless here, so that one object serves on every host
  std::deque<std::unique_ptr<bx::fabric::Host>> hosts;
  std::deque<std::unique_ptr<bx::Context>> servers;
  for (std::size_t server = 0; server < kServers; ++server) {
    hosts.push_back(fabric.open_host("server" + std::to_string(server)).value());
    servers.push_back(bx::Context::create(*hosts.back(), {}).value());
    if (!servers.back()->worker().serve(kPort, shard)) return EXIT_FAILURE;
  }
  // The answers of all servers meet at one link of a real network. The receiver's window bounds what is on
  // its way there; see `bx config` for every knob.
  bx::Config config;
  config.window_receiver = 128U << 10U;
  hosts.push_back(fabric.open_host("client").value());
  auto client = bx::Context::create(*hosts.back(), config);
  if (!client) {
    std::fprintf(stderr, "client: %s\n", client.error().detail);
    return EXIT_FAILURE;
  }
  const auto good = bx::block_on((*client)->worker(), look_up((*client)->worker()));
  return good && *good ? EXIT_SUCCESS : EXIT_FAILURE;
}
