// SPDX-License-Identifier: GPL-2.0-only
// What crosses the control connection: frames, the token, clocks, setups and reports.
#include <gtest/gtest.h>

#include "harness/cluster/clock_offset.h"
#include "harness/cluster/frame.h"
#include "harness/cluster/player.h"
#include "harness/cluster/report.h"
#include "harness/cluster/token.h"
#include "harness/scenario/scenario.h"
#include "harness/workload/plan.h"

namespace bx::harness {
namespace {

std::string header(std::uint32_t length) {
  std::string text;
  for (unsigned i = 0; i < 4; ++i) text.push_back(static_cast<char>(length >> (8 * i)));
  return text;
}

TEST(frame, next__gives_whole_messages_however_the_bytes_come) {
  const std::string bytes = frame_of({{"kind", "a"}, {"n", 1}}) + frame_of({{"kind", "b"}});
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    FrameReader reader;
    std::vector<std::string> kinds;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      reader.append(std::string_view(bytes).substr(at, step));
      for (;;) {
        const auto message = reader.next();
        ASSERT_TRUE(message) << message.error();
        if (!*message) break;
        kinds.push_back((*message)->at("kind"));
      }
    }
    EXPECT_EQ(kinds, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(reader.pending_bytes(), 0U);
  }
}

TEST(frame, next__refuses_a_length_beyond_the_limit_before_the_body_is_there) {
  FrameReader reader(kStrangerBytesMax);
  reader.append(header(kStrangerBytesMax + 1));
  const auto message = reader.next();
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error(), "a message of 4097 bytes; at most 4096 are taken");
  reader.set_limit(kFrameBytesMax);
  EXPECT_TRUE(reader.next());  // only not whole
}

TEST(frame, next__refuses_what_is_no_object_with_a_kind) {
  for (const std::string body : {"", "{", "[1]", "\"x\"", "{}", "{\"kind\":1}", "\xff\xfe"}) {
    FrameReader reader;
    reader.append(header(static_cast<std::uint32_t>(body.size())) + body);
    EXPECT_FALSE(reader.next()) << body;
  }
}

TEST(token, make_token__is_new_each_time) {
  const std::string token = make_token();
  EXPECT_EQ(token.size(), 2 * kTokenBytes);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(token, make_token());
}

TEST(token, same_token__takes_the_whole_token_only) {
  const std::string token = make_token();
  EXPECT_TRUE(same_token(token, token));
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string other = token;
    other[i] = other[i] == '0' ? '1' : '0';
    EXPECT_FALSE(same_token(token, other)) << i;
  }
  EXPECT_FALSE(same_token(token, token.substr(1)));
  EXPECT_FALSE(same_token(token, token + "0"));
  EXPECT_FALSE(same_token("", ""));  // a run without a token lets nobody in
}

TEST(clock_offset, add__the_shortest_round_trip_counts) {
  ClockOffset clock;  // the agent is 1000 ahead
  clock.add(0, 1090, 100);
  EXPECT_EQ(clock.to_agent(0), 1040);
  clock.add(200, 1205, 210);
  EXPECT_EQ(clock.to_agent(0), 1000);
  clock.add(300, 1500, 700);
  EXPECT_EQ(clock.to_agent(500), 1500);
  EXPECT_EQ(clock.to_coordinator(1500), 500);
  EXPECT_EQ(clock.error_max(), 5);
  EXPECT_FALSE(clock.known());
}

// Whatever the ways there and back take, the estimate is no more wrong than it says.
TEST(clock_offset, error_max__bounds_the_error) {
  Prng prng(7);
  for (int round = 0; round < 200; ++round) {
    const auto offset = static_cast<std::int64_t>(prng.below(1'000'000)) - 500'000;
    ClockOffset clock;
    std::int64_t now = 0;
    while (!clock.known()) {
      const std::int64_t there = static_cast<std::int64_t>(prng.below(50'000)) + 1;
      const std::int64_t back = static_cast<std::int64_t>(prng.below(50'000)) + 1;
      clock.add(now, now + there + offset, now + there + back);
      now += 100'000;
    }
    EXPECT_LE(std::abs(clock.to_agent(0) - offset), clock.error_max()) << round;
  }
}

TEST(clock_offset, add__leaves_out_an_answer_from_before_the_question) {
  ClockOffset clock;
  clock.add(100, 5, 99);
  EXPECT_EQ(clock.count(), 0U);
}

// The plan that an agent draws must be the coordinator's, call by call.
TEST(setup, setup_from_json__gives_the_same_plan_and_the_same_knobs) {
  Diagnostics diagnostics;
  const auto scenario = parse_scenario(
      "name = 'x'\nseed = 9\n[fabric]\nhosts = 6\nmtu = 1024\n[library]\nwindow.per_peer = '64KiB'\n"
      "[[workload]]\nkind = 'ps-fetch'\nclients = '0..1'\nservers = '2..5'\nanswer = '64B..256KiB'\ncalls = "
      "5\n"
      "[[workload]]\nkind = 'rpc'\nclients = 0\nservers = '3..4'\nrequest = ['64B', '4KiB']\nanswer = "
      "'64B'\ncalls = "
      "7\nwarm_up = 1\n"
      "concurrency = 2\nthink_time = '5us'\n",
      "s.toml", {}, diagnostics);
  ASSERT_TRUE(scenario) << diagnostics.text();
  const Settings& settings = scenario->variants.front().settings;
  const AgentSetup sent{.settings = settings,
                        .hosts = {{"host0", "10.0.0.1"}, {"host1", "fd00::1"}},
                        .own = {1},
                        .device = "mlx5_0",
                        .tolerated = {ErrorCode::closed, ErrorCode::unreachable},
                        .beat_ns = 12345};
  const AgentSetup got = setup_from_json(Json::parse(setup_to_json(sent).dump()));
  EXPECT_EQ(got.own, sent.own);
  EXPECT_EQ(got.device, sent.device);
  EXPECT_EQ(got.tolerated, sent.tolerated);
  EXPECT_EQ(got.beat_ns, sent.beat_ns);
  ASSERT_EQ(got.hosts.size(), 2U);
  EXPECT_EQ(got.hosts[1].address, "fd00::1");
  const Plan planned = make_plan(settings);
  const Plan drawn = make_plan(got.settings);
  ASSERT_EQ(drawn.clients.size(), planned.clients.size());
  EXPECT_EQ(drawn.calls, planned.calls);
  for (std::size_t c = 0; c < planned.clients.size(); ++c) {
    EXPECT_EQ(drawn.clients[c].first_call, planned.clients[c].first_call);
    EXPECT_EQ(drawn.clients[c].think_time_ns, planned.clients[c].think_time_ns);
    EXPECT_EQ(drawn.clients[c].concurrency, planned.clients[c].concurrency);
    ASSERT_EQ(drawn.clients[c].calls.size(), planned.clients[c].calls.size());
    for (std::size_t i = 0; i < planned.clients[c].calls.size(); ++i) {
      EXPECT_EQ(drawn.clients[c].calls[i].server, planned.clients[c].calls[i].server);
      EXPECT_EQ(drawn.clients[c].calls[i].request_bytes, planned.clients[c].calls[i].request_bytes);
      EXPECT_EQ(drawn.clients[c].calls[i].answer_bytes, planned.clients[c].calls[i].answer_bytes);
    }
  }
  for (std::uint32_t host = 0; host < 6; ++host) {
    const Config here = config_for(settings, host);
    const Config there = config_for(got.settings, host);
    for (const KnobSpec& knob : knobs()) EXPECT_EQ(there.*knob.member, here.*knob.member) << knob.name;
  }
}

TEST(report, add_message__puts_together_what_to_messages_took_apart) {
  HostReport sent;
  sent.metrics.set("calls.completed", 3, "count");
  sent.metrics.level("memory.used", 7, "bytes");
  sent.breaches = {{"right-bytes", "wrong from byte 3"}};
  sent.cpu_ns = 99;
  sent.waits = {"host1 waits"};
  for (std::uint64_t call = 0; call < 50'000; ++call) {  // more than one message holds
    CallRecord record{
        .start = Instant{} + Duration(call), .end = Instant{} + Duration(2 * call), .client = 1, .server = 2};
    record.state = call % 2 == 0 ? CallState::answered : CallState::failed;
    sent.calls.push_back({call, record, ErrorCode::closed});
  }
  sent.requests = {{5, 2, -17}};
  HostReport got;
  const std::vector<Json> messages = to_messages(sent);
  EXPECT_GT(messages.size(), 3U);
  for (const Json& message : messages) {
    EXPECT_LE(frame_of(message).size(), kFrameBytesMax);
    add_message(Json::parse(message.dump()), got);
  }
  EXPECT_EQ(got.metrics.value_or("calls.completed", 0), 3);
  EXPECT_TRUE(got.metrics.find("memory.used")->level);
  ASSERT_EQ(got.breaches.size(), 1U);
  EXPECT_EQ(got.breaches[0].detail, "wrong from byte 3");
  EXPECT_EQ(got.cpu_ns, 99U);
  EXPECT_EQ(got.waits, sent.waits);
  ASSERT_EQ(got.calls.size(), sent.calls.size());
  EXPECT_EQ(got.calls[49'999].record.end, sent.calls[49'999].record.end);
  EXPECT_EQ(got.calls[49'999].record.state, CallState::failed);
  EXPECT_EQ(got.calls[49'999].code, ErrorCode::closed);
  ASSERT_EQ(got.requests.size(), 1U);
  EXPECT_EQ(got.requests[0].at_ns, -17);
}

TEST(report, add_message__refuses_states_and_codes_that_do_not_exist) {
  for (const char* text : {"{\"kind\":\"records\",\"calls\":[[1,0,1,4,0,0,0]]}",
                           "{\"kind\":\"records\",\"calls\":[[1,0,1,2,99,0,0]]}",
                           "{\"kind\":\"records\",\"calls\":[[1,0]]}", "{\"kind\":\"report\"}"}) {
    HostReport report;
    EXPECT_THROW(add_message(Json::parse(text), report), Json::exception) << text;
  }
}

}  // namespace
}  // namespace bx::harness
