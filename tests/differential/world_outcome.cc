// SPDX-License-Identifier: BSD-3-Clause
// What a program brings about in its world: completions, until there are none left, and memory.
#include <algorithm>

#include "tests/differential/world.h"

namespace bx::differential {
namespace {

constexpr std::array kSides{Side::a, Side::b};

// A device may look at the local memory of an atomic when the answer comes, or before.
bool finds_memory_late(const Request& request) {
  return is_atomic(request.opcode) &&
         (request.fault == Fault::local_key || request.fault == Fault::local_bounds);
}

// Its last packet asks for the receive; those before have been written by then, or not.
bool finds_no_receive_late(const Request& request) {
  return request.opcode == fabric::Opcode::rdma_write_with_imm;
}

Event event_of(const fabric::Completion& completion, Fault fault) {
  Event event{
      .id = static_cast<std::uint32_t>(completion.wr_id), .status = completion.status, .fault = fault};
  if (completion.status != fabric::WcStatus::success) return event;
  event.opcode = completion.opcode;
  const bool sized =
      completion.opcode != fabric::WcOpcode::send && completion.opcode != fabric::WcOpcode::rdma_write;
  if (sized) event.length = completion.byte_len;
  event.has_imm = completion.has_imm;
  if (completion.has_imm) event.imm = completion.imm;
  return event;
}

}  // namespace

// When the step is over the whole slots are as they were in the beginning: what a failed request left there
// is free.
void World::forget_bytes(Side side, const std::vector<Place>& pieces) {
  for (const Place& piece : pieces) undefined_.emplace_back(side, piece);
}

void World::forget_bytes_of(Side side, const Request& request) {
  if (returns_data(request.opcode)) forget_bytes(side, request.pieces);
  if (finds_no_receive_late(request) || finds_memory_late(request))
    forget_bytes(other(side), {request.target});
}

void World::record_memory(const Step& step) {
  for (const auto& [side, place] : undefined_) at(side).memory.fill(place.region, place.slot);
  undefined_.clear();
  if (step.racy) {
    for (const Side side : kSides) at(side).memory.fill_all();
  }
  for (const Side side : kSides) now_.memory[index(side)] = at(side).memory.digests();
  for (const Side side : kSides) {
    for (const End& end : at(side).ends) {
      for (const Request* request : end.outstanding) {
        if (finds_no_receive_late(*request)) now_.memory[index(other(side))][digest_of(request->target)] = 0;
      }
    }
  }
}

void World::poll_all() {
  for (const Side side : kSides) {
    poll(side, *at(side).send_cq);
    poll(side, *at(side).recv_cq);
    for (End& end : at(side).ends) {
      if (end.own_cq != nullptr) poll(side, *end.own_cq);
    }
    std::array<fabric::DeviceEvent, 8> events;
    while (at(side).host->device().poll_events(events) > 0) continue;
  }
}

void World::poll(Side side, fabric::CompletionQueue& cq) {
  std::array<fabric::Completion, 8> batch;
  while (const std::size_t count = cq.poll(batch)) {
    for (const fabric::Completion& completion : std::span(batch).first(count)) take(side, completion);
  }
}

// Receives and requests have ids of one sequence, so the id says which of the two this is, in error as well.
void World::take(Side side, const fabric::Completion& completion) {
  const auto found = at(side).connection_of.find(completion.qp);
  if (found == at(side).connection_of.end()) return;  // it is gone
  const auto id = static_cast<std::uint32_t>(completion.wr_id);
  if (at(side).receives.contains(id)) {
    take_receive(side, found->second, completion);
  } else {
    take_send(side, found->second, completion);
  }
}

void World::take_send(Side side, std::uint8_t connection, const fabric::Completion& completion) {
  std::deque<const Request*>& outstanding = at(side).ends[connection].outstanding;
  const auto id = static_cast<std::uint32_t>(completion.wr_id);
  const auto found = std::ranges::find(outstanding, id, &Request::id);
  if (found == outstanding.end()) {
    now_.breaches.push_back("request #" + std::to_string(id) + " completed, but was not outstanding");
    return;
  }
  const Request& request = **found;
  now_.streams[{connection, side, Queue::send}].push_back(event_of(completion, request.fault));
  if (completion.status != fabric::WcStatus::success) forget_bytes_of(side, request);
  outstanding.erase(outstanding.begin(), found + 1);
}

void World::take_receive(Side side, std::uint8_t connection, const fabric::Completion& completion) {
  const auto found = at(side).receives.find(static_cast<std::uint32_t>(completion.wr_id));
  const Receive& receive = *found->second;
  now_.streams[{connection, side, Queue::receive}].push_back(event_of(completion, receive.fault));
  if (completion.status != fabric::WcStatus::success) forget_bytes(side, receive.pieces);
  at(side).receives.erase(found);
}

// --- Draining.

bool World::at_rest() {
  poll_all();
  return std::ranges::all_of(sides_, [](const auto& side) {
    return std::ranges::all_of(side->ends,
                               [](const End& end) { return end.waits_for_ever || end.outstanding.empty(); });
  });
}

void World::run_for(Duration duration) {
  const Instant end = reactor().now() + duration;
  if (clock_ == Clock::virtual_time) {
    reactor().run(end);
    return poll_all();
  }
  do {
    reactor().run(reactor().now() + Duration{20'000});
    poll_all();
  } while (reactor().now() < end);
}

void World::drain(const Step& step, const StepOutcome* expected) {
  using namespace std::chrono_literals;
  const bool real = clock_ == Clock::real;
  const Instant begin = reactor().now();
  const Duration limit = real ? 8s : 6s;  // the longest that a patient queue pair takes to give up is 4 s
  Duration pause = real ? Duration(20us) : Duration(5us);
  while (!at_rest() && reactor().now() - begin < limit) {
    const bool idle = reactor().run(reactor().now() + pause) == fabric::RunEnd::idle;
    if (idle && !at_rest()) break;
    if (!real) pause = std::min<Duration>(pause * 2, 20ms);
  }
  if (!at_rest()) now_.breaches.emplace_back("a request never completes");
  const bool waits = std::ranges::any_of(sides_, [](const auto& side) {
    return std::ranges::any_of(side->ends, [](const End& end) { return !end.outstanding.empty(); });
  });
  const bool ends = step.racy || std::ranges::any_of(step.actions, [](const Action& action) {
                      return std::holds_alternative<Fail>(action) ||
                             std::holds_alternative<Destroy>(action) ||
                             std::holds_alternative<Connect>(action);
                    });
  if (!real) return run_for(waits ? 500ms : 2ms);
  const Instant rest = reactor().now();
  while (expected != nullptr && now_.completions() < expected->completions() && reactor().now() - rest < 2s) {
    run_for(20us);
  }
  run_for(ends ? Duration(4ms) : Duration(100us));
}

}  // namespace bx::differential
