// SPDX-License-Identifier: BSD-3-Clause
#include "tests/differential/outcome.h"

#include <algorithm>
#include <sstream>

namespace bx::differential {
namespace {

using fabric::WcStatus;

// In a racy step a request was carried out or flushed: nobody can say which, but not carried out behind a
// flushed one.
std::vector<Event> without_race(std::vector<Event> events) {
  const auto done = [](const Event& event) { return event.status == WcStatus::success; };
  const auto flushed = [](const Event& event) { return event.status == WcStatus::flushed; };
  const auto split = std::ranges::find_if_not(events, done);
  if (!std::all_of(split, events.end(), flushed)) return events;
  for (Event& event : events) event = {.id = event.id, .status = WcStatus::flushed, .fault = event.fault};
  return events;
}

std::string place_of(std::size_t slot) {
  if (slot < kReceiveSlots) return "r0." + std::to_string(slot);
  slot -= kReceiveSlots;
  if (slot == (kRegions - 1) * kSlots) return "guard bytes";
  return "r" + std::to_string(slot / kSlots + 1) + "." + std::to_string(slot % kSlots);
}

class Comparison {
 public:
  Comparison(bool racy, Tolerance* tolerance) : racy_(racy), tolerance_(tolerance) {}

  std::optional<std::string> steps(const StepOutcome& ours, const StepOutcome& theirs) {
    if (ours.breaches != theirs.breaches) return "a breach of what always holds";
    if (!racy_ && ours.calls != theirs.calls) return calls(ours.calls, theirs.calls);
    for (const auto& [stream, events] : ours.streams) {
      const auto found = theirs.streams.find(stream);
      const std::vector<Event> none;
      if (auto what = events_of(stream, events, found == theirs.streams.end() ? none : found->second)) {
        return what;
      }
    }
    for (const auto& [stream, events] : theirs.streams) {
      if (ours.streams.contains(stream)) continue;
      if (auto what = events_of(stream, {}, events)) return what;
    }
    return memory(ours, theirs);
  }

 private:
  static std::string calls(const std::vector<Call>& ours, const std::vector<Call>& theirs) {
    const auto [one, two] = std::ranges::mismatch(ours, theirs);
    const auto text = [](const auto& at, const auto& end) {
      return at == end ? std::string("nothing")
                       : "action " + std::to_string(at->action) + " returned " + at->returned;
    };
    return text(one, ours.end()) + " against " + text(two, theirs.end());
  }

  std::optional<std::string> events_of(const Stream& stream, std::vector<Event> ours,
                                       std::vector<Event> theirs) {
    if (racy_) {
      ours = without_race(std::move(ours));
      theirs = without_race(std::move(theirs));
    }
    for (std::size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
      if (agree(stream, i < ours.size() ? &ours[i] : nullptr, i < theirs.size() ? &theirs[i] : nullptr))
        continue;
      const auto text = [i](const std::vector<Event>& events) {
        return i < events.size() ? to_string(events[i]) : std::string("nothing");
      };
      return to_string(stream) + ": " + text(ours) + " against " + text(theirs);
    }
    return std::nullopt;
  }

  // Null: there is none.
  [[nodiscard]] bool agree(const Stream& stream, const Event* ours, const Event* theirs) {
    if (theirs == nullptr) return false;
    if (ours == nullptr) return tolerance_ != nullptr && tolerance_->accepts_surplus(stream, *theirs);
    if (*ours == *theirs) return tolerance_ == nullptr || !tolerance_->is_wrong_on_both(stream, *ours);
    return tolerance_ != nullptr && tolerance_->accepts(stream, *ours, *theirs);
  }

  static std::optional<std::string> memory(const StepOutcome& ours, const StepOutcome& theirs) {
    for (const Side side : {Side::a, Side::b}) {
      const auto& one = ours.memory[index(side)];
      const auto& two = theirs.memory[index(side)];
      for (std::size_t i = 0; i < std::max(one.size(), two.size()); ++i) {
        if (i < std::min(one.size(), two.size()) && one[i] == two[i]) continue;
        return std::string("memory of ") + (side == Side::a ? "a" : "b") + " differs in " + place_of(i);
      }
    }
    return std::nullopt;
  }

  bool racy_;
  Tolerance* tolerance_;
};

}  // namespace

std::string Difference::kind() const {
  std::string kind = what;
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  return kind;
}

std::size_t StepOutcome::completions() const noexcept {
  std::size_t count = 0;
  for (const auto& [stream, events] : streams) count += events.size();
  return count;
}

std::optional<Difference> compare(const Program& program, const Outcome& ours, const Outcome& theirs,
                                  Tolerance* tolerance) {
  if (ours.size() != theirs.size()) return Difference{0, "one of the two ended early"};
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const bool racy = i < program.steps.size() && program.steps[i].racy;
    if (auto what = Comparison(racy, tolerance).steps(ours[i], theirs[i])) return Difference{i, *what};
  }
  return std::nullopt;
}

std::string to_string(const Stream& stream) {
  std::string text = "c";
  text += std::to_string(stream.connection);
  text += stream.side == Side::a ? " a" : " b";
  text += stream.queue == Queue::send ? " sends" : " receives";
  return text;
}

std::string to_string(const Event& event) {
  std::ostringstream out;
  out << '#' << event.id << ' ' << fabric::to_string(event.status);
  if (event.status == WcStatus::success) {
    out << ' ' << fabric::to_string(event.opcode) << ' ' << event.length << " bytes";
    if (event.has_imm) out << ", immediate " << event.imm;
  }
  if (event.fault != Fault::none) out << " (" << to_string(event.fault) << ')';
  return out.str();
}

std::string to_string(const StepOutcome& outcome) {
  std::ostringstream out;
  for (const Call& call : outcome.calls) out << "  action " << call.action << ": " << call.returned << '\n';
  for (const auto& [stream, events] : outcome.streams) {
    out << "  " << to_string(stream) << '\n';
    for (const Event& event : events) out << "    " << to_string(event) << '\n';
  }
  for (const std::string& breach : outcome.breaches) out << "  " << breach << '\n';
  return out.str();
}

}  // namespace bx::differential
