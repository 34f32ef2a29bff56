// SPDX-License-Identifier: BSD-3-Clause
// What the benchmark programs run: a client that keeps DEPTH calls of BYTES outstanding to an echo service of
// another worker, over the loopback provider, with everything on that a real program has on. Not in namespace
// bx, so that scripts/instructions.py tells the program's own instructions from the library's.
#pragma once

#include <bx/bx.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <utility>

#include "libbx/providers/loopback/loopback_fabric.h"

namespace bench {

class Echo final : public bx::Service {
 public:
  void handle(bx::Request request) noexcept override {
    bx::Buffer payload = std::move(request.payload());
    request.reply(std::move(payload));
  }
};

class EchoPair {
 public:
  EchoPair()
      : client_context_(make("client")), server_context_(make("server")), client_(client_context_->worker()) {
    if (!server_context_->worker().serve(kPort, echo_)) std::abort();
    client_.spawn(connect(*this));
    client_.reactor().run(bx::kNever);
  }
  [[nodiscard]] bx::Worker& client() noexcept { return client_; }

  // Completes `count` calls of `bytes`, `depth` at a time.
  void run(std::uint64_t count, std::size_t bytes, std::size_t depth) {
    bytes_ = bytes;
    to_start_ = count;
    while (calls_.size() < depth) calls_.emplace_back(*this);
    for (Call& call : calls_) call.start();
    client_.reactor().run(bx::kNever);
  }

 private:
  static constexpr std::uint16_t kPort = 7000;

  class Call final : public bx::CallOp {
   public:
    explicit Call(EchoPair& pair) : pair_(pair) {}
    void start() {
      if (pair_.to_start_ == 0) return;
      --pair_.to_start_;
      pair_.session_.start_call(pair_.client_.allocate(pair_.bytes_).value(), *this);
    }
    void on_complete() noexcept override {
      if (!result()) {
        std::fprintf(stderr, "bench: %s\n", result().error().detail);
        std::abort();
      }
      result() = bx::Buffer{};
      start();
    }

   private:
    EchoPair& pair_;
  };

  std::unique_ptr<bx::Context> make(const char* name) {
    hosts_.push_back(fabric_.open_host(name).value());
    return bx::Context::create(*hosts_.back(), {}).value();
  }
  static bx::Task<> connect(EchoPair& pair) {
    pair.session_ = (co_await pair.client_.connect("server", kPort)).value();
  }

  bx::loopback::LoopbackFabric fabric_;
  std::deque<std::unique_ptr<bx::fabric::Host>> hosts_;
  Echo echo_;
  std::unique_ptr<bx::Context> client_context_;
  std::unique_ptr<bx::Context> server_context_;
  bx::Worker client_;
  bx::Session session_;
  std::deque<Call> calls_;
  std::size_t bytes_ = 0;
  std::uint64_t to_start_ = 0;
};

}  // namespace bench
