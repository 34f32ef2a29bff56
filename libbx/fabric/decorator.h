// SPDX-License-Identifier: BSD-3-Clause
// The neutral decorator: a whole fabric that passes every call on to another one. Those that do something
// (FaultFabric, TraceFabric, the broken fabrics of the conformance suite) derive from these and override what
// they change.
//
//   FabricDecorator -> HostDecorator -> DeviceDecorator -> CqDecorator, SrqDecorator, QpDecorator
//        owns inner       owns inner       refers to          own inner
//
// A decorated device takes only queues that it made itself, and hands the inner ones to the inner device.
// Order of destruction is that of the inner objects: they check it.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "libbx/fabric/fabric.h"

namespace bx::fabric {

class CqDecorator : public CompletionQueue {
 public:
  // Passes the wake-ups of the inner queue on to `waker`, through on_wake.
  explicit CqDecorator(Waker* waker) : proxy_(*this), waker_(waker) {}
  std::size_t poll(std::span<Completion> out) noexcept override { return inner_->poll(out); }
  [[nodiscard]] ArmResult arm() noexcept override { return inner_->arm(); }

  // The decorator is made first, because the inner queue needs its waker.
  void set_inner(std::unique_ptr<CompletionQueue> inner) noexcept { inner_ = std::move(inner); }
  [[nodiscard]] CompletionQueue& inner() noexcept { return *inner_; }
  [[nodiscard]] Waker* inner_waker() noexcept { return waker_ != nullptr ? &proxy_ : nullptr; }

 protected:
  virtual void on_wake() noexcept { wake_user(); }
  void wake_user() noexcept {
    if (waker_ != nullptr) waker_->wake();
  }
  std::unique_ptr<CompletionQueue> release_inner() noexcept { return std::move(inner_); }

 private:
  class Proxy final : public Waker {
   public:
    explicit Proxy(CqDecorator& owner) : owner_(owner) {}
    void wake() noexcept override { owner_.on_wake(); }

   private:
    CqDecorator& owner_;
  };
  Proxy proxy_;
  Waker* waker_;
  std::unique_ptr<CompletionQueue> inner_;
};

class SrqDecorator : public SharedReceiveQueue {
 public:
  explicit SrqDecorator(std::unique_ptr<SharedReceiveQueue> inner) : inner_(std::move(inner)) {}
  std::size_t post_recv(std::span<const RecvWr> requests) noexcept override {
    return inner_->post_recv(requests);
  }
  [[nodiscard]] SharedReceiveQueue& inner() noexcept { return *inner_; }

 protected:
  std::unique_ptr<SharedReceiveQueue> release_inner() noexcept { return std::move(inner_); }

 private:
  std::unique_ptr<SharedReceiveQueue> inner_;
};

class QpDecorator : public QueuePair {
 public:
  explicit QpDecorator(std::unique_ptr<QueuePair> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] QpAddress address() const noexcept override { return inner_->address(); }
  Result<> connect(const QpAddress& peer, const PathConfig& path) override {
    return inner_->connect(peer, path);
  }
  std::size_t post_send(std::span<const SendWr> requests) noexcept override {
    return inner_->post_send(requests);
  }
  void fail() noexcept override { inner_->fail(); }
  [[nodiscard]] QueuePair& inner() noexcept { return *inner_; }

 private:
  std::unique_ptr<QueuePair> inner_;
};

class DeviceDecorator : public Device {
 public:
  explicit DeviceDecorator(Device& inner) noexcept : inner_(inner) {}
  [[nodiscard]] const DeviceCaps& caps() const noexcept override { return inner_.caps(); }
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> bytes, Access access) override {
    return inner_.register_memory(bytes, access);
  }
  Result<std::unique_ptr<CompletionQueue>> create_cq(const CqConfig& config) override;
  Result<std::unique_ptr<SharedReceiveQueue>> create_srq(const SrqConfig& config) override;
  Result<std::unique_ptr<QueuePair>> create_qp(const QpConfig& config) override;
  std::size_t poll_events(std::span<DeviceEvent> out) noexcept override { return inner_.poll_events(out); }
  void set_event_waker(Waker* waker) noexcept override { inner_.set_event_waker(waker); }
  [[nodiscard]] Device& inner() noexcept { return inner_; }

 protected:
  // What an override makes in place of the neutral decorators. create_* of this class calls them after the
  // inner device has agreed (the completion queue before, for its waker).
  virtual std::unique_ptr<CqDecorator> decorate_cq(const CqConfig& config);
  virtual std::unique_ptr<SrqDecorator> decorate_srq(std::unique_ptr<SharedReceiveQueue> inner);
  virtual std::unique_ptr<QpDecorator> decorate_qp(std::unique_ptr<QueuePair> inner, const QpConfig& config);

 private:
  Device& inner_;
};

// Without its device: whoever derives from it adds a decorated one.
class HostDecorator : public Host {
 public:
  explicit HostDecorator(std::unique_ptr<Host> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return inner_->name(); }
  Reactor& reactor() noexcept override { return inner_->reactor(); }
  StreamNetwork& streams() noexcept override { return inner_->streams(); }
  Prng& prng() noexcept override { return inner_->prng(); }
  [[nodiscard]] Host& inner() noexcept { return *inner_; }

 private:
  std::unique_ptr<Host> inner_;
};

// Owns the fabric that it decorates.
class FabricDecorator : public Fabric {
 public:
  explicit FabricDecorator(std::unique_ptr<Fabric> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return inner_->name(); }
  Result<std::unique_ptr<Host>> open_host(std::string_view host) override;
  [[nodiscard]] Fabric& inner() noexcept { return *inner_; }

 protected:
  virtual std::unique_ptr<Host> decorate_host(std::unique_ptr<Host> inner) = 0;

 private:
  std::unique_ptr<Fabric> inner_;
};

}  // namespace bx::fabric
