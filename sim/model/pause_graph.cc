// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/pause_graph.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace bx::sim {
namespace {

struct Place {
  Node node;
  std::uint16_t port = 0;
};

std::string name_of(const TopologyPlan& plan, const Place& place) {
  const std::string name = node_name(plan, place.node);
  return place.node.kind == NodeKind::host ? name : name + ':' + std::to_string(place.port);
}

std::string age_of(Picoseconds age) {
  return std::to_string(age.count() / 1'000'000) + " us";
}

class Builder {
 public:
  Builder(const Topology& topology, Picoseconds now)
      : topology_(topology), plan_(topology.plan()), numbers_(link_ports(topology.plan())), now_(now) {}

  PauseGraph build() {
    for (std::size_t link = 0; link < plan_.links.size(); ++link) {
      for (std::size_t end = 0; end < 2; ++end) add_paused(link, end);
    }
    for (std::size_t i = 0; i < graph_.ports.size(); ++i) add_waits(i);
    find_cycle();
    return std::move(graph_);
  }

 private:
  // (switch, port, priority) of a paused egress.
  using Egress = std::tuple<std::uint16_t, std::uint16_t, std::uint8_t>;

  [[nodiscard]] Place place(std::size_t link, std::size_t end) const {
    return {plan_.links[link].ends[end], numbers_[link][end]};
  }

  void add_paused(std::size_t link, std::size_t end) {
    const Port* port = topology_.port_of(link, end);
    if (port == nullptr || port->paused_mask() == 0) return;
    const Place here = place(link, end);
    const Place there = place(link, 1 - end);
    for (std::uint8_t p = 0; p < kPriorities; ++p) {
      if (!port->paused(p)) continue;
      PausedPort paused{.name = name_of(plan_, here),
                        .by = name_of(plan_, there),
                        .priority = p,
                        .age = now_ - port->paused_since(p),
                        .by_host = there.node.kind == NodeKind::host};
      if (here.node.kind == NodeKind::fabric_switch) {
        paused.bytes_waiting = topology_.switch_at(here.node.index).queue(here.port, p).bytes;
        egresses_[{here.node.index, here.port, p}] = graph_.ports.size();
      }
      peers_.push_back(there);
      graph_.ports.push_back(std::move(paused));
    }
  }

  // The paused queues of the pausing switch that hold what came from port `index`.
  void add_waits(std::size_t index) {
    const Place by = peers_[index];
    if (by.node.kind != NodeKind::fabric_switch) return;
    const Switch& fabric = topology_.switch_at(by.node.index);
    const std::uint8_t priority = graph_.ports[index].priority;
    for (std::uint16_t out = 0; out < fabric.ports(); ++out) {
      const auto paused = egresses_.find({by.node.index, out, priority});
      if (paused == egresses_.end() || !fabric.holds(out, priority, by.port)) continue;
      graph_.ports[index].waits_for.push_back(paused->second);
    }
  }

  void find_cycle() {
    enum class Mark : std::uint8_t { fresh, open, closed };
    std::vector<Mark> marks(graph_.ports.size(), Mark::fresh);
    // Depth first, with the path on a stack of (port, next of its waits to look at).
    for (std::size_t root = 0; root < marks.size() && graph_.cycle.empty(); ++root) {
      if (marks[root] != Mark::fresh) continue;
      std::vector<std::pair<std::size_t, std::size_t>> path{{root, 0}};
      marks[root] = Mark::open;
      while (!path.empty()) {
        auto& [at, next] = path.back();
        if (next == graph_.ports[at].waits_for.size()) {
          marks[at] = Mark::closed;
          path.pop_back();
          continue;
        }
        const std::size_t to = graph_.ports[at].waits_for[next++];
        if (marks[to] == Mark::open) {
          const auto from =
              std::find_if(path.begin(), path.end(), [&](auto& step) { return step.first == to; });
          for (auto step = from; step != path.end(); ++step) graph_.cycle.push_back(step->first);
          return;
        }
        if (marks[to] != Mark::fresh) continue;
        marks[to] = Mark::open;
        path.emplace_back(to, 0);
      }
    }
  }

  const Topology& topology_;
  const TopologyPlan& plan_;
  std::vector<std::array<std::uint16_t, 2>> numbers_;
  Picoseconds now_;
  PauseGraph graph_;
  std::vector<Place> peers_;  // of graph_.ports
  std::map<Egress, std::size_t> egresses_;
};

// How many ports wait for `root`, at any remove.
std::size_t count_behind(const PauseGraph& graph, std::size_t root) {
  std::vector<bool> behind(graph.ports.size(), false);
  behind[root] = true;
  std::size_t count = 0;
  for (bool grew = true; grew;) {
    grew = false;
    for (std::size_t i = 0; i < behind.size(); ++i) {
      const auto& waits = graph.ports[i].waits_for;
      if (behind[i] || std::none_of(waits.begin(), waits.end(), [&](std::size_t w) { return behind[w]; })) {
        continue;
      }
      behind[i] = grew = true;
      ++count;
    }
  }
  return count;
}

}  // namespace

PauseGraph find_pauses(const Topology& topology, Picoseconds now) {
  return Builder(topology, now).build();
}

std::vector<std::string> describe(const PauseGraph& graph, std::size_t lines_max) {
  std::vector<std::string> lines;
  if (!graph.cycle.empty()) {
    std::string text =
        "PFC deadlock in priority " + std::to_string(graph.ports[graph.cycle.front()].priority) + ": ";
    for (const std::size_t i : graph.cycle) text += graph.ports[i].name + " waits for ";
    lines.push_back(text + graph.ports[graph.cycle.front()].name);
  }
  for (std::size_t i = 0; i < graph.ports.size(); ++i) {
    const PausedPort& port = graph.ports[i];
    if (!port.by_host) continue;
    lines.push_back(port.by + " pauses " + port.name + " in priority " + std::to_string(port.priority) +
                    " for " + age_of(port.age) + "; " + std::to_string(port.bytes_waiting) +
                    " bytes wait there, and behind them " + std::to_string(count_behind(graph, i)) +
                    " paused ports");
  }
  for (const PausedPort& port : graph.ports) {
    if (port.by_host) continue;
    std::string text = port.name + " is paused by " + port.by + " in priority " +
                       std::to_string(port.priority) + " for " + age_of(port.age);
    for (std::size_t w = 0; w < port.waits_for.size(); ++w) {
      text += (w == 0 ? ", which waits for " : ", ") + graph.ports[port.waits_for[w]].name;
    }
    lines.push_back(text);
  }
  if (lines.size() > lines_max) {
    const std::size_t more = lines.size() - lines_max + 1;
    lines.resize(lines_max - 1);
    lines.push_back("and " + std::to_string(more) + " more paused ports");
  }
  return lines;
}

}  // namespace bx::sim
