// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cluster/coordinator.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "harness/base/text.h"
#include "harness/cluster/agent.h"
#include "harness/cluster/token.h"
#include "libbx/base/check.h"

namespace bx::harness {
namespace {

constexpr std::size_t kStrangersMax = 64;             // beyond the agents themselves
constexpr std::int64_t kHelloNs = 10'000'000'000;     // for a stranger to say who it is
constexpr std::int64_t kLastWordsNs = 1'000'000'000;  // for a process to end after its connection did
constexpr int kByeMilliseconds = 5000;
constexpr std::size_t kWhyMax = 400;

}  // namespace

Coordinator::Coordinator(CoordinatorConfig config, HostList hosts, Launcher launch,
                         std::function<AgentSetup(std::uint32_t host)> setup)
    : config_(std::move(config)), launch_(std::move(launch)), setup_(std::move(setup)), token_(make_token()) {
  ::signal(SIGPIPE, SIG_IGN);  // an agent that ends before it has read its token
  for (const std::uint32_t host : hosts) agents_.push_back({.host = host});
}

Coordinator::~Coordinator() = default;

Parsed<void> Coordinator::start() {
  if (token_.empty())
    return tl::unexpected(std::string("the kernel gives no random bytes for the run's token"));
  Parsed<ControlListener> listener = ControlListener::open(config_.address);
  if (!listener) return tl::unexpected(listener.error());
  listener_.emplace(std::move(*listener));
  for (const AgentState& each : agents_) launch(each.host);
  return {};
}

AgentState& Coordinator::agent(std::uint32_t host) {
  const auto found = std::ranges::find(agents_, host, &AgentState::host);
  BX_CHECK(found != agents_.end(), "a host that is not in the run");
  return *found;
}

void Coordinator::launch(std::uint32_t host) {
  AgentState& state = agent(host);
  state = AgentState{.host = host};
  state.since_ns = now_ns();
  Parsed<std::unique_ptr<Process>> process = launch_(host, listener_->port(), token_);
  if (!process) return lose(state, process.error());
  state.process = std::move(*process);
}

void Coordinator::kill(std::uint32_t host) {
  AgentState& state = agent(host);
  state.expected_to_die = true;
  if (state.channel != nullptr) state.channel->send({{"kind", "die"}});
  if (state.process != nullptr) state.process->kill();
}

void Coordinator::lose(AgentState& state, std::string why) {
  if (state.stage == AgentStage::lost) return;
  state.stage = AgentStage::lost;
  state.why_lost = printable(why, kWhyMax);
  if (state.process != nullptr) state.process->kill();
  if (state.channel != nullptr) state.channel->close("lost");
}

std::vector<std::string> Coordinator::losses() const {
  std::vector<std::string> losses;
  for (const AgentState& state : agents_) {
    if (state.stage != AgentStage::lost || state.expected_to_die) continue;
    losses.push_back(fmt::format("host{}: {}", state.host, state.why_lost));
  }
  return losses;
}

void Coordinator::pump(int milliseconds) {
  std::vector<pollfd> polled{{listener_->fd(), POLLIN, 0}};
  for (const Stranger& stranger : strangers_) polled.push_back({stranger.channel->fd(), POLLIN, 0});
  for (const AgentState& state : agents_) {
    if (state.channel != nullptr && state.channel->is_open()) {
      const short events = static_cast<short>(POLLIN | (state.channel->wants_write() ? POLLOUT : 0));
      polled.push_back({state.channel->fd(), events, 0});
    }
    if (state.process != nullptr && state.process->error_fd() >= 0 && state.stage != AgentStage::lost) {
      polled.push_back({state.process->error_fd(), POLLIN, 0});
    }
  }
  ::poll(polled.data(), polled.size(), milliseconds);
  let_in();
  hear_strangers();
  for (AgentState& state : agents_) {
    hear(state);
    look_after(state);
  }
}

void Coordinator::let_in() {
  for (int fd = listener_->accept(); fd >= 0; fd = listener_->accept()) {
    if (strangers_.size() >= kStrangersMax + agents_.size()) {
      ::close(fd);
      ++refused_;
    } else {
      strangers_.push_back({std::make_unique<Channel>(fd, kStrangerBytesMax), now_ns()});
    }
  }
}

void Coordinator::hear_strangers() {
  for (Stranger& stranger : strangers_) {
    if (const std::optional<Json> message = stranger.channel->receive()) {
      if (take_hello(stranger, *message)) stranger.channel.reset();
    } else if (!stranger.channel->is_open() || now_ns() - stranger.since_ns > kHelloNs) {
      ++refused_;
      stranger.channel.reset();
    }
  }
  std::erase_if(strangers_, [](const Stranger& stranger) { return stranger.channel == nullptr; });
}

void Coordinator::refuse(Channel& channel, const std::string& why) {
  ++refused_;
  channel.send({{"kind", "refused"}, {"why", why}});
}

bool Coordinator::take_hello(Stranger& stranger, const Json& message) {
  Channel& channel = *stranger.channel;
  const auto text = [&](const char* key) {
    const auto found = message.find(key);
    return found != message.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto number = [&](const char* key) {
    const auto found = message.find(key);
    return found != message.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : UINT64_MAX;
  };
  // Nothing is told to who does not know the token.
  if (text("kind") != "hello" || !same_token(token_, text("token"))) {
    refuse(channel, "the token is not this run's");
    return true;
  }
  const std::uint64_t host = number("host");
  const auto state = std::ranges::find_if(agents_, [&](const AgentState& each) { return each.host == host; });
  if (state == agents_.end() || state->stage != AgentStage::launched || state->channel != nullptr) {
    refuse(channel, "that host is none of the run's, or has called already");
    return true;
  }
  const std::string commit = text("commit");
  std::string wrong;
  if (number("protocol") != kProtocolVersion) {
    wrong = fmt::format(
        "its bx speaks another version of the control protocol than {}; install the same bx on every host",
        kProtocolVersion);
  } else if (!config_.commit.empty() && commit != config_.commit) {
    wrong = fmt::format("its bx is of commit '{}', this one of '{}'; install the same bx on every host",
                        printable(commit), config_.commit);
  }
  if (!wrong.empty()) {
    refuse(channel, wrong);
    lose(*state, wrong);
    return true;
  }
  state->channel = std::move(stranger.channel);
  state->channel->set_limit(kFrameBytesMax);
  state->stage = AgentStage::opening;
  state->since_ns = now_ns();
  state->channel->send(setup_to_json(setup_(state->host)));
  return true;
}

void Coordinator::hear(AgentState& state) {
  if (state.channel == nullptr || state.stage == AgentStage::lost) return;
  state.channel->flush();
  while (state.channel->is_open()) {
    const std::optional<Json> message = state.channel->receive();
    if (!message) return;
    state.since_ns = now_ns();
    try {
      take(state, *message);
    } catch (const Json::exception& error) {
      lose(state, fmt::format("it sent what makes no sense: {}", error.what()));
    }
  }
}

void Coordinator::take(AgentState& state, const Json& message) {
  const std::string kind = message.at("kind");
  if (kind == "ready") {
    state.ready = ready_from(message);
    state.stage = AgentStage::ready;
    state.clock.restart();
    state.channel->send({{"kind", "ping"}, {"sent", now_ns()}});
  } else if (kind == "pong") {
    state.clock.add(message.at("sent"), message.at("now"), now_ns());
    if (!state.clock.known()) state.channel->send({{"kind", "ping"}, {"sent", now_ns()}});
  } else if (kind == "beat") {
    state.beat = beat_from(message);
  } else if (kind == "done") {
    state.done = phase_from(message.at("phase").get<std::string>());
  } else if (kind == "records") {
    add_message(message, state.report);
  } else if (kind == "report") {
    add_message(message, state.report);
    state.reported = true;
  } else if (kind == "failed") {
    lose(state, message.at("why").get<std::string>());
  } else {
    lose(state, "it sent a message of a kind that does not exist");
  }
}

// What a host that says nothing is up to.
void Coordinator::look_after(AgentState& state) {
  if (state.process == nullptr || state.stage == AgentStage::lost) return;
  if (dismissed_ && state.reported) return;  // it may go, and giving registered memory back takes its time
  const bool broken = state.channel != nullptr && !state.channel->is_open();
  if (broken && state.broken_ns == 0) state.broken_ns = now_ns();
  if (const std::optional<std::string> ended = state.process->ended()) {
    hear(state);  // its last words may say why
    return lose(state, "its process " + *ended);
  }
  if (broken && now_ns() - state.broken_ns > kLastWordsNs) return lose(state, state.channel->why());
  const double quiet = static_cast<double>(now_ns() - state.since_ns) / 1e9;
  const double allowed = state.stage == AgentStage::ready ? config_.silence_seconds : config_.start_seconds;
  if (quiet <= allowed) return;
  lose(state, state.stage == AgentStage::launched ? fmt::format("it did not call within {:.0f} s", allowed)
              : state.stage == AgentStage::opening
                  ? fmt::format("it did not open its device within {:.0f} s", allowed)
                  : fmt::format("it hangs: no sign of life for {:.1f} s", quiet));
}

bool Coordinator::all_ready() const {
  return std::ranges::all_of(agents_, [](const AgentState& state) {
    return state.stage == AgentStage::ready && state.clock.known();
  });
}

void Coordinator::measure_clocks() {
  for (AgentState& state : agents_) {
    if (state.stage != AgentStage::ready) continue;
    state.clock.restart();
    state.channel->send({{"kind", "ping"}, {"sent", now_ns()}});
  }
}

void Coordinator::begin(Phase phase, std::int64_t in_ns) {
  const std::int64_t at = now_ns() + in_ns;
  for (AgentState& state : agents_) {
    if (state.stage != AgentStage::ready) continue;
    state.channel->send({{"kind", "phase"}, {"name", to_string(phase)}, {"at", state.clock.to_agent(at)}});
  }
}

void Coordinator::join(std::uint32_t host, Phase phase) {
  const AgentState& state = agent(host);
  const Json message{{"kind", "phase"}, {"name", to_string(phase)}, {"at", state.clock.to_agent(now_ns())}};
  if (state.stage == AgentStage::ready) state.channel->send(message);
}

bool Coordinator::all_done(Phase phase) const {
  return std::ranges::all_of(agents_, [&](const AgentState& state) {
    return state.stage != AgentStage::ready || state.done == phase;
  });
}

void Coordinator::ask_for_reports() {
  for (AgentState& state : agents_) {
    if (state.stage == AgentStage::ready) {
      state.channel->send({{"kind", "report"}});
    } else if (state.stage != AgentStage::lost) {
      // The run is over before it began here: there is nothing to wait for, and nobody to blame.
      state.expected_to_die = true;
      lose(state, "the run ended before it was ready");
    }
  }
}

bool Coordinator::all_reported() const {
  return std::ranges::all_of(
      agents_, [](const AgentState& state) { return state.stage != AgentStage::ready || state.reported; });
}

void Coordinator::dismiss() {
  dismissed_ = true;
  for (AgentState& state : agents_) {
    if (state.stage == AgentStage::ready) state.channel->send({{"kind", "bye"}});
  }
  const std::int64_t until = now_ns() + std::int64_t{kByeMilliseconds} * 1'000'000;
  const auto gone = [](AgentState& state) { return state.process == nullptr || state.process->ended(); };
  while (now_ns() < until && !std::ranges::all_of(agents_, gone)) pump(10);
}

}  // namespace bx::harness
