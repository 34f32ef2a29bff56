// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cluster/agent.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "harness/base/stopwatch.h"
#include "harness/cluster/channel.h"

namespace bx::harness {
namespace {

constexpr int kDialSeconds = 20;
constexpr int kIdleMilliseconds = 100;          // between signs of life while nothing is played
constexpr std::int64_t kSlice = 5'000'000;      // ns of play between two looks at the connection
constexpr int kLastWordsMilliseconds = 10'000;  // for what is still to be sent

class Agent {
 public:
  Agent(const AgentOptions& options, Player& player) : options_(options), player_(player) {}

  std::string run() {
    Parsed<int> fd = Channel::dial(options_.address, options_.port, kDialSeconds);
    if (!fd) return "the coordinator is not reached: " + fd.error();
    Channel channel(*fd);
    channel_ = &channel;
    channel.send({{"kind", "hello"},
                  {"protocol", options_.protocol},
                  {"commit", options_.commit},
                  {"token", options_.token},
                  {"host", options_.host}});
    while (!over_ && channel.is_open()) step();
    channel.drain(kLastWordsMilliseconds);
    if (over_) return why_;
    return fmt::format("the coordinator has gone: {}", channel.why());
  }

 private:
  void step() {
    if (playing_) {
      play();
    } else {
      pollfd polled{channel_->fd(), static_cast<short>(POLLIN | (channel_->wants_write() ? POLLOUT : 0)), 0};
      ::poll(&polled, 1, kIdleMilliseconds);
    }
    channel_->flush();
    while (!over_ && channel_->is_open()) {
      const std::optional<Json> message = channel_->receive();
      if (!message) break;
      try {
        take(*message);
      } catch (const Json::exception& error) {
        end(fmt::format("the coordinator sent what makes no sense: {}", error.what()));
      }
    }
    if (open_ && since_beat_.seconds() * 1e9 >= static_cast<double>(beat_ns_)) {
      since_beat_ = {};
      channel_->send(to_json(player_.beat()));
    }
  }

  void play() {
    std::int64_t slice = kSlice;
    if (next_) {
      const std::int64_t left = next_at_ - player_.now_ns();
      if (left <= 0) {
        begin(*next_);
        next_.reset();
      } else {
        slice = std::min(slice, left);
      }
    }
    const std::int64_t before = player_.now_ns();
    player_.run(slice);
    // Virtual time stands still while nothing is left to happen: no use in waiting for it.
    if (next_ && player_.now_ns() == before) next_at_ = before;
    if (phase_ && !told_ && player_.done()) {
      told_ = true;
      // Before it, so that who hears of the end knows how far this host was.
      channel_->send(to_json(player_.beat()));
      channel_->send({{"kind", "done"}, {"phase", to_string(*phase_)}});
    }
  }

  void begin(Phase phase) {
    phase_ = phase;
    told_ = false;
    player_.begin(phase);
  }

  void take(const Json& message) {
    const std::string kind = message.at("kind");
    if (kind == "setup") {
      set_up(setup_from_json(message));
    } else if (kind == "ping") {
      channel_->send({{"kind", "pong"}, {"sent", message.at("sent")}, {"now", player_.now_ns()}});
    } else if (kind == "phase") {
      next_ = phase_from(message.at("name").get<std::string>());
      next_at_ = message.at("at");
      if (!next_) return end("the coordinator named a phase that does not exist");
      playing_ = true;
    } else if (kind == "report") {
      for (const Json& part : to_messages(player_.report())) {
        channel_->send(part);
        channel_->drain(kLastWordsMilliseconds);
      }
    } else if (kind == "bye") {
      end({});
    } else if (kind == "die") {
      ::raise(SIGKILL);
    } else if (kind == "refused") {
      end("the coordinator refuses: " + message.at("why").get<std::string>());
    } else {
      end("the coordinator sent a message of a kind that does not exist");
    }
  }

  void set_up(const AgentSetup& setup) {
    if (open_) return end("the coordinator set this host up twice");
    beat_ns_ = setup.beat_ns;
    if (Parsed<void> opened = player_.open(setup); !opened) {
      channel_->send({{"kind", "failed"}, {"why", opened.error()}});
      return end(opened.error());
    }
    open_ = true;
    channel_->send(to_json(player_.ready()));
  }

  void end(std::string why) {
    over_ = true;
    why_ = std::move(why);
  }

  const AgentOptions& options_;
  Player& player_;
  Channel* channel_ = nullptr;
  std::uint64_t beat_ns_ = 0;
  Stopwatch since_beat_;
  std::optional<Phase> phase_;  // being played
  std::optional<Phase> next_;   // to begin at next_at_
  std::int64_t next_at_ = 0;
  bool open_ = false;
  bool playing_ = false;
  bool told_ = false;
  bool over_ = false;
  std::string why_;
};

}  // namespace

std::string run_agent(const AgentOptions& options, Player& player) {
  return Agent(options, player).run();
}

}  // namespace bx::harness
