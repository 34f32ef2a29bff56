// SPDX-License-Identifier: BSD-3-Clause
// The exporter, scraped over HTTP on the loopback interface as a Prometheus server would.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <prometheus/exposer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "libbx/exporters/prometheus/prometheus_exporter.h"
#include "tests/engine/world.h"

namespace bx::testing {
namespace {

// What GET /metrics answers at 127.0.0.1:`port`, head and body.
std::string scrape(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string text;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    const std::string get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    if (send(fd, get.data(), get.size(), 0) == static_cast<ssize_t>(get.size())) {
      std::array<char, 4096> bytes;
      for (ssize_t count; (count = recv(fd, bytes.data(), bytes.size(), 0)) > 0;) {
        text.append(bytes.data(), static_cast<std::size_t>(count));
      }
    }
  }
  close(fd);
  return text;
}

TEST(PrometheusName, prometheus_name__has_the_unit_and_the_kind) {
  using exporters::prometheus_name;
  EXPECT_EQ(prometheus_name({"messages.sent", {}, "count"}), "bx_messages_sent_total");
  EXPECT_EQ(prometheus_name({"stall.credit_time", {}, "ns"}), "bx_stall_credit_time_seconds_total");
  EXPECT_EQ(prometheus_name({"session.bytes_in", {}, "bytes"}), "bx_session_bytes_in_total");
  EXPECT_EQ(prometheus_name({"worker.memory.arena_in_use", {}, "bytes", MetricKind::gauge}),
            "bx_worker_memory_arena_in_use_bytes");
}

class PrometheusTest : public ::testing::Test {
 protected:
  PrometheusTest() {
    EXPECT_TRUE(server_.worker().serve(kPort, echo_).has_value());
    Session session = bx::testing::connect(client_, "server");
    RecordedCall call;
    session.start_call(filled(client_.worker(), 100, 1), call);
    run_dry(client_);
    EXPECT_TRUE(call.succeeded());
  }
  World world_;
  EchoService echo_;
  Node client_ = world_.add("client");
  Node server_ = world_.add("server");
};

TEST_F(PrometheusTest, scrape__gives_the_numbers_of_the_last_update) {
  prometheus::Exposer exposer("127.0.0.1:0", 1);
  const auto exporter = std::make_shared<exporters::PrometheusExporter>();
  exposer.RegisterCollectable(exporter);
  const int port = exposer.GetListeningPorts().at(0);
  EXPECT_EQ(scrape(port).find("bx_worker"), std::string::npos);
  exporter->update(client_.worker());
  exporter->update(server_.worker());
  const std::string text = scrape(port);
  const auto has = [&](const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  };
  has("# TYPE bx_worker_calls_completed_total counter\n");
  has("bx_worker_calls_completed_total{worker=\"client\"} 1\n");
  has("bx_worker_requests_served_total{worker=\"server\"} 1\n");
  has("bx_messages_sent_total{worker=\"client\",peer=\"server:7000\",lane=\"0x");
  has("# TYPE bx_session_latency_seconds histogram\n");
  has("session=\"1\",le=\"+Inf\"} 1\n");
  has("# TYPE bx_credits_available gauge\n");
  // One head a family, however many workers are in it.
  const std::string head = "# TYPE bx_worker_turns_total counter\n";
  has(head);
  EXPECT_EQ(text.find(head, text.find(head) + 1), std::string::npos);
}

TEST_F(PrometheusTest, buckets__are_cumulative) {
  exporters::PrometheusExporter exporter;
  exporter.update(client_.worker());
  bool found = false;
  for (const prometheus::MetricFamily& family : exporter.Collect()) {
    if (family.name != "bx_session_latency_seconds") continue;
    found = true;
    const auto& histogram = family.metric.at(0).histogram;
    EXPECT_EQ(histogram.sample_count, 1U);
    EXPECT_EQ(histogram.bucket.front().cumulative_count, 0U);  // a call takes two microseconds at least
    EXPECT_EQ(histogram.bucket.back().cumulative_count, 1U);
    EXPECT_DOUBLE_EQ(histogram.bucket.front().upper_bound, 1.024e-6);
  }
  EXPECT_TRUE(found);
}

TEST_F(PrometheusTest, forget__shows_the_worker_no_more) {
  exporters::PrometheusExporter exporter;
  exporter.update(client_.worker());
  EXPECT_FALSE(exporter.Collect().empty());
  exporter.forget("client");
  exporter.forget("nobody");
  EXPECT_TRUE(exporter.Collect().empty());
}

}  // namespace
}  // namespace bx::testing
