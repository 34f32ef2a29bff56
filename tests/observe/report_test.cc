// SPDX-License-Identifier: BSD-3-Clause
// What a worker tells of itself, by peer, lane and session.
#include "libbx/engine/report.h"

#include <map>

#include "tests/engine/world.h"

namespace bx::testing {
namespace {

using namespace std::chrono_literals;

// Every number by "name{label=value,...}".
class Collected final : public LabelledMetricSink {
 public:
  explicit Collected(const Node& node) { node.worker().report(*this); }
  void metric(const LabelledMetric& metric, double value) override {
    EXPECT_TRUE(values.emplace(key(metric), value).second) << key(metric) << " twice";
  }
  void histogram(const LabelledMetric& metric, const LogHistogram& of) override {
    EXPECT_TRUE(histograms.emplace(key(metric), of).second) << key(metric) << " twice";
  }
  [[nodiscard]] double at(const std::string& name) const {
    const auto found = values.find(name);
    EXPECT_NE(found, values.end()) << name;
    return found == values.end() ? -1 : found->second;
  }
  std::map<std::string, double> values;
  std::map<std::string, LogHistogram> histograms;

 private:
  static std::string key(const LabelledMetric& metric) {
    std::string text(metric.name);
    for (const MetricLabel& label : metric.labels) {
      if (label.name == "lane") {  // a number that the provider chose
        EXPECT_TRUE(label.value.starts_with("0x")) << label.value;
        continue;
      }
      text += (text.size() == metric.name.size() ? "{" : ",") + std::string(label.name) + "=";
      text += label.value;
    }
    return text + "}";
  }
};

class ReportTest : public ::testing::Test {
 protected:
  ReportTest() {
    EXPECT_TRUE(server_.worker().serve(kPort, echo_).has_value());
    session_ = connect(client_, "server");
  }
  void call(Session session, int times, std::size_t size) {
    for (int i = 0; i < times; ++i) {
      RecordedCall one;
      session.start_call(filled(client_.worker(), size, 1), one);
      run_dry(client_);
      EXPECT_TRUE(one.succeeded());
    }
  }
  // The labels of the client's first peer.
  static std::string of_peer(const std::string& name, const std::string& session = {}) {
    return name + "{worker=client,peer=server:7000" + (session.empty() ? "" : ",session=" + session) + "}";
  }
  World world_;
  EchoService echo_;
  Node client_ = world_.add("client");
  Node server_ = world_.add("server");
  Session session_;
};

TEST_F(ReportTest, sessions__are_counted_apart_and_add_up) {
  const Session other = connect(client_, "server");
  call(session_, 3, 100);
  call(other, 2, 1000);
  const Collected numbers(client_);
  EXPECT_EQ(numbers.at(of_peer("session.calls_started", "1")), 3);
  EXPECT_EQ(numbers.at(of_peer("session.bytes_out", "1")), 300);
  EXPECT_EQ(numbers.at(of_peer("session.bytes_in", "1")), 300);
  EXPECT_EQ(numbers.at(of_peer("session.calls_started", "2")), 2);
  EXPECT_EQ(numbers.at(of_peer("session.bytes_in", "2")), 2000);
  EXPECT_EQ(numbers.at(of_peer("messages.sent")), 5);
  EXPECT_EQ(numbers.at(of_peer("messages.received")), 5);
  EXPECT_EQ(numbers.at(of_peer("messages.bytes_sent")), 2300);
  EXPECT_EQ(numbers.at(of_peer("messages.bytes_received")), 2300);
  EXPECT_EQ(numbers.at("worker.calls.completed{worker=client}"), 5);
  EXPECT_EQ(counter(client_, "calls.completed"), 5);
  EXPECT_EQ(counter(client_, "calls.started"), 5);
}

TEST_F(ReportTest, latency__is_that_of_the_calls) {
  const Instant before = client_.worker().now();
  call(session_, 1, 64);
  const auto elapsed = static_cast<std::uint64_t>((client_.worker().now() - before).count());
  const Collected numbers(client_);
  const LogHistogram& latency = numbers.histograms.at(of_peer("session.latency", "1"));
  EXPECT_EQ(latency.count(), 1U);
  EXPECT_GT(latency.sum_ns(), 2000U);  // two ways of a microsecond
  EXPECT_LE(latency.sum_ns(), elapsed);
  EXPECT_EQ(numbers.histograms.at("worker.calls.latency{worker=client}").sum_ns(), latency.sum_ns());
}

TEST_F(ReportTest, latency__does_not_depend_on_the_deadline) {
  RecordedCall one;
  session_.start_call(filled(client_.worker(), 64, 1), one, {.deadline = client_.worker().now() + 1s});
  run_dry(client_);
  EXPECT_TRUE(one.succeeded());
  const std::uint64_t own = Collected(client_).histograms.at(of_peer("session.latency", "1")).sum_ns();
  EXPECT_GT(own, 2'000U);
  EXPECT_LT(own, 10'000U);
}

TEST_F(ReportTest, failed_calls__are_counted_with_their_session) {
  HoldingService holding;
  ASSERT_TRUE(server_.worker().serve(kPort + 1, holding).has_value());
  Session held = connect(client_, "server", kPort + 1);
  RecordedCall one;
  held.start_call(Buffer{}, one, {.deadline = client_.worker().now() + 1ms});
  run_dry(client_);
  EXPECT_TRUE(one.failed_with(ErrorCode::deadline_exceeded));
  const Collected numbers(client_);
  EXPECT_EQ(numbers.at("session.calls_failed{worker=client,peer=server:7001,session=1}"), 1);
  EXPECT_EQ(numbers.at(of_peer("session.calls_failed", "1")), 0);
  EXPECT_EQ(counter(client_, "calls.failed"), 1);
}

TEST_F(ReportTest, peer_that_came_to_us__is_named_by_its_address) {
  call(session_, 2, 64);
  const Collected numbers(server_);
  bool found = false;
  for (const auto& [key, value] : numbers.values) {
    if (!key.starts_with("requests.served{")) continue;
    found = true;
    EXPECT_EQ(value, 2);
    EXPECT_NE(key.find("/qp0x"), std::string::npos) << key;
  }
  EXPECT_TRUE(found);
}

TEST_F(ReportTest, peer_that_is_gone__stays_in_the_sums) {
  call(session_, 3, 100);
  server_.context.reset();
  run_dry(client_);
  const Collected numbers(client_);
  EXPECT_FALSE(numbers.values.contains(of_peer("messages.sent")));
  EXPECT_EQ(numbers.at("worker.peers.live{worker=client}"), 0);
  EXPECT_EQ(numbers.at("worker.calls.completed{worker=client}"), 3);
  EXPECT_EQ(numbers.at("worker.messages.bytes_received{worker=client}"), 300);
  EXPECT_EQ(numbers.histograms.at("worker.calls.latency{worker=client}").count(), 3U);
  EXPECT_EQ(client_.worker().gauges().bytes_received, 300U);
}

TEST_F(ReportTest, sessions_beyond_the_limit__share_the_last_place) {
  for (std::uint32_t i = 1; i < engine::kSessionsCountedMax; ++i) connect(client_, "server");
  const Session beyond = connect(client_, "server");
  call(beyond, 2, 10);
  const Collected numbers(client_);
  const std::string last = std::to_string(engine::kSessionsCountedMax);
  EXPECT_EQ(numbers.at(of_peer("session.calls_started", last)), 2);
  EXPECT_FALSE(numbers.values.contains(
      of_peer("session.calls_started", std::to_string(engine::kSessionsCountedMax + 1))));
}

TEST(StallReport, lack_of_credit__is_timed_while_something_waits) {
  World world;
  HoldingService holding;
  Config few = tiny();
  few.requests_max = 1;
  few.coalesce_max = 0;  // a SEND a request, so that credits run out
  Node server = world.add("server", few);
  Node client = world.add("client", few);
  ASSERT_TRUE(server.worker().serve(kPort, holding).has_value());
  Session session = connect(client, "server");
  std::array<RecordedCall, 4> calls;
  for (RecordedCall& call : calls) session.start_call(Buffer{}, call);
  const Instant before = client.worker().now();
  client.worker().reactor().run(before + 1ms);
  const double stalled = counter(client, "stall.credit_time");
  EXPECT_GT(stalled, 0.9e6);
  EXPECT_LE(stalled, 1e6);
  EXPECT_GT(counter(client, "stall.credit"), 0);
  for (int i = 0; i < 4; ++i) {
    holding.answer();
    client.worker().reactor().run(client.worker().now() + 1ms);
  }
  for (const RecordedCall& call : calls) EXPECT_TRUE(call.succeeded());
  const double ended = counter(client, "stall.credit_time");
  client.worker().reactor().run(client.worker().now() + 5ms);
  EXPECT_EQ(counter(client, "stall.credit_time"), ended);  // nothing waits any more
}

}  // namespace
}  // namespace bx::testing
