// SPDX-License-Identifier: BSD-3-Clause
// Workers on a loopback fabric, for tests of the engine: hosts, contexts, and services that echo or make answers.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <bx/bx.h>

#include "libbx/providers/loopback/loopback_fabric.h"

namespace bx::testing {

inline constexpr std::uint16_t kPort = 7000;

// Bytes that depend on their place and on a salt, so that a misplaced or missing part shows.
inline void fill(std::span<std::byte> bytes, std::uint64_t salt) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((i * 131 + (i >> 8U) * 17 + salt * 29 + 7) & 0xffU);
  }
}

inline bool is_filled(std::span<const std::byte> bytes, std::uint64_t salt) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != static_cast<std::byte>((i * 131 + (i >> 8U) * 17 + salt * 29 + 7) & 0xffU)) return false;
  }
  return true;
}

// Sends back what it got.
class EchoService final : public Service {
 public:
  void handle(Request request) noexcept override {
    ++served;
    Buffer payload = std::move(request.payload());
    request.reply(std::move(payload));
  }
  int served = 0;
};

// Keeps requests until told to answer.
class HoldingService final : public Service {
 public:
  void handle(Request request) noexcept override { held.push_back(std::move(request)); }
  std::vector<Request> held;
};

struct Node {
  std::unique_ptr<fabric::Host> host;
  std::unique_ptr<Context> context;
  [[nodiscard]] Worker worker() const { return context->worker(); }
};

class World {
 public:
  explicit World(const loopback::LoopbackConfig& config = {}) : fabric(config) {}
  // A host named `name` with a worker on it.
  Node add(const std::string& name, const Config& config = {}) {
    Node node;
    node.host = fabric.open_host(name).value();
    auto context = Context::create(*node.host, config);
    EXPECT_TRUE(context.has_value()) << (context ? "" : context.error().detail);
    node.context = std::move(*context);
    return node;
  }
  loopback::LoopbackFabric fabric;
};

inline Buffer filled(Worker worker, std::size_t size, std::uint64_t salt) {
  Buffer buffer = worker.allocate(size).value();
  fill(buffer.bytes(), salt);
  return buffer;
}

}  // namespace bx::testing
