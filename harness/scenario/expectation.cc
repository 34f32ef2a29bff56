// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/expectation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/base/text.h"
#include "harness/base/units.h"

namespace bx::harness {
namespace {

constexpr std::array kKinds{Expectation::Kind::equals, Expectation::Kind::at_most,
                            Expectation::Kind::at_least, Expectation::Kind::within};
const std::vector<std::string>& expectation_keys() {
  static const std::vector<std::string> keys{"metric", "equals",     "at_most",  "at_least", "within",
                                             "of",     "of_variant", "backends", "variant"};
  return keys;
}
const std::vector<std::string>& backend_names() {
  static const std::vector<std::string> names{"sim", "loopback", "rxe", "verbs"};
  return names;
}

// Reads one [[expect]]; remembers whether anything was wrong.
class Reader {
 public:
  Reader(const Value& table, std::string_view source, Diagnostics& diagnostics)
      : table_(table), source_(source), diagnostics_(diagnostics) {}

  std::optional<Expectation> read(const std::vector<std::string>& variant_names) {
    expectation_.place = table_.place;
    for (const Field& field : table_.fields) read_field(field, variant_names);
    // The same metric there, unless another is named.
    if (!expectation_.of_variant.empty() && expectation_.of.empty()) expectation_.of = expectation_.metric;
    if (expectation_.metric.empty() && ok_) wrong(table_.place, "an [[expect]] needs a 'metric'");
    if (conditions_ != 1 && ok_) {
      wrong(table_.place,
            fmt::format("an [[expect]] needs exactly one of equals, at_most, at_least and within; "
                        "this one has {}",
                        conditions_));
    }
    if (expectation_.kind == Expectation::Kind::within && expectation_.of.empty() && ok_) {
      wrong(table_.place,
            "'within' needs 'of', the metric to compare with, for example of = 'bound.line_rate'");
    }
    if (!expectation_.of_variant.empty() && expectation_.variants == std::vector{expectation_.of_variant} &&
        expectation_.of == expectation_.metric && ok_) {
      wrong(table_.place, fmt::format("this compares '{}' of variant '{}' with itself", expectation_.metric,
                                      expectation_.of_variant));
    }
    if (!expectation_.of.empty() && !expectation_.value_unit.empty() && ok_) {
      wrong(table_.place, "with 'of' the condition is a factor and has no unit, for example at_most = 1.5");
    }
    return ok_ ? std::optional<Expectation>(std::move(expectation_)) : std::nullopt;
  }

 private:
  void wrong(Place place, std::string message) {
    ok_ = false;
    diagnostics_.error(source_, place, std::move(message));
  }

  void read_field(const Field& field, const std::vector<std::string>& variant_names) {
    if (field.key == "metric") return read_text(field, expectation_.metric);
    if (field.key == "of") return read_text(field, expectation_.of);
    if (field.key == "of_variant") return read_variant(field, variant_names);
    if (field.key == "backends") return read_names(field, backend_names(), expectation_.backends);
    if (field.key == "variant") return read_names(field, variant_names, expectation_.variants);
    for (const Expectation::Kind kind : kKinds) {
      if (field.key == to_string(kind)) return read_condition(field, kind);
    }
    wrong(field.place, fmt::format("unknown key 'expect.{}' = {}{}", printable(field.key),
                                   field.value.shown(), did_you_mean(field.key, expectation_keys())));
  }

  void read_text(const Field& field, std::string& out) {
    if (field.value.kind != Value::Kind::text || field.value.text.empty()) {
      return wrong(field.value.place,
                   fmt::format("'expect.{}' = {} has the wrong type; allowed: the name of a metric",
                               field.key, field.value.shown()));
    }
    out = field.value.text;
  }

  void read_variant(const Field& field, const std::vector<std::string>& variant_names) {
    std::vector<std::string> names;
    if (field.value.kind == Value::Kind::list) {
      return wrong(field.value.place,
                   "'expect.of_variant' = a list has the wrong type; allowed: one variant");
    }
    read_names(field, variant_names, names);
    if (!names.empty()) expectation_.of_variant = names.front();
  }

  void read_names(const Field& field, const std::vector<std::string>& allowed,
                  std::vector<std::string>& out) {
    std::vector<const Value*> items{&field.value};
    if (field.value.kind == Value::Kind::list) {
      items.clear();
      for (const Value& item : field.value.items) items.push_back(&item);
    }
    for (const Value* item : items) {
      if (item->kind != Value::Kind::text || !std::ranges::count(allowed, item->text)) {
        wrong(item->place, fmt::format("'expect.{}' = {} does not exist; allowed: {}{}", field.key,
                                       item->shown(), join(allowed), did_you_mean(item->text, allowed)));
      } else {
        out.push_back(item->text);
      }
    }
  }

  void read_condition(const Field& field, Expectation::Kind kind) {
    ++conditions_;
    expectation_.kind = kind;
    const Value& value = field.value;
    const auto refuse = [&](std::string_view why) {
      wrong(value.place, fmt::format("'expect.{}' = {} {}", field.key, value.shown(), why));
    };
    if (value.kind == Value::Kind::integer) {
      expectation_.value = static_cast<double>(value.integer);
    } else if (value.kind == Value::Kind::real && std::isfinite(value.real)) {
      expectation_.value = value.real;
    } else if (value.kind != Value::Kind::text) {
      return refuse(
          "has the wrong type; allowed: a number, or a quantity such as '300us', '64KiB', '90Gbps', '3%'");
    } else if (const auto ratio = parse_ratio(value.text); ratio) {
      expectation_.value = *ratio;
    } else if (const auto duration = parse_duration_ns(value.text); duration) {
      expectation_.value = static_cast<double>(*duration);
      expectation_.value_unit = "ns";
    } else if (const auto bytes = parse_bytes(value.text); bytes) {
      expectation_.value = static_cast<double>(*bytes);
      expectation_.value_unit = "bytes";
    } else if (const auto rate = parse_rate_bps(value.text); rate) {
      expectation_.value = static_cast<double>(*rate);
      expectation_.value_unit = "bps";
    } else {
      return refuse("is not a quantity; write for example 0, '300us', '64KiB', '90Gbps' or '3%'");
    }
    if (kind == Expectation::Kind::within && (!expectation_.value_unit.empty() || expectation_.value < 0)) {
      refuse("is not a tolerance; write for example '3%'");
    }
  }

  const Value& table_;
  std::string_view source_;
  Diagnostics& diagnostics_;
  Expectation expectation_;
  int conditions_ = 0;
  bool ok_ = true;
};

bool compare(const Expectation& expectation, double measured, double reference) {
  switch (expectation.kind) {
    case Expectation::Kind::equals:
      return measured == expectation.value * reference;
    case Expectation::Kind::at_most:
      return measured <= expectation.value * reference;
    case Expectation::Kind::at_least:
      return measured >= expectation.value * reference;
    case Expectation::Kind::within:
      return std::abs(measured - reference) <= expectation.value * std::abs(reference);
  }
  return false;
}

std::string missing(std::string_view name, const MetricSet& metrics, std::string_view variant = {}) {
  return fmt::format("there is no metric '{}'{}{}", name,
                     variant.empty() ? "" : fmt::format(" of variant '{}'", variant),
                     did_you_mean(name, metrics.names()));
}

}  // namespace

std::string_view to_string(Expectation::Kind kind) noexcept {
  switch (kind) {
    case Expectation::Kind::equals:
      return "equals";
    case Expectation::Kind::at_most:
      return "at_most";
    case Expectation::Kind::at_least:
      return "at_least";
    case Expectation::Kind::within:
      return "within";
  }
  return "unknown";
}

bool Expectation::applies_to(std::string_view backend, std::string_view variant) const {
  const auto among = [](const std::vector<std::string>& names, std::string_view name) {
    return names.empty() || std::ranges::find(names, name) != names.end();
  };
  return among(backends, backend) && among(variants, variant);
}

std::string Expectation::condition() const {
  std::string amount = fmt::format("{:.15g}", value);
  if (value_unit == "ns") amount = format_duration_ns(static_cast<std::uint64_t>(value));
  if (value_unit == "bytes") amount = format_bytes(static_cast<std::uint64_t>(value));
  if (value_unit == "bps") amount = format_rate_bps(static_cast<std::uint64_t>(value));
  if (kind == Kind::within) amount = fmt::format("{:.6g} %", value * 100);
  const std::string_view words = kind == Kind::equals     ? "equals"
                                 : kind == Kind::at_most  ? "at most"
                                 : kind == Kind::at_least ? "at least"
                                                          : "within";
  if (of.empty()) return fmt::format("{} {}", words, amount);
  return fmt::format("{} {}{} {}{}", words, amount, kind == Kind::within ? " of" : " times", of,
                     of_variant.empty() ? "" : " of variant " + of_variant);
}

std::optional<Expectation> read_expectation(const Value& table, const std::vector<std::string>& variant_names,
                                            std::string_view source, Diagnostics& diagnostics) {
  return Reader(table, source, diagnostics).read(variant_names);
}

Verdict judge(const Expectation& expectation, const MetricSet& metrics, const MetricSet& references) {
  Verdict verdict{expectation, false, std::nullopt, std::nullopt, {}};
  const Metric* measured = metrics.find(expectation.metric);
  const Metric* reference = expectation.of.empty() ? nullptr : references.find(expectation.of);
  if (measured != nullptr) verdict.measured = *measured;
  if (reference != nullptr) verdict.reference = *reference;
  if (measured == nullptr || (reference == nullptr && !expectation.of.empty())) {
    verdict.reason = measured == nullptr ? missing(expectation.metric, metrics)
                                         : missing(expectation.of, references, expectation.of_variant);
    return verdict;
  }
  verdict.holds = compare(expectation, measured->value, reference == nullptr ? 1 : reference->value);
  return verdict;
}

std::string find_fault(const Expectation& expectation, const MetricSet& known) {
  const Metric* metric = known.find(expectation.metric);
  if (metric == nullptr) return missing(expectation.metric, known);
  if (!expectation.of.empty()) {
    const Metric* of = known.find(expectation.of);
    if (of == nullptr) return missing(expectation.of, known);
    if (of->unit != metric->unit) {
      return fmt::format("'{}' is in {} and '{}' in {}: they cannot be compared", metric->name, metric->unit,
                         of->name, of->unit);
    }
    return {};
  }
  const bool plain = metric->unit == "count" || metric->unit == "ratio";
  // Zero is zero in any unit.
  if (expectation.value_unit != (plain ? "" : metric->unit) &&
      !(expectation.value_unit.empty() && expectation.value == 0)) {
    return fmt::format("'{}' is measured in {}, which '{}' is not", metric->name, metric->unit,
                       expectation.condition());
  }
  return {};
}

}  // namespace bx::harness
