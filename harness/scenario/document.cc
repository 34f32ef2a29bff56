// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/document.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "harness/base/text.h"

namespace bx::harness {
namespace {

Place place_of(const toml::source_region& region) {
  return {region.begin.line, region.begin.column};
}

Value convert(const toml::node& node);

Value convert_table(const toml::table& table) {
  Value value;
  value.kind = Value::Kind::table;
  for (const auto& [key, child] : table) {
    value.fields.push_back({std::string(key.str()), place_of(key.source()), convert(child)});
  }
  std::ranges::stable_sort(value.fields, {}, &Field::place);
  return value;
}

Value convert(const toml::node& node) {
  Value value;
  if (const toml::table* table = node.as_table()) {
    value = convert_table(*table);
  } else if (const toml::array* array = node.as_array()) {
    value.kind = Value::Kind::list;
    for (const toml::node& item : *array) value.items.push_back(convert(item));
  } else if (const auto* text = node.as_string()) {
    value.kind = Value::Kind::text;
    value.text = text->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = Value::Kind::integer;
    value.integer = integer->get();
  } else if (const auto* real = node.as_floating_point()) {
    value.kind = Value::Kind::real;
    value.real = real->get();
  } else if (const auto* flag = node.as_boolean()) {
    value.kind = Value::Kind::flag;
    value.flag = flag->get();
  } else {
    value.kind = Value::Kind::time;
  }
  value.place = place_of(node.source());
  return value;
}

// A value from outside a file stands nowhere.
void forget_places(Value& value) {
  value.place = {};
  for (Value& item : value.items) forget_places(item);
  for (Field& field : value.fields) {
    field.place = {};
    forget_places(field.value);
  }
}

Place place_of_offset(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {static_cast<std::uint32_t>(1 + std::ranges::count(before, '\n')),
          static_cast<std::uint32_t>(1 + offset - line_start)};
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  const auto field = std::ranges::find(fields, key, &Field::key);
  return field == fields.end() ? nullptr : &field->value;
}

std::string Value::shown() const {
  switch (kind) {
    case Kind::flag:
      return flag ? "true" : "false";
    case Kind::integer:
      return fmt::format("{}", integer);
    case Kind::real:
      return fmt::format("{}", real);
    case Kind::text:
      return fmt::format("'{}'", printable(text));
    case Kind::list:
      return "a list";
    case Kind::table:
      return "a table";
    case Kind::time:
      return "a date or time";
  }
  return {};
}

Value parse_toml(std::string_view text, std::string_view source, Diagnostics& diagnostics) {
  try {
    return convert_table(toml::parse(text, source));
  } catch (const toml::parse_error& error) {
    diagnostics.error(source, place_of(error.source()),
                      fmt::format("not valid TOML: {}", printable(error.description(), 300)));
  }
  Value nothing;
  nothing.kind = Value::Kind::table;
  return nothing;
}

Value parse_loose_value(std::string_view text) {
  try {
    // A newline would let the value smuggle in further keys.
    if (text.find('\n') == std::string_view::npos) {
      const toml::table table = toml::parse(fmt::format("value = {}", text));
      if (table.size() == 1) {
        Value value = convert(*table.get("value"));
        forget_places(value);
        return value;
      }
    }
  } catch (const toml::parse_error&) {
    // Not TOML: it is text.
  }
  Value value;
  value.text = text;
  return value;
}

bool read_text_file(const std::string& path, std::string& text, Diagnostics& diagnostics) {
  const auto refuse = [&](Place place, std::string message) {
    diagnostics.error(path, place, std::move(message));
    return false;
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return refuse({}, fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  if (S_ISDIR(status.st_mode)) return refuse({}, "is a directory; name a file in it");
  if (!S_ISREG(status.st_mode)) return refuse({}, "is not a regular file");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > kFileBytesMax) {
    return refuse({},
                  fmt::format("is {} bytes long; a scenario has at most {} (1 MiB)", size, kFileBytesMax));
  }
  std::ifstream file(path, std::ios::binary);
  text.assign(size, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    return refuse({}, fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  if (std::ranges::all_of(text, [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; })) {
    return refuse({1, 1}, "is empty");
  }
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    return refuse(place_of_offset(text, zero),
                  "is binary: it contains a zero byte; a scenario is a TOML text");
  }
  if (const auto bad = find_invalid_utf8(text)) {
    return refuse(place_of_offset(text, *bad),
                  fmt::format("is not UTF-8: byte 0x{:02x} at offset {}; save the file as UTF-8",
                              static_cast<unsigned>(static_cast<unsigned char>(text[*bad])), *bad));
  }
  return true;
}

}  // namespace bx::harness
