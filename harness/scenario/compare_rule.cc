// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/compare_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/text.h"
#include "harness/base/units.h"

namespace bx::harness {
namespace {

const std::vector<std::string>& rule_keys() {
  static const std::vector<std::string> keys{"metric", "within", "or_by", "over", "judged", "variant"};
  return keys;
}

// Reads one [[compare]]; remembers whether anything was wrong.
class Reader {
 public:
  Reader(std::string_view source, Diagnostics& diagnostics) : source_(source), diagnostics_(diagnostics) {}

  std::optional<CompareRule> read(const Value& table, const std::vector<std::string>& variant_names) {
    for (const Field& field : table.fields) read_field(field, variant_names);
    if (rule_.metric.empty() && ok_) wrong(table.place, "a [[compare]] needs a 'metric'");
    return ok_ ? std::optional<CompareRule>(std::move(rule_)) : std::nullopt;
  }

 private:
  void wrong(Place place, std::string message) {
    ok_ = false;
    diagnostics_.error(source_, place, std::move(message));
  }
  void refuse(const Field& field, std::string_view why) {
    wrong(field.value.place, fmt::format("'compare.{}' = {} {}", field.key, field.value.shown(), why));
  }

  void read_field(const Field& field, const std::vector<std::string>& variant_names) {
    const Value& value = field.value;
    if (field.key == "metric") {
      if (value.kind != Value::Kind::text || value.text.empty()) {
        return refuse(field, "has the wrong type; allowed: the name of a metric");
      }
      rule_.metric = value.text;
    } else if (field.key == "within") {
      read_within(field);
    } else if (field.key == "or_by") {
      read_or_by(field);
    } else if (field.key == "over") {
      if (value.text != "each" && value.text != "mean") {
        return refuse(field, "does not exist; allowed: each, mean");
      }
      rule_.over = value.text == "mean" ? CompareRule::Over::mean : CompareRule::Over::each;
    } else if (field.key == "judged") {
      if (value.kind != Value::Kind::flag) return refuse(field, "has the wrong type; allowed: true or false");
      rule_.judged = value.flag;
    } else if (field.key == "variant") {
      read_variants(field, variant_names);
    } else {
      wrong(field.place, fmt::format("unknown key 'compare.{}' = {}{}", printable(field.key), value.shown(),
                                     did_you_mean(field.key, rule_keys())));
    }
  }

  void read_within(const Field& field) {
    const Parsed<double> ratio = field.value.kind == Value::Kind::text
                                     ? parse_ratio(field.value.text)
                                     : Parsed<double>(field.value.kind == Value::Kind::integer
                                                          ? static_cast<double>(field.value.integer)
                                                          : field.value.real);
    const bool number = field.value.kind == Value::Kind::integer || field.value.kind == Value::Kind::real;
    if ((!number && field.value.kind != Value::Kind::text) || !ratio || !std::isfinite(*ratio) ||
        *ratio < 0) {
      return refuse(field, "is not a tolerance; write for example '10%'");
    }
    rule_.within = *ratio;
  }

  void read_or_by(const Field& field) {
    const Value& value = field.value;
    const auto take = [this](std::uint64_t amount, std::string_view unit) {
      rule_.or_by = static_cast<double>(amount);
      rule_.or_by_unit = unit;
    };
    if (value.kind == Value::Kind::integer && value.integer >= 0) {
      rule_.or_by = static_cast<double>(value.integer);
    } else if (value.kind == Value::Kind::real && std::isfinite(value.real) && value.real >= 0) {
      rule_.or_by = value.real;
    } else if (value.kind != Value::Kind::text) {
      refuse(field, "is not a difference; write for example 3, '50us' or '4KiB'");
    } else if (const auto duration = parse_duration_ns(value.text); duration) {
      take(*duration, "ns");
    } else if (const auto bytes = parse_bytes(value.text); bytes) {
      take(*bytes, "bytes");
    } else if (const auto rate = parse_rate_bps(value.text); rate) {
      take(*rate, "bps");
    } else {
      refuse(field, "is not a quantity; write for example 3, '50us' or '4KiB'");
    }
  }

  void read_variants(const Field& field, const std::vector<std::string>& names) {
    std::vector<Value> items{field.value};
    if (field.value.kind == Value::Kind::list) items = field.value.items;
    for (const Value& item : items) {
      if (item.kind != Value::Kind::text || std::ranges::count(names, item.text) == 0) {
        wrong(item.place, fmt::format("'compare.variant' = {} does not exist; allowed: {}{}", item.shown(),
                                      join(names), did_you_mean(item.text, names)));
      } else {
        rule_.variants.push_back(item.text);
      }
    }
  }

  std::string_view source_;
  Diagnostics& diagnostics_;
  CompareRule rule_;
  bool ok_ = true;
};

}  // namespace

bool CompareRule::applies_to(std::string_view variant) const {
  return variants.empty() || std::ranges::find(variants, variant) != variants.end();
}

std::string_view to_string(CompareRule::Over over) noexcept {
  return over == CompareRule::Over::mean ? "mean" : "each";
}

std::optional<CompareRule> read_compare_rule(const Value& table,
                                             const std::vector<std::string>& variant_names,
                                             std::string_view source, Diagnostics& diagnostics) {
  return Reader(source, diagnostics).read(table, variant_names);
}

}  // namespace bx::harness
