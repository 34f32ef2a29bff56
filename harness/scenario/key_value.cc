// SPDX-License-Identifier: GPL-2.0-only
// convert() of key_table.h: from what stands in a file to a checked value.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/text.h"
#include "harness/scenario/key_table.h"

namespace bx::harness {
namespace {

using Kind = Value::Kind;

constexpr int kAlphaLog2Min = -7;
constexpr int kAlphaLog2Max = 4;
constexpr std::size_t kSizeChoicesMax = 64;
constexpr std::uint64_t kWeightMax = 1'000'000;

tl::unexpected<std::string> wrong_type(const KeySpec& key) {
  return tl::unexpected(fmt::format("has the wrong type; allowed: {}", key.allowed()));
}

Parsed<std::uint64_t> in_range(const KeySpec& key, std::uint64_t number) {
  if (number >= key.minimum && number <= key.maximum) return number;
  return tl::unexpected(fmt::format("is out of range; allowed: {}", key.allowed()));
}

Parsed<std::uint64_t> read_number(const KeySpec& key, const Value& value) {
  if (value.kind == Kind::text) {
    switch (key.kind) {
      case KeyKind::duration:
        return parse_duration_ns(value.text);
      case KeyKind::bytes:
        return parse_bytes(value.text);
      case KeyKind::rate:
        return parse_rate_bps(value.text);
      default:
        return wrong_type(key);
    }
  }
  if (value.kind != Kind::integer) return wrong_type(key);
  if (value.integer < 0) return tl::unexpected(fmt::format("is negative; allowed: {}", key.allowed()));
  if (key.kind == KeyKind::duration && value.integer != 0) {
    return tl::unexpected(std::string("has no unit; write for example '1us' (units: ns, us, ms, s)"));
  }
  if (key.kind == KeyKind::rate) {
    return tl::unexpected(
        std::string("has no unit; write for example '100Gbps' (units: bps, kbps, Mbps, Gbps, Tbps)"));
  }
  return static_cast<std::uint64_t>(value.integer);
}

Parsed<int> read_power_of_two(const KeySpec& key, const Value& value) {
  double number = 0;
  if (value.kind == Kind::integer) {
    number = static_cast<double>(value.integer);
  } else if (value.kind == Kind::real) {
    number = value.real;
  } else if (value.kind == Kind::text && value.text.starts_with("1/")) {
    const Parsed<std::uint64_t> divisor = parse_count(std::string_view(value.text).substr(2));
    if (!divisor || *divisor == 0) return wrong_type(key);
    number = 1.0 / static_cast<double>(*divisor);
  } else {
    return wrong_type(key);
  }
  int exponent = 0;
  if (std::frexp(number, &exponent) != 0.5 || exponent - 1 < kAlphaLog2Min || exponent - 1 > kAlphaLog2Max) {
    return tl::unexpected(fmt::format("is not allowed; allowed: {}", key.allowed()));
  }
  return exponent - 1;
}

Parsed<double> read_real(const KeySpec& key, const Value& value) {
  double number = value.real;
  if (value.kind == Kind::integer) {
    number = static_cast<double>(value.integer);
  } else if (value.kind != Kind::real) {
    return wrong_type(key);
  }
  if (!(number >= 0 && number <= key.real_maximum)) {
    return tl::unexpected(fmt::format("is out of range; allowed: {}", key.allowed()));
  }
  return number;
}

Parsed<HostList> read_hosts(const KeySpec& key, const Value& value) {
  if (value.kind == Kind::text) return parse_hosts(value.text);
  if (value.kind != Kind::integer) return wrong_type(key);
  return parse_hosts(fmt::format("{}", value.integer));
}

// "64B", 64, or { size = "64B", weight = 3 }.
Parsed<SizeMix::Choice> read_choice_of_size(const Value& item) {
  SizeMix::Choice choice;
  const Value* size = &item;
  if (item.kind == Kind::table) {
    for (const Field& field : item.fields) {
      if (field.key != "size" && field.key != "weight") {
        return tl::unexpected(
            fmt::format("has an item with the unknown key '{}'; an item has size and weight", field.key));
      }
    }
    size = item.find("size");
    if (size == nullptr) return tl::unexpected(std::string("has an item without size"));
    if (const Value* weight = item.find("weight")) {
      if (weight->kind != Kind::integer || weight->integer < 1 ||
          static_cast<std::uint64_t>(weight->integer) > kWeightMax) {
        return tl::unexpected(fmt::format("has the weight {}; a weight is a whole number from 1 to {}",
                                          weight->shown(), kWeightMax));
      }
      choice.weight = static_cast<std::uint64_t>(weight->integer);
    }
  }
  if (size->kind == Kind::integer && size->integer >= 0) {
    choice.bytes = static_cast<std::uint64_t>(size->integer);
    return choice;
  }
  if (size->kind != Kind::text) {
    return tl::unexpected(
        std::string("has an item that is not a size; write for example '64KiB' or "
                    "{ size = '64KiB', weight = 3 }"));
  }
  const Parsed<std::uint64_t> bytes = parse_bytes(size->text);
  if (!bytes) return tl::unexpected(fmt::format("has the item {}, which {}", size->shown(), bytes.error()));
  choice.bytes = *bytes;
  return choice;
}

Parsed<SizeMix> read_sizes(const KeySpec& key, const Value& value) {
  SizeMix mix;
  if (value.kind == Kind::text) {
    Parsed<SizeMix> parsed = parse_size_mix(value.text);
    if (!parsed) return parsed;
    mix = std::move(*parsed);
  } else if (value.kind == Kind::integer && value.integer >= 0) {
    mix = SizeMix::fixed(static_cast<std::uint64_t>(value.integer));
  } else if (value.kind == Kind::list) {
    if (value.items.empty() || value.items.size() > kSizeChoicesMax) {
      return tl::unexpected(
          fmt::format("has {} items; a list of sizes has 1 to {}", value.items.size(), kSizeChoicesMax));
    }
    mix.kind = SizeMix::Kind::list;
    for (const Value& item : value.items) {
      const Parsed<SizeMix::Choice> choice = read_choice_of_size(item);
      if (!choice) return tl::unexpected(choice.error());
      mix.choices.push_back(*choice);
    }
  } else {
    return wrong_type(key);
  }
  if (mix.smallest() < key.minimum || mix.largest() > key.maximum) {
    return tl::unexpected(fmt::format("is out of range; allowed: {}", key.allowed()));
  }
  return mix;
}

// Of a list or table; the error says which item is meant.
Parsed<std::uint64_t> read_item(const KeySpec& key, const Value& item, std::string_view name) {
  if (item.kind == Kind::integer && item.integer >= 0) {
    const auto number = static_cast<std::uint64_t>(item.integer);
    if (number >= key.minimum && number <= key.maximum) return number;
  }
  return tl::unexpected(fmt::format("has {} {}; allowed: {}", name, item.shown(), key.allowed()));
}

// What a table does not name stays as it is by default.
Parsed<std::vector<std::uint64_t>> read_numbers(const KeySpec& key, const Value& value) {
  std::vector<std::uint64_t> numbers = key.numbers;
  const auto keep = [&](std::size_t index, const Value& item, std::string_view name) -> Parsed<void> {
    const Parsed<std::uint64_t> number = read_item(key, item, name);
    if (!number) return tl::unexpected(number.error());
    numbers[index] = *number;
    return {};
  };
  if (value.kind == Kind::table) {
    for (const Field& field : value.fields) {
      const Parsed<std::uint64_t> index = parse_count(field.key);
      if (!index || *index >= numbers.size() || field.key != std::to_string(*index)) {
        return tl::unexpected(fmt::format("has the unknown index '{}'; an index is 0 to {}",
                                          printable(field.key), numbers.size() - 1));
      }
      const Parsed<void> kept = keep(*index, field.value, fmt::format("{} =", field.key));
      if (!kept) return tl::unexpected(kept.error());
    }
    return numbers;
  }
  if (value.kind != Kind::list) return wrong_type(key);
  if (value.items.size() != numbers.size()) {
    return tl::unexpected(fmt::format("has {} items; allowed: {}", value.items.size(), key.allowed()));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Parsed<void> kept = keep(i, value.items[i], "the item");
    if (!kept) return tl::unexpected(kept.error());
  }
  return numbers;
}

Parsed<std::uint64_t> read_members(const KeySpec& key, const Value& value) {
  if (value.kind != Kind::list) return wrong_type(key);
  std::uint64_t bits = 0;
  for (const Value& item : value.items) {
    const Parsed<std::uint64_t> member = read_item(key, item, "the item");
    if (!member) return member;
    if (((bits >> *member) & 1U) != 0) return tl::unexpected(fmt::format("has {} twice", *member));
    bits |= 1ULL << *member;
  }
  return bits;
}

// Fills `out`; the error is a sentence without its subject.
Parsed<Converted> convert_value(const KeySpec& key, const Value& value) {
  Converted out;
  const auto keep = [&out](auto& member, auto parsed) -> Parsed<Converted> {
    if (!parsed) return tl::unexpected(parsed.error());
    member = std::move(*parsed);
    return out;
  };
  if (key.zero_is_auto && value.kind == Kind::text && value.text == "auto") {
    out.is_auto = true;
    return out;
  }
  switch (key.kind) {
    case KeyKind::flag:
      if (value.kind != Kind::flag) return wrong_type(key);
      out.number = value.flag ? 1 : 0;
      return out;
    case KeyKind::choice: {
      if (value.kind != Kind::text) return wrong_type(key);
      const auto choice = std::ranges::find(key.choices, value.text);
      if (choice == key.choices.end()) {
        return tl::unexpected(fmt::format("is not available; {}", key.allowed()));
      }
      out.number = static_cast<std::uint64_t>(choice - key.choices.begin());
      out.text = value.text;
      return out;
    }
    case KeyKind::text:
      if (value.kind != Kind::text) return wrong_type(key);
      out.text = value.text;
      return out;
    case KeyKind::real:
      return keep(out.real, read_real(key, value));
    case KeyKind::power_of_two:
      return keep(out.exponent, read_power_of_two(key, value));
    case KeyKind::hosts:
      return keep(out.hosts, read_hosts(key, value));
    case KeyKind::sizes:
      return keep(out.sizes, read_sizes(key, value));
    case KeyKind::numbers:
      return keep(out.numbers, read_numbers(key, value));
    case KeyKind::members:
      return keep(out.number, read_members(key, value));
    case KeyKind::count:
    case KeyKind::duration:
    case KeyKind::bytes:
    case KeyKind::rate:
      break;
  }
  const Parsed<std::uint64_t> number = read_number(key, value);
  if (!number) return tl::unexpected(number.error());
  return keep(out.number, in_range(key, *number));
}

}  // namespace

Parsed<Converted> convert(const KeySpec& key, const Value& value) {
  Parsed<Converted> converted = convert_value(key, value);
  if (converted) return converted;
  return tl::unexpected(fmt::format("'{}' = {} {}", key.name, value.shown(), converted.error()));
}

}  // namespace bx::harness
