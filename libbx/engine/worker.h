// SPDX-License-Identifier: BSD-3-Clause
// The engine's worker: one thread's share of the library. It owns the memory, the queues, the peers with
// their lanes, and the calls, requests and transfers in progress, and moves them all in turns:
//
//   poll completions and route them -> resume the application -> ask for chunks -> post what may be sent ->
//   arm
//
// worker.cc has life and turn, worker_memory.cc memory, peers.cc connections and peers, receiving.cc what
// arrives, receives.cc the receives it consumed, shared_receives.cc who may have which of them, deferred.cc
// what of it has to wait, sending.cc what leaves, offers.cc the sender's end of rendezvous, transfers.cc the
// receiver's, windows.cc what bounds both, one_sided.cc put and get, calls.cc both ends of calls, gather.cc
// messages in parts, pressure.cc who waits to call, drain.cc the way out, stream_*.cc answers in parts.
//
// Invariants (check_invariants): credits_conserved, window_kept, receives_promised (every receive a peer may
// consume is posted), transfers_counted, chunks_counted, and those of the machines in core/.
#pragma once

#include <bx/service.h>
#include <bx/worker.h>

#include <array>
#include <atomic>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "libbx/base/log.h"
#include "libbx/base/ring.h"
#include "libbx/core/adaptive_window.h"
#include "libbx/core/receive_shares.h"
#include "libbx/core/receiver_budget.h"
#include "libbx/core/send_window.h"
#include "libbx/core/slot_table.h"
#include "libbx/engine/deadlines.h"
#include "libbx/engine/gather.h"
#include "libbx/engine/peer.h"
#include "libbx/engine/qp_index.h"
#include "libbx/engine/receive_pool.h"
#include "libbx/engine/report.h"
#include "libbx/engine/stats.h"
#include "libbx/engine/stream.h"
#include "libbx/engine/tasks.h"
#include "libbx/engine/wr_id.h"
#include "libbx/fabric/fabric.h"
#include "libbx/memory/preflight.h"
#include "libbx/memory/registration_cache.h"

namespace bx::engine {

class Worker final : public fabric::Turn,
                     public SlotListener,
                     public memory::MemoryListener,
                     public memory::IdleListener,
                     public ConnectionListener {
 public:
  // Null: the operating system's memory; a test may hand in another, which outlives the worker.
  static Result<std::unique_ptr<Worker>> create(fabric::Host& host, const Config& config,
                                                memory::SystemMemory* system = nullptr);
  // What create() would find, without making anything.
  static Findings preflight(fabric::Host& host, const Config& config, memory::SystemMemory* system = nullptr);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The public face; see bx/worker.h, bx/session.h and bx/service.h.
  Result<> serve(std::uint16_t port, Service& service, ServeOptions options);
  void connect(ConnectAwaiter& awaiter, std::coroutine_handle<> awaiting);
  Result<Buffer> allocate(std::size_t size) noexcept { return arena_->allocate(size); }
  Result<Buffer> copy_in(std::span<const std::byte> bytes) noexcept;
  Result<UserMemory> register_memory(std::span<std::byte> bytes, std::uint64_t generation) {
    return user_memory_->acquire(bytes, generation);
  }
  void forget_memory(std::span<std::byte> bytes) noexcept { user_memory_->forget(bytes); }
  void set_pressure_listener(PressureListener* listener) noexcept { pressure_listener_ = listener; }
  [[nodiscard]] MemoryPressure pressure() const noexcept;
  [[nodiscard]] const Findings& findings() const noexcept { return findings_; }
  void spawn(Task<> task);
  void start(std::coroutine_handle<> task);
  void close() noexcept;
  void drain(DrainAwaiter& awaiter, std::coroutine_handle<> awaiting) noexcept;
  void on_drain_deadline(DrainAwaiter& awaiter) noexcept;
  void forget(DrainAwaiter& awaiter) noexcept;
  [[nodiscard]] bool draining() const noexcept { return draining_; }
  [[nodiscard]] Pressure pressure_of(const Session& session) const noexcept;
  [[nodiscard]] Error refusal_of(const Session& session) const noexcept;
  void await_ready(const Session& session, Waiter& waiter, std::coroutine_handle<> awaiting) noexcept;
  void start_call(const Session& session, Buffer&& request, CallOp& op, CallOptions options) noexcept;
  // One Buffer for a message in parts: the one part, a copy, or a GatheredMessage. Errors: exhausted.
  Result<Buffer> gather(Gather&& message) noexcept;
  void start_call(const Session& session, Gather&& request, CallOp& op, CallOptions options) noexcept;
  void reply(const RequestId& request, Gather&& answer) noexcept;
  void abandon(CallOp& op) noexcept;
  void cancel(CallOp& op) noexcept;
  struct OneSided {
    TransferWay way;
    Buffer local;
    RemoteRegion remote;
  };
  void start_one_sided(const Session& session, OneSided&& operation, CallOp& op,
                       CallOptions options) noexcept;
  Result<Exposed> expose(Buffer&& buffer);
  void reply(const RequestId& request, Buffer&& answer, std::uint8_t status) noexcept;
  [[nodiscard]] WorkerGauges gauges() const noexcept;
  void report(MetricSink& sink) const;
  void report(LabelledMetricSink& sink) const;
  void set_log(LogSink* sink) noexcept { log_ = sink; }
  void dump(LogSink& sink);
  void watch(const std::atomic<std::uint32_t>& dump_requests) noexcept;
  [[nodiscard]] bool idle() const noexcept;
  void check_invariants() const;
  [[nodiscard]] fabric::Reactor& reactor() noexcept { return reactor_; }
  [[nodiscard]] const Config& config() const noexcept { return config_; }
  [[nodiscard]] FramePool& frame_pool() noexcept { return frames_; }

  // Streams, see bx/stream.h: the caller's end, then the service's.
  void open_in_stream(OpenStream& open) noexcept;
  void begin_reading(core::SlotHandle stream, std::uint64_t number) noexcept;
  [[nodiscard]] bool part_ready(core::SlotHandle stream) noexcept;
  void await_part(core::SlotHandle stream, Waiter& waiter, std::coroutine_handle<> awaiting) noexcept;
  Result<std::optional<Buffer>> take_part(core::SlotHandle stream) noexcept;
  void cancel_stream(core::SlotHandle stream) noexcept;
  void drop_stream(core::SlotHandle stream) noexcept;
  void on_pulled(InStream& stream, PullOp& op) noexcept;
  [[nodiscard]] bool write_part(core::SlotHandle stream, Buffer& part, Result<>& result) noexcept;
  void await_pull(core::SlotHandle stream, Waiter& waiter, std::coroutine_handle<> awaiting) noexcept;
  void end_writing(core::SlotHandle stream, std::uint8_t status) noexcept;
  void end_reading(OutStream& stream, const Error& error) noexcept;

  fabric::TurnResult turn(Instant now) noexcept override;
  void on_deadline(Call& call) noexcept;
  // Closes the peers that have not been used since it last looked.
  void close_idle_peers() noexcept;

 private:
  static constexpr std::size_t kPollBatch = 32;

  struct Limits {  // derived from config and device, once
    std::uint32_t inline_max;
    std::uint32_t slot_bytes;
    std::uint32_t slots_max;
    std::uint32_t cq_depth;
    std::uint32_t reads_max;
    std::uint32_t lanes_max;  // of a peer, the control lane included
    std::uint32_t mtu;
    std::uint64_t chunk;
    std::uint64_t message_max;  // of one work request
    std::uint32_t parts_max;    // of a payload that the device gathers
    std::uint64_t window_per_peer;
    std::uint64_t window_per_session;
    std::uint64_t window_nic_low;
    std::uint64_t window_nic_high;
    std::uint64_t window_receiver;
    std::uint32_t pool;       // receives that all peers share, or 0
    std::uint32_t floor;      // of one peer, of those
    std::uint32_t entitled;   // of one peer, if it asks
    std::uint64_t share_min;  // of window_receiver
    bool windows_nested;      // there are windows of sessions or the NIC beside those of peers
    bool adaptive;
    bool divided;                      // window_receiver is, by peers
    std::uint64_t receive_memory_min;  // the slots and headers of one peer
  };
  static Result<Limits> derive_limits(const Config& config, const fabric::DeviceCaps& caps);
  static void derive_windows(const Config& config, Limits& limits);
  static void derive_shares(const Config& config, Limits& limits);
  static core::AdaptiveWindow::Config adaptive_window(const Config& config, std::uint64_t initial);
  Worker(fabric::Host& host, const Config& config, const Limits& limits, memory::SystemMemory* system);
  Result<> start_memory();
  Result<> start_queues();

  // worker.cc
  bool poll() noexcept;
  void poll_device_events() noexcept;
  void resume_application() noexcept;
  void complete_ops() noexcept;
  BX_COLD void tell_pressure() noexcept;
  void report_memory(MetricSink& sink) const;
  void on_memory_idle(std::coroutine_handle<> awaiting) noexcept override { start(awaiting); }
  // dump.cc
  BX_COLD void dump_as_asked() noexcept;
  void dump_calls(LogSink& sink);
  void dump_transfers(LogSink& sink);
  BX_COLD void log_failure(const Peer& peer, const Error& error) noexcept;
  BX_COLD void log_refusal(const Error& error) noexcept;
  void log(const LogLine& line) noexcept;
  // pressure.cc
  [[nodiscard]] std::uint32_t room_for_calls(const Peer& peer) const noexcept;
  void resume(Waiter& waiter, const Result<>& result) noexcept;
  BX_COLD void resume_waiters() noexcept;
  BX_COLD void tell_ready() noexcept;
  void end_waiters(Peer& peer) noexcept;
  // stream_reader.cc
  void ask_parts(InStream& stream) noexcept;
  void bid_farewell(InStream& stream) noexcept;
  BX_COLD void wait_for_calls(InStream& stream) noexcept;
  BX_COLD void ask_again() noexcept;
  void send_pull(InStream& stream, PullOp& op, wire::StreamAsk ask) noexcept;
  void forget_parts(InStream& stream) noexcept;
  void stop_reading(InStream& stream, const Error& error) noexcept;
  void erase_if_over(InStream& stream) noexcept;
  // stream_writer.cc
  BX_COLD void on_stream_request(Peer& peer, std::uint32_t session, std::uint64_t call,
                                 Buffer&& payload) noexcept;
  void open_out_stream(Peer& peer, const RequestId& request, Buffer&& payload) noexcept;
  void answer_stream(const RequestId& request, Buffer&& answer, std::uint8_t status) noexcept;
  void watch_reader(OutStream& stream) noexcept;
  void send_part(OutStream& stream, Buffer&& part) noexcept;
  void serve_stream(OutStream& stream) noexcept;
  void answer_pulls(OutStream& stream, std::uint8_t status) noexcept;
  void erase_if_over(OutStream& stream) noexcept;
  void drop_streams(const Peer& peer) noexcept;
  // drain.cc
  BX_COLD void step_drain() noexcept;
  void finish_drain(const Result<>& result) noexcept;
  // report.cc
  [[nodiscard]] Stats totals() const noexcept;
  void wake() noexcept {
    if (!in_turn_) reactor_.waker().wake();
  }

  // peers.cc
  struct LaneCounts {
    std::uint32_t data = 1;
    bool control = false;
  };
  Result<Peer*> make_peer(const LaneCounts& lanes);
  [[nodiscard]] LaneCounts lanes_wanted() const noexcept;
  Result<> make_lane(Peer& peer, std::uint32_t number);
  void drop_lane(PeerLane& lane) noexcept;
  Result<> settle_lanes(Peer& peer, const wire::Hello& hello);
  Result<> connect_lane(Peer& peer, PeerLane& lane, const fabric::QpAddress& to, std::uint8_t traffic_class);
  [[nodiscard]] bool in_use(Peer& peer) noexcept;
  void post_receives_for(Peer& peer) noexcept;
  wire::Hello hello_of(Peer& peer) const;
  Result<> open_peer(Peer& peer, const wire::Hello& hello);
  Session open_session(Peer& peer);
  void answer_waiters(Peer& peer);
  void fail_peer(Peer& peer, const Error& error) noexcept;
  void end_peer(Peer& peer, const Error& error) noexcept;
  void watch_idle_peers() noexcept;
  void drop_peer_work(Peer& peer) noexcept;
  // True if something is left that the next turn can clear away.
  bool reap(bool drained) noexcept;
  Peer* peer_at(std::uint32_t index) noexcept {
    return index < peers_.size() ? peers_[index].get() : nullptr;
  }
  void on_accept(std::uint32_t service, std::unique_ptr<fabric::Stream> stream) noexcept;
  Result<> admit(Connection& connection, const wire::Hello& hello, wire::Reject& reject);
  void discard(std::unique_ptr<Peer>& peer) noexcept;
  Result<> on_hello(Connection& connection, const wire::Hello& hello, wire::Reject& reject) override;
  void on_established(Connection& connection) override;
  void on_lost(Connection& connection, const Error& error) override;

  // receiving.cc
  void on_send_completion(const WrTag& tag, const fabric::Completion& completion) noexcept;
  void on_receive_completion(std::uint32_t slot, const fabric::Completion& completion) noexcept;
  BX_COLD void note_failed_send(Peer& peer, const WrTag& tag) noexcept;
  BX_COLD void on_unusual_receive(Peer* peer, std::uint32_t slot, const fabric::Completion& completion,
                                  std::span<const std::byte> bytes) noexcept;
  BX_COLD void refuse(Peer& peer, std::uint32_t slot, const Error& error) noexcept;
  const char* note(Peer& peer, const wire::MessageHeader& header) noexcept;
  void on_message(Peer& peer, std::uint32_t slot, std::span<const std::byte> bytes) noexcept;
  BX_COLD void on_unusual_message(Peer& peer, std::uint32_t slot, std::span<const std::byte> bytes) noexcept;
  enum class SlotUse : std::uint8_t {
    done,
    kept,  // the payload was lent, or the message has to wait
  };
  void settle_slot(Peer& peer, std::uint32_t slot, SlotUse use) noexcept;
  SlotUse dispatch(Peer& peer, const wire::Message& message, std::uint32_t slot) noexcept;
  SlotUse on_request(Peer& peer, const wire::Item& item, std::uint32_t slot) noexcept;
  [[gnu::noinline]] void on_batch(Peer& peer, std::uint32_t slot, const wire::Batch& batch) noexcept;
  // Of a batch, anything but a request or an answer with its payload in it.
  BX_COLD void on_unusual_item(Peer& peer, std::uint32_t slot, const wire::Batch& batch, std::uint32_t at,
                               const wire::Item& item) noexcept;
  [[nodiscard]] bool may_request(Peer& peer) noexcept;
  SlotUse take_answer(Peer& peer, const wire::Item& item, std::uint32_t slot) noexcept;
  void retire_message(Peer& peer, SendRecord& record) noexcept;
  BX_COLD void retire(Peer& peer, PeerLane& lane, SendRecord&& record, bool success) noexcept;
  void mark_dirty(Peer& peer) noexcept {
    if (peer.state == PeerState::open && !peer.DirtyHook::linked()) dirty_.push_back(peer);
  }

  // deferred.cc
  SlotUse on_offer(Peer& peer, const wire::Message& message, std::uint32_t slot) noexcept;
  // A message that found no place to be served in, or those of a batch from one that did not: its requests,
  // or its offered responses. It holds its receive slot.
  struct Deferred {
    enum class Form : std::uint8_t { eager, offer, batch, batch_offer };  // of a batch: by what is next
    std::uint32_t peer;
    std::uint32_t incarnation;
    std::uint32_t slot;
    std::uint32_t bytes;  // of the whole SEND
    Form form;
    std::uint32_t at = 0;  // in the batch
  };
  BX_COLD SlotUse defer(wire::MessageKind kind, const Deferred& deferred) noexcept;
  [[nodiscard]] Ring<Deferred>& deferred_of(wire::MessageKind kind) noexcept {
    return kind == wire::MessageKind::request ? deferred_requests_ : deferred_responses_;
  }
  // What is at `at`, and what of the same kind is behind it.
  BX_COLD void defer_batch(Peer& peer, std::uint32_t slot, const wire::Batch& batch, std::uint32_t at,
                           wire::MessageKind item) noexcept;
  BX_COLD void on_offer_of_batch(Peer& peer, std::uint32_t slot, const wire::Batch& batch, std::uint32_t at,
                                 const wire::Item& item) noexcept;
  BX_COLD void serve_deferred(const Deferred& deferred) noexcept;
  BX_COLD void serve_deferred_batch(wire::MessageKind kind, Ring<Deferred>& waiting) noexcept;
  [[nodiscard]] bool room_for(wire::MessageKind kind, Deferred::Form form) const noexcept;
  [[nodiscard]] bool deferred_ready() const noexcept;
  void take_offer(Peer& peer, const wire::Message& message) noexcept;
  void retry_deferred(wire::MessageKind kind, Ring<Deferred>& deferred) noexcept;
  void let_go(std::uint32_t slot) noexcept;
  void drop_deferred(const Peer& peer) noexcept;

  // receives.cc and receive_path.h
  struct Taken {
    Buffer payload;
    SlotUse slot;
  };
  Taken take_payload(Peer& peer, const wire::Item& item, std::uint32_t slot) noexcept;
  SlotUse take_request(Peer& peer, const wire::Item& item, std::uint32_t slot) noexcept;
  [[nodiscard]] bool may_replace(std::uint32_t owed) const noexcept;
  [[nodiscard]] bool consumed_credit(Peer& peer) noexcept;
  void posted_again(Peer& peer) noexcept;
  void give_receive(Peer& peer) noexcept;
  void repost(Peer& peer) noexcept;
  BX_COLD void owe_receive(Peer& peer) noexcept;
  void pay_back(Peer& peer) noexcept;
  void feed_starved() noexcept;
  void put_away(std::uint32_t slot) noexcept;
  void on_slot_free(std::uint32_t slot) noexcept override;

  // shared_receives.cc
  core::ReceiveShare& share_of(const Peer& peer) noexcept { return receive_share_[peer.index]; }
  Result<> start_shares();
  [[nodiscard]] std::uint32_t place_for_peer() const noexcept;
  void open_share(Peer& peer) noexcept;
  void close_share(Peer& peer) noexcept;
  BX_COLD void on_share_returned(Peer& peer) noexcept;
  BX_COLD void on_credit_request(Peer& peer, wire::MessageFlags flags) noexcept;
  void promise(Peer& peer, std::uint32_t wanted) noexcept;
  void serve_wanting() noexcept;
  BX_COLD void put_away_of_failed(Peer& peer, std::uint32_t slot) noexcept;
  BX_COLD void settle_of_failed(Peer& peer, std::uint32_t slot, SlotUse use) noexcept;
  bool feed_leaver() noexcept;
  BX_COLD void ask_for_credits(Peer& peer, wire::MessageHeader& header) noexcept;

  // sending.cc and send_path.h
  void flush_dirty() noexcept;
  void flush_receives() noexcept;
  void flush_peer(Peer& peer) noexcept;
  [[nodiscard]] bool may_send(Peer& peer, const Lane& lane, std::uint32_t credits = 1) noexcept;
  BX_COLD void note_no_slot(Peer& peer) noexcept;
  [[nodiscard]] bool may_send_control(Peer& peer, const Lane& lane, wire::MessageKind kind) noexcept;
  BX_COLD void send_control(Peer& peer, Lane& lane, wire::Message& message) noexcept;
  [[nodiscard]] static bool may_follow(const Peer& peer, const Lane& lane, wire::MessageKind kind,
                                       std::size_t bytes) noexcept;
  BX_COLD [[nodiscard]] static bool offer_may_follow(const Peer& peer, const Lane& lane) noexcept;
  void follow(Peer& peer, Lane& lane, const wire::MessageHeader& header,
              std::span<const std::byte> body) noexcept;
  void follow_payload(Peer& peer, Lane& lane, const wire::MessageHeader& header, Buffer& payload) noexcept;
  enum class Attempt : std::uint8_t {
    sent,
    waits,          // and so do all others
    session_waits,  // for what another session may have
  };
  Attempt done_with(Peer& peer, FairQueue& queue, Outgoing& outgoing, std::uint64_t bytes) noexcept;
  void send_pending(Peer& peer) noexcept;
  bool send_first(Peer& peer, FairQueue& queue) noexcept;
  Attempt attempt(Peer& peer, FairQueue& queue, Outgoing& outgoing) noexcept;
  bool send_first_request(Peer& peer) noexcept;
  static std::uint32_t credits_for(wire::MessageKind kind) noexcept;
  void send_payload(Peer& peer, Lane& lane, wire::MessageHeader& header, Buffer& payload,
                    bool inlined) noexcept;
  bool send_now(Peer& peer, wire::MessageHeader& header, Buffer& payload) noexcept;
  BX_COLD void send_pure_grant(Peer& peer) noexcept;
  void stamp(Peer& peer, core::CreditIssuer::Notice notice, wire::MessageHeader& header) noexcept;
  void stage(Peer& peer, Lane& lane, wire::Message& message) noexcept;

  // windows.cc and send_path.h
  static std::size_t session_place(const Peer& peer, std::uint32_t session) noexcept {
    return session & (peer.session_windows.size() - 1);
  }
  core::WindowPath window_path(Peer& peer, std::uint32_t session) noexcept {
    return {peer.session_windows[session_place(peer, session)], peer.window_out, nic_window_};
  }
  [[nodiscard]] core::WindowVerdict window_verdict(Peer& peer, std::uint32_t session,
                                                   std::uint64_t bytes) noexcept;
  void take_window(Peer& peer, std::uint32_t session, std::uint64_t bytes) noexcept;
  void give_window(Peer& peer, const SendRecord& record) noexcept;
  BX_COLD void count_closed(Peer& peer, core::WindowVerdict verdict) noexcept;
  BX_COLD void wake_for_nic() noexcept;
  BX_COLD void sample_out(Peer& peer, const SendRecord& record) noexcept;
  void take_inbound(Peer& peer, std::uint64_t bytes) noexcept;
  void on_arrived(Peer& peer, std::uint64_t bytes) noexcept;
  BX_COLD void sample_in(Peer& peer, std::uint64_t bytes, Instant asked) noexcept;
  // When what is posted now is posted; asked for only where a window goes by the delay.
  [[nodiscard]] Instant posting_time() const noexcept {
    return limits_.adaptive ? (in_turn_ ? now_ : reactor_.now()) : Instant{};
  }
  void ask_for_chunks_of(InTransfer& transfer) noexcept;
  void pump_shares() noexcept;
  bool ask_peer(Peer& peer, IntrusiveList<Peer, Asked>& blocked) noexcept;
  void leave_windows(Peer& peer) noexcept;

  // offers.cc
  BX_COLD bool send_offer(Peer& peer, Outgoing& outgoing, bool by_write) noexcept;
  BX_COLD void send_granted(Peer& peer) noexcept;
  void send_granted(Peer& peer, PeerLane& lane) noexcept;
  void on_write_grant(Peer& peer, const wire::WriteGrant& grant) noexcept;
  void on_transfer_done(const Peer& peer, std::uint32_t transfer) noexcept;
  void finish_out_transfer(core::SlotHandle handle) noexcept;
  void erase_out_transfer(core::SlotHandle handle) noexcept;
  std::uint32_t& out_count(wire::MessageKind kind) noexcept {
    return kind == wire::MessageKind::request ? out_requests_ : out_responses_;
  }

  // transfers.cc
  void begin_transfer(Peer& peer, const wire::Message& message) noexcept;
  void give_memory(InTransfer& transfer) noexcept;
  void refuse_transfer(InTransfer& transfer, const Error& error) noexcept;
  void retry_starved() noexcept;
  [[nodiscard]] int receive_mebibytes() const noexcept;
  void on_memory_free() noexcept override;
  void pump_transfers() noexcept;
  [[nodiscard]] bool may_ask(Peer& peer, const InTransfer& transfer) noexcept;
  void ask(Peer& peer, InTransfer& transfer) noexcept;
  void on_chunk_done(InTransfer& transfer, std::uint64_t bytes) noexcept;
  void settle(InTransfer& transfer) noexcept;
  void stop_transfer(core::SlotHandle handle) noexcept;
  void on_notify(Peer& peer, const fabric::Completion& completion) noexcept;
  BX_COLD void send_done(Peer& peer) noexcept;

  // one_sided.cc
  static const char* one_sided_fault(const Peer& peer, const Buffer& local,
                                     const RemoteRegion& remote) noexcept;
  BX_COLD void pump_puts() noexcept;

  // calls.cc
  void complete(Call& call, Result<Buffer> result) noexcept;
  void complete_op(CallOp& op, Result<Buffer> result) noexcept;
  BX_COLD void fail_at_once(CallOp& op, const Error& error) noexcept;
  BX_COLD void refuse_call(const Session& session, CallOp& op) noexcept;
  [[nodiscard]] Error overload() const noexcept;
  BX_COLD void refuse_request(const RequestId& request) noexcept;
  CallOp& forget(Call& call) noexcept;
  BX_COLD void withdraw(Call& call) noexcept;
  void tell(CallOp& op) noexcept;
  void hand_over(Peer& peer, std::uint32_t session, std::uint64_t call, Buffer&& payload) noexcept;
  void on_answer(Call& call, std::uint8_t status, Buffer&& payload) noexcept;
  Call* find_call(const Peer& peer, core::SlotHandle handle) noexcept;

  fabric::Host& host_;
  fabric::Reactor& reactor_;
  fabric::Device& device_;
  Config config_;
  Limits limits_;
  // Tells a turn that the device has something to say, which is asked for only then.
  struct DeviceWaker final : fabric::Waker {
    explicit DeviceWaker(fabric::Reactor& of) : reactor(of) {}
    void wake() noexcept override {
      rung = true;
      reactor.waker().wake();
    }
    fabric::Reactor& reactor;
    bool rung = true;  // there may be something from before
  };
  DeviceWaker device_waker_;
  FramePool frames_;
  Stats stats_;        // what is not counted with a peer or a session
  Departed departed_;  // what was, of those that are gone
  StderrLog standard_error_;
  LogSink* log_ = &standard_error_;  // may be null
  LogLimit log_limit_;
  // Somebody counts it up to ask for a dump, from another thread or a signal handler.
  const std::atomic<std::uint32_t>* dump_requests_;
  std::uint32_t dumps_seen_ = 0;
  Instant now_{};
  std::array<fabric::Completion, kPollBatch> batch_{};  // scratch of poll()
  std::array<fabric::DeviceEvent, 8> events_{};
  fabric::Work work_{};
  std::uint32_t instance_ = 0;  // tells this worker from those before it; never 0 once started
  bool in_turn_ = false;
  bool closed_ = false;

  // Destroyed in reverse: lanes before queues before memory.
  memory::LinuxMemory linux_memory_;
  memory::SystemMemory& system_memory_;
  Findings findings_;
  std::unique_ptr<memory::Arena> arena_;
  std::unique_ptr<memory::RegistrationCache> user_memory_;
  std::unique_ptr<fabric::CompletionQueue> cq_;
  std::unique_ptr<ReceivePool> receives_;
  // If all peers share the receives: their division, and the part of whoever is at each place of peers_.
  std::unique_ptr<core::ReceiveShares> shares_;
  std::unique_ptr<core::ReceiveShare[]> receive_share_;
  std::vector<std::uint32_t> leavers_;  // places of peers that are gone, and whose messages are still held
  PressureListener* pressure_listener_ = nullptr;
  MemoryPressure pressure_told_ = MemoryPressure::none;
  bool pressure_watched_ = false;  // it may have risen, or has risen and may have fallen again
  std::uint32_t lent_peak_ = 0;    // at the ends of turns
  // Receives posted that no peer may consume; below 0 while one has consumed what was another's.
  std::int32_t surplus_ = 0;

  GatherPool gathers_;   // outlives whatever may hold a message
  Deadlines deadlines_;  // outlives the calls on it
  core::SlotTable<Call> calls_;
  core::SlotTable<Outgoing> answers_;  // that wait to be sent
  std::uint32_t serving_ = 0;          // requests taken whose answers have not left
  core::SlotTable<InTransfer> in_transfers_;
  core::SlotTable<OutTransfer> out_transfers_;  // transfers.max of requests and as many of responses
  std::uint32_t out_requests_ = 0;
  std::uint32_t out_responses_ = 0;
  core::SlotTable<InStream> in_streams_;    // that this worker reads
  IntrusiveList<InStream> short_of_calls_;  // of those
  core::SlotTable<OutStream> out_streams_;  // that its services write
  core::NicWindow nic_window_;              // what all peers together are being sent, if windows_nested
  core::ReceiverBudget budget_;             // what all peers together are sending us by rendezvous
  core::WindowControl control_in_;          // of budget_
  IntrusiveList<InTransfer> active_;        // chunks left to ask for, in turn, unless `divided`
  IntrusiveList<InTransfer> puts_;          // the same, of what goes to the peer
  IntrusiveList<InTransfer> starved_;       // waiting for memory
  bool memory_freed_ = false;               // since they were last tried
  // In the order they came, but no answer behind a request: the request may be waiting for the answer.
  Ring<Deferred> deferred_requests_;
  Ring<Deferred> deferred_responses_;

  struct IdleWatch final : fabric::Timer {
    explicit IdleWatch(Worker& of) : worker(of) {}
    void on_timer(Instant /*now*/) noexcept override { worker.close_idle_peers(); }
    Worker& worker;
  };
  IdleWatch idle_watch_{*this};  // armed while peers.idle_close is set and there is a peer that we opened

  std::vector<std::unique_ptr<Peer>> peers_;
  QpIndex peer_of_qp_;
  std::uint32_t peers_live_ = 0;
  bool untidy_ = false;  // a failed peer or a lost handshake is to be cleared away
  std::uint16_t next_epoch_ = 1;
  std::uint32_t next_incarnation_ = 1;
  IntrusiveList<Peer, Dirty> dirty_;
  IntrusiveList<Peer, AwaitsTransfer> awaiting_transfer_;
  IntrusiveList<Peer, AwaitsNic> awaiting_nic_;
  IntrusiveList<Peer, Asked> asked_;  // that have chunks left to be asked for, in turn, if `divided`
  std::vector<Peer*> starved_peers_;  // that are owed receives, in the order it happened
  std::uint32_t receives_owed_ = 0;   // to all of them
  struct SlotOwner {
    std::uint32_t peer;
    std::uint32_t incarnation;
  };
  std::vector<SlotOwner> slot_owners_;  // whose message a slot held last

  // A port that is being listened on, and the service behind it.
  struct Listening final : fabric::StreamAcceptor {
    Listening(Worker& owner, std::uint32_t number, Service& handler, const ServeOptions& options)
        : worker(owner), place{handler, number, options.concurrency_max} {}
    void on_accept(std::unique_ptr<fabric::Stream> stream) noexcept override {
      worker.on_accept(place.index, std::move(stream));
    }
    Worker& worker;
    ServicePlace place;
    std::unique_ptr<fabric::Listener> listener;
  };
  std::vector<std::unique_ptr<Listening>> services_;
  std::vector<std::unique_ptr<Connection>> handshakes_;  // of peers that are coming to us
  IntrusiveList<CallOp> completed_;
  IntrusiveList<ConnectAwaiter> connected_;
  IntrusiveList<Waiter> resumed_;  // in the next turn
  IntrusiveList<Waiter> draining_waiters_;
  bool awaiting_ready_ = false;  // somebody waits for a peer to be ready
  bool draining_ = false;
  Tasks tasks_;
};

}  // namespace bx::engine
