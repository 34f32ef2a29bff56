// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/fabric/trace_fabric.h"

namespace bx::fabric {
namespace {

// Writes records of one host.
class Tracer {
 public:
  Tracer(TraceLog& log, Reactor& reactor, std::uint16_t host) : log_(log), reactor_(reactor), host_(host) {}
  // `record` without its time and host.
  void operator()(TraceRecord record) noexcept {
    record.time = reactor_.now();
    record.host = host_;
    log_.add(record);
  }
  template <class T>
  void refused(const Result<T>& result) noexcept {
    (*this)({.kind = TraceKind::refused, .code = static_cast<std::uint8_t>(result.error().code)});
  }
  std::uint32_t next_ordinal() noexcept { return ordinal_++; }

 private:
  TraceLog& log_;
  Reactor& reactor_;
  std::uint16_t host_;
  std::uint32_t ordinal_ = 0;
};

template <class Wr>
std::uint64_t length_of(const Wr& wr) noexcept {
  std::uint64_t length = 0;
  for (const Sge& sge : wr.sges) length += sge.length;
  return length;
}

class TraceCq final : public CqDecorator {
 public:
  TraceCq(Tracer& trace, Waker* waker, std::uint32_t ordinal)
      : CqDecorator(waker), trace_(trace), ordinal_(ordinal) {}
  std::size_t poll(std::span<Completion> out) noexcept override {
    const std::size_t count = inner().poll(out);
    for (const Completion& one : out.first(count)) {
      trace_({.wr_id = static_cast<std::uint64_t>(one.wr_id),
              .length = one.status == WcStatus::success ? one.byte_len : 0,
              .object = static_cast<std::uint32_t>(one.qp),
              .kind = TraceKind::completion,
              .code = static_cast<std::uint8_t>(one.status)});
    }
    return count;
  }
  [[nodiscard]] ArmResult arm() noexcept override {
    const ArmResult result = inner().arm();
    trace_({.object = ordinal_, .kind = TraceKind::arm, .code = static_cast<std::uint8_t>(result)});
    return result;
  }

 protected:
  void on_wake() noexcept override {
    trace_({.object = ordinal_, .kind = TraceKind::wake});
    wake_user();
  }

 private:
  Tracer& trace_;
  std::uint32_t ordinal_;
};

class TraceSrq final : public SrqDecorator {
 public:
  TraceSrq(std::unique_ptr<SharedReceiveQueue> made, Tracer& trace, std::uint32_t ordinal)
      : SrqDecorator(std::move(made)), trace_(trace), ordinal_(ordinal) {}
  std::size_t post_recv(std::span<const RecvWr> requests) noexcept override {
    const std::size_t count = inner().post_recv(requests);
    for (const RecvWr& wr : requests.first(count)) {
      trace_({.wr_id = static_cast<std::uint64_t>(wr.wr_id),
              .length = length_of(wr),
              .object = ordinal_,
              .kind = TraceKind::post_recv});
    }
    if (count < requests.size()) {
      trace_({.length = count, .object = ordinal_, .kind = TraceKind::post_short});
    }
    return count;
  }

 private:
  Tracer& trace_;
  std::uint32_t ordinal_;
};

class TraceQp final : public QpDecorator {
 public:
  TraceQp(std::unique_ptr<QueuePair> made, Tracer& trace)
      : QpDecorator(std::move(made)), trace_(trace), number_(static_cast<std::uint32_t>(address().qp)) {}
  ~TraceQp() override { trace_({.object = number_, .kind = TraceKind::destroy_qp}); }
  Result<> connect(const QpAddress& peer, const PathConfig& path) override {
    auto result = inner().connect(peer, path);
    if (result) {
      trace_({.wr_id = static_cast<std::uint64_t>(peer.qp), .object = number_, .kind = TraceKind::connect});
    } else {
      trace_.refused(result);
    }
    return result;
  }
  std::size_t post_send(std::span<const SendWr> requests) noexcept override {
    const std::size_t count = inner().post_send(requests);
    for (const SendWr& wr : requests.first(count)) {
      trace_({.wr_id = static_cast<std::uint64_t>(wr.wr_id),
              .length = length_of(wr),
              .object = number_,
              .kind = TraceKind::post_send,
              .code = static_cast<std::uint8_t>(wr.opcode)});
    }
    if (count < requests.size()) trace_({.length = count, .object = number_, .kind = TraceKind::post_short});
    return count;
  }
  void fail() noexcept override {
    trace_({.object = number_, .kind = TraceKind::fail});
    inner().fail();
  }

 private:
  Tracer& trace_;
  std::uint32_t number_;
};

class TraceDevice final : public DeviceDecorator {
 public:
  TraceDevice(Device& made, Tracer& trace) : DeviceDecorator(made), trace_(trace) {}
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> bytes, Access access) override {
    auto made = DeviceDecorator::register_memory(bytes, access);
    if (made) {
      trace_({.length = bytes.size(),
              .object = static_cast<std::uint32_t>((*made)->lkey()),
              .kind = TraceKind::create_mr});
    } else {
      trace_.refused(made);
    }
    return made;
  }
  Result<std::unique_ptr<CompletionQueue>> create_cq(const CqConfig& config) override {
    auto made = DeviceDecorator::create_cq(config);
    if (!made) trace_.refused(made);
    return made;
  }
  Result<std::unique_ptr<SharedReceiveQueue>> create_srq(const SrqConfig& config) override {
    auto made = DeviceDecorator::create_srq(config);
    if (!made) trace_.refused(made);
    return made;
  }
  Result<std::unique_ptr<QueuePair>> create_qp(const QpConfig& config) override {
    auto made = DeviceDecorator::create_qp(config);
    if (!made) trace_.refused(made);
    return made;
  }
  std::size_t poll_events(std::span<DeviceEvent> out) noexcept override {
    const std::size_t count = inner().poll_events(out);
    for (const DeviceEvent& event : out.first(count)) {
      trace_({.object = event.id,
              .kind = TraceKind::device_event,
              .code = static_cast<std::uint8_t>(event.kind)});
    }
    return count;
  }

 protected:
  std::unique_ptr<CqDecorator> decorate_cq(const CqConfig& config) override {
    const std::uint32_t ordinal = trace_.next_ordinal();
    trace_({.length = config.depth, .object = ordinal, .kind = TraceKind::create_cq});
    return std::make_unique<TraceCq>(trace_, config.waker, ordinal);
  }
  std::unique_ptr<SrqDecorator> decorate_srq(std::unique_ptr<SharedReceiveQueue> made) override {
    const std::uint32_t ordinal = trace_.next_ordinal();
    trace_({.object = ordinal, .kind = TraceKind::create_srq});
    return std::make_unique<TraceSrq>(std::move(made), trace_, ordinal);
  }
  std::unique_ptr<QpDecorator> decorate_qp(std::unique_ptr<QueuePair> made, const QpConfig& config) override {
    const auto number = static_cast<std::uint32_t>(made->address().qp);
    trace_({.length = config.send_depth, .object = number, .kind = TraceKind::create_qp});
    return std::make_unique<TraceQp>(std::move(made), trace_);
  }

 private:
  Tracer& trace_;
};

class TraceHost final : public HostDecorator {
 public:
  TraceHost(std::unique_ptr<Host> opened, TraceLog& log, std::uint16_t index)
      : HostDecorator(std::move(opened)), trace_(log, reactor(), index), device_(inner().device(), trace_) {}
  Device& device() noexcept override { return device_; }

 private:
  Tracer trace_;
  TraceDevice device_;
};

}  // namespace

TraceFabric::TraceFabric(std::unique_ptr<Fabric> inner, std::size_t capacity)
    : FabricDecorator(std::move(inner)), log_(capacity) {}

std::unique_ptr<Host> TraceFabric::decorate_host(std::unique_ptr<Host> inner) {
  return std::make_unique<TraceHost>(std::move(inner), log_, hosts_++);
}

}  // namespace bx::fabric
