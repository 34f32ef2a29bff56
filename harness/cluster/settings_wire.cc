// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cluster/settings_wire.h"

namespace bx::harness {
namespace {

Json mix_to_json(const SizeMix& mix) {
  Json json{{"mix", static_cast<int>(mix.kind)}, {"low", mix.low}, {"high", mix.high}};
  Json& choices = json["choices"] = Json::array();
  for (const SizeMix::Choice& choice : mix.choices) choices.push_back({choice.bytes, choice.weight});
  return json;
}

SizeMix mix_from_json(const Json& json) {
  SizeMix mix;
  mix.kind = static_cast<SizeMix::Kind>(json.at("mix").get<int>());
  mix.low = json.at("low");
  mix.high = json.at("high");
  for (const Json& choice : json.at("choices")) mix.choices.push_back({choice.at(0), choice.at(1)});
  return mix;
}

Json workload_to_json(const WorkloadSpec& workload) {
  return {{"of", workload.kind},
          {"servers", workload.servers},
          {"clients", workload.clients},
          {"request", mix_to_json(workload.request)},
          {"answer", mix_to_json(workload.answer)},
          {"calls", workload.calls},
          {"warm_up", workload.warm_up},
          {"concurrency", workload.concurrency},
          {"think_time_ns", workload.think_time_ns}};
}

WorkloadSpec workload_from_json(const Json& json) {
  WorkloadSpec workload;
  workload.kind = json.at("of");
  workload.servers = json.at("servers").get<HostList>();
  workload.clients = json.at("clients").get<HostList>();
  workload.request = mix_from_json(json.at("request"));
  workload.answer = mix_from_json(json.at("answer"));
  workload.calls = json.at("calls");
  workload.warm_up = json.at("warm_up");
  workload.concurrency = json.at("concurrency");
  workload.think_time_ns = json.at("think_time_ns");
  return workload;
}

}  // namespace

Json settings_to_json(const Settings& settings) {
  Json json{{"seed", settings.fabric.seed},         {"hosts", settings.fabric.hosts},
            {"rate_bps", settings.fabric.rate_bps}, {"delay_ns", settings.fabric.delay_ns},
            {"mtu", settings.fabric.mtu},           {"payload", settings.fabric.payload}};
  Json& library = json["library"] = Json::object();
  for (const KnobSpec& knob : knobs()) library[std::string(knob.name)] = settings.library.*knob.member;
  // Whose a knob is decides whether the harness may size it.
  Json& set_by = json["set_by"] = Json::object();
  for (const auto& [key, by] : settings.set_by) set_by[key] = static_cast<int>(by.origin);
  Json& workloads = json["workloads"] = Json::array();
  for (const WorkloadSpec& workload : settings.workloads) workloads.push_back(workload_to_json(workload));
  return json;
}

Settings settings_from_json(const Json& json) {
  Settings settings;
  settings.fabric.seed = json.at("seed");
  settings.fabric.hosts = json.at("hosts");
  settings.fabric.rate_bps = json.at("rate_bps");
  settings.fabric.delay_ns = json.at("delay_ns");
  settings.fabric.mtu = json.at("mtu");
  settings.fabric.payload = json.at("payload");
  for (const KnobSpec& knob : knobs()) {
    settings.library.*knob.member = json.at("library").at(std::string(knob.name)).get<std::uint64_t>();
  }
  for (const auto& [key, origin] : json.at("set_by").items()) {
    settings.set_by[key] = {static_cast<Origin>(origin.get<int>()), {}, {}};
  }
  for (const Json& workload : json.at("workloads"))
    settings.workloads.push_back(workload_from_json(workload));
  return settings;
}

}  // namespace bx::harness
