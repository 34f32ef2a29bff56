// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/topology_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/scenario/document.h"

namespace bx::harness {
namespace {

constexpr std::string_view kHost = "host";
constexpr std::size_t kLinksMax = 65536;
constexpr std::uint64_t kRateMin = 1'000'000;  // as of fabric.rate
constexpr std::uint64_t kRateMax = 3'200'000'000'000;
constexpr std::uint64_t kDelayMaxNs = 1'000'000'000;

class Reader {
 public:
  Reader(const Value& root, const std::string& file, Diagnostics& diagnostics)
      : root_(root), file_(file), diagnostics_(diagnostics) {}

  sim::TopologyPlan read() {
    check_keys(root_, {"hosts", "switches", "rate", "delay", "link"}, "");
    read_hosts();
    read_switches();
    read_speed(root_, speed_);
    has_delay_ = root_.find("delay") != nullptr;
    read_links();
    if (const Result<> checked = sim::check_plan(plan_); !checked && good_) {
      wrong({1, 1}, fmt::format("this is no network: {}", checked.error().detail));
    }
    return std::move(plan_);
  }

 private:
  void wrong(Place place, std::string message) {
    good_ = false;
    diagnostics_.error(file_, place, std::move(message));
  }

  void check_keys(const Value& table, const std::vector<std::string>& keys, std::string_view prefix) {
    for (const Field& field : table.fields) {
      if (std::ranges::count(keys, field.key) != 0) continue;
      wrong(field.place, fmt::format("unknown key '{}{}' = {}{}", prefix, printable(field.key),
                                     field.value.shown(), did_you_mean(field.key, keys)));
    }
  }

  // A whole number from 1 to `most`.
  std::uint64_t read_count(const Value& value, std::string_view key, std::uint64_t most) {
    const bool fits = value.kind == Value::Kind::integer && value.integer >= 1 &&
                      static_cast<std::uint64_t>(value.integer) <= most;
    if (fits) return static_cast<std::uint64_t>(value.integer);
    wrong(value.place, fmt::format("'{}' = {} is not a whole number from 1 to {}", key, value.shown(), most));
    return 1;
  }

  void read_hosts() {
    const Value* hosts = root_.find("hosts");
    if (hosts == nullptr) return wrong({1, 1}, "a topology needs 'hosts', for example hosts = 16");
    plan_.hosts = static_cast<std::uint16_t>(read_count(*hosts, "hosts", sim::kHostsMax));
  }

  void read_switches() {
    const Value* switches = root_.find("switches");
    if (switches == nullptr || switches->kind != Value::Kind::list || switches->items.empty()) {
      return wrong(switches == nullptr ? Place{1, 1} : switches->place,
                   "a topology needs 'switches', a list of names, for example switches = ['left', 'right']");
    }
    for (const Value& item : switches->items) {
      const bool named = item.kind == Value::Kind::text && !item.text.empty() &&
                         item.text.find_first_of(":- .") == std::string::npos &&
                         !item.text.starts_with(kHost);
      if (!named) {
        wrong(item.place, fmt::format("{} is no name of a switch: a word without ':', '-', '.' and blanks, "
                                      "that does not begin like a host's",
                                      item.shown()));
      } else if (std::ranges::count(plan_.switches, item.text) != 0) {
        wrong(item.place, fmt::format("there is already a switch '{}'", item.text));
      }
      plan_.switches.push_back(item.text);
    }
  }

  void read_speed(const Value& table, sim::LinkSpeed& speed) {
    if (const Value* rate = table.find("rate")) {
      const Parsed<std::uint64_t> bps = parse_rate_bps(rate->text);
      if (rate->kind != Value::Kind::text || !bps || *bps < kRateMin || *bps > kRateMax) {
        wrong(rate->place,
              fmt::format("'rate' = {} is not a rate from 1Mbps to 3200Gbps, as '100Gbps'", rate->shown()));
      } else {
        speed.rate.bits_per_second = *bps;
      }
    }
    if (const Value* delay = table.find("delay")) {
      const Parsed<std::uint64_t> ns = parse_duration_ns(delay->text);
      if (delay->kind != Value::Kind::text || !ns || *ns > kDelayMaxNs) {
        wrong(delay->place, fmt::format("'delay' = {} is not a duration up to 1s, as '1us'", delay->shown()));
      } else {
        speed.delay = sim::nanoseconds{static_cast<std::int64_t>(*ns)};
      }
    }
  }

  void read_links() {
    const Value* links = root_.find("link");
    if (links == nullptr || links->kind != Value::Kind::list) {
      return wrong(links == nullptr ? Place{1, 1} : links->place, "a topology needs links; write [[link]]");
    }
    for (const Value& link : links->items) {
      if (link.kind == Value::Kind::table) {
        read_link(link);
      } else {
        wrong(link.place, fmt::format("{} is not a table; write [[link]]", link.shown()));
      }
    }
  }

  void read_link(const Value& link) {
    check_keys(link, {"ends", "rate", "delay", "count"}, "link.");
    sim::LinkSpeed speed = speed_;
    read_speed(link, speed);
    if (speed.rate.bits_per_second == 0)
      wrong(link.place,
            "this link has no rate, and the file none for all; write for example rate = '100Gbps'");
    if (!has_delay_ && link.find("delay") == nullptr)
      wrong(link.place,
            "this link has no delay, and the file none for all; write for example delay = '1us', or '0ns'");
    const Value* ends = link.find("ends");
    if (ends == nullptr || ends->kind != Value::Kind::list || ends->items.size() != 2) {
      return wrong(ends == nullptr ? link.place : ends->place,
                   "a link has two ends, for example ends = ['host0', 'left']");
    }
    const Value* count = link.find("count");
    const std::uint64_t parallel =
        count == nullptr ? 1 : read_count(*count, "link.count", sim::kSwitchPortsMax);
    for (const sim::Node a : read_nodes(ends->items[0])) {
      for (const sim::Node b : read_nodes(ends->items[1])) {
        for (std::uint64_t i = 0; i < parallel; ++i) add(link, {{a, b}, speed});
      }
    }
  }

  void add(const Value& link, const sim::LinkPlan& plan) {
    if (plan_.links.size() == kLinksMax)
      return wrong(link.place, fmt::format("more than {} links", kLinksMax));
    if (plan_.links.size() < kLinksMax) plan_.links.push_back(plan);
  }

  // "left", "host3" or "host0..7".
  std::vector<sim::Node> read_nodes(const Value& value) {
    const std::string& name = value.text;
    if (value.kind == Value::Kind::text && name.starts_with(kHost) && name.find("..") != std::string::npos) {
      const Parsed<HostList> hosts = parse_hosts(name.substr(kHost.size()));
      if (hosts && !hosts->empty() && hosts->back() < plan_.hosts) {
        std::vector<sim::Node> nodes;
        for (const std::uint32_t host : *hosts) nodes.push_back(sim::host_node(host));
        return nodes;
      }
    }
    if (const auto node = sim::find_node(plan_, name)) return {*node};
    wrong(value.place,
          fmt::format("a link leads to {}, which does not exist: there are host0 to host{} and {}",
                      value.shown(), plan_.hosts == 0 ? 0 : plan_.hosts - 1, join(plan_.switches)));
    return {};
  }

  const Value& root_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  sim::TopologyPlan plan_;
  sim::LinkSpeed speed_;  // of links that do not say otherwise
  bool has_delay_ = false;
  bool good_ = true;
};

}  // namespace

std::optional<sim::TopologyPlan> parse_topology(std::string_view text, const std::string& file,
                                                Diagnostics& diagnostics) {
  const std::size_t errors_before = diagnostics.count();
  const Value root = parse_toml(text, file, diagnostics);
  if (diagnostics.count() != errors_before) return std::nullopt;
  sim::TopologyPlan plan = Reader(root, file, diagnostics).read();
  if (diagnostics.count() != errors_before) return std::nullopt;
  return plan;
}

std::optional<sim::TopologyPlan> load_topology(const std::string& file, Diagnostics& diagnostics) {
  std::string text;
  if (!read_text_file(file, text, diagnostics)) return std::nullopt;
  return parse_topology(text, file, diagnostics);
}

std::string beside(const std::string& file, const std::string& name) {
  return (std::filesystem::path(file).parent_path() / name).string();
}

}  // namespace bx::harness
