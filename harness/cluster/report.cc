// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cluster/report.h"

#include <algorithm>
#include <cmath>

namespace bx::harness {
namespace {

constexpr std::size_t kRecordsPerMessage = 20'000;

std::int64_t to_ns(Instant instant) {
  return instant.time_since_epoch().count();
}
Instant instant(std::int64_t ns) {
  return Instant{} + Duration(ns);
}

Json metrics_to_json(const MetricSet& metrics) {
  Json json = Json::array();
  for (const Metric& metric : metrics.all()) {
    json.push_back({metric.name, std::isfinite(metric.value) ? Json(metric.value) : Json(nullptr),
                    metric.unit, metric.level});
  }
  return json;
}

void metrics_from_json(const Json& json, MetricSet& metrics) {
  for (const Json& each : json) {
    const std::string name = each.at(0);
    const double value = each.at(1).is_null() ? NAN : each.at(1).get<double>();
    const std::string unit = each.at(2);
    if (each.at(3).get<bool>()) {
      metrics.level(name, value, unit);
    } else {
      metrics.metric(name, value, unit);
    }
  }
}

template <class T, class ToJson>
void add_chunks(std::vector<Json>& messages, const char* what, const std::vector<T>& records,
                ToJson to_json) {
  for (std::size_t begin = 0; begin < records.size(); begin += kRecordsPerMessage) {
    Json message{{"kind", "records"}};
    Json& list = message[what] = Json::array();
    for (std::size_t i = begin; i < std::min(records.size(), begin + kRecordsPerMessage); ++i) {
      list.push_back(to_json(records[i]));
    }
    messages.push_back(std::move(message));
  }
}

SeenCall call_from(const Json& json) {
  SeenCall seen;
  seen.call = json.at(0);
  seen.record.client = json.at(1);
  seen.record.server = json.at(2);
  const auto state = json.at(3).get<unsigned>();
  const auto code = json.at(4).get<std::size_t>();
  if (state > static_cast<unsigned>(CallState::failed) || code >= kErrorCodes) {
    throw Json::out_of_range::create(401, "a state or error code that does not exist", &json);
  }
  seen.record.state = static_cast<CallState>(state);
  seen.code = static_cast<ErrorCode>(code);
  seen.record.start = instant(json.at(5));
  seen.record.end = instant(json.at(6));
  return seen;
}

}  // namespace

Json to_json(const ReadyReport& ready) {
  Json json{{"kind", "ready"}, {"counters", metrics_to_json(ready.counters)}};
  Json& configs = json["configs"] = Json::array();
  for (const Config& config : ready.configs) {
    Json values = Json::array();
    for (const KnobSpec& knob : knobs()) values.push_back(config.*knob.member);
    configs.push_back(std::move(values));
  }
  return json;
}

ReadyReport ready_from(const Json& json) {
  ReadyReport ready;
  metrics_from_json(json.at("counters"), ready.counters);
  for (const Json& values : json.at("configs")) {
    Config config;
    std::size_t i = 0;
    for (const KnobSpec& knob : knobs()) config.*knob.member = values.at(i++).get<std::uint64_t>();
    ready.configs.push_back(config);
  }
  return ready;
}

Json to_json(const Beat& beat) {
  return {{"kind", "beat"},          {"now", beat.now_ns},          {"bytes", beat.bytes},
          {"started", beat.started}, {"completed", beat.completed}, {"progress", beat.progress},
          {"gauges", beat.gauges}};
}

Beat beat_from(const Json& json) {
  return {json.at("now"),       json.at("bytes"),    json.at("started"),
          json.at("completed"), json.at("progress"), json.at("gauges").get<std::array<std::uint64_t, 5>>()};
}

std::vector<Json> to_messages(const HostReport& report) {
  std::vector<Json> messages;
  add_chunks(messages, "calls", report.calls, [](const SeenCall& seen) -> Json {
    const CallRecord& record = seen.record;
    return {seen.call,
            record.client,
            record.server,
            static_cast<unsigned>(record.state),
            static_cast<unsigned>(seen.code),
            to_ns(record.start),
            to_ns(record.end)};
  });
  add_chunks(messages, "requests", report.requests, [](const SeenRequest& seen) -> Json {
    return {seen.call, seen.server, seen.at_ns};
  });
  Json last{{"kind", "report"},
            {"metrics", metrics_to_json(report.metrics)},
            {"cpu_ns", report.cpu_ns},
            {"waits", report.waits}};
  Json& breaches = last["breaches"] = Json::array();
  for (const Breach& breach : report.breaches) breaches.push_back({breach.promise, breach.detail});
  messages.push_back(std::move(last));
  return messages;
}

void add_message(const Json& message, HostReport& report) {
  if (message.at("kind") == "records") {
    for (const Json& call : message.value("calls", Json::array())) report.calls.push_back(call_from(call));
    for (const Json& request : message.value("requests", Json::array())) {
      report.requests.push_back({request.at(0), request.at(1), request.at(2)});
    }
    return;
  }
  metrics_from_json(message.at("metrics"), report.metrics);
  report.cpu_ns = message.at("cpu_ns");
  report.waits = message.at("waits").get<std::vector<std::string>>();
  for (const Json& breach : message.at("breaches")) report.breaches.push_back({breach.at(0), breach.at(1)});
}

}  // namespace bx::harness
