// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cluster/hosts_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "harness/base/text.h"
#include "harness/scenario/document.h"
#include "libbx/providers/native/socket_address.h"

namespace bx::harness {
namespace {

constexpr std::string_view kLocal = "local";

// What ssh passes to a shell of the other machine, or could take for an option.
bool is_plain(std::string_view text, std::string_view also) {
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, [&](unsigned char c) {
    return std::isalnum(c) != 0 || also.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

class HostsReader {
 public:
  HostsReader(const std::string& file, Diagnostics& diagnostics) : file_(file), diagnostics_(diagnostics) {}

  HostsFile read(const Value& root) {
    bool coordinator = false;
    for (const Field& field : root.fields) {
      if (field.key == "host") {
        read_hosts(field);
      } else if (field.key == "coordinator") {
        coordinator = true;
        read_address(field, "coordinator", hosts_.coordinator);
      } else if (field.key == "ssh_config") {
        read_config(field);
      } else {
        unknown(field, {"coordinator", "ssh_config", "host"});
      }
    }
    if (hosts_.hosts.empty()) wrong({}, "names no host; write a [[host]] for each host of the scenario");
    const auto remote =
        std::ranges::find_if(hosts_.hosts, [](const ListedHost& host) { return !host.ssh.empty(); });
    if (!coordinator && remote != hosts_.hosts.end()) {
      wrong(remote->place,
            fmt::format(
                "host '{}' is another machine, so 'coordinator' must be given: an address of this machine "
                "that it can reach",
                remote->name));
    }
    return std::move(hosts_);
  }

 private:
  void wrong(Place place, std::string message) { diagnostics_.error(file_, place, std::move(message)); }

  void unknown(const Field& field, const std::vector<std::string>& keys) {
    wrong(field.place, fmt::format("there is no key '{}'; the keys here are: {}{}", printable(field.key),
                                   join(keys), did_you_mean(field.key, keys)));
  }

  bool read_text(const Field& field, std::string_view name, std::string& text) {
    if (field.value.kind != Value::Kind::text || field.value.text.empty()) {
      wrong(field.value.place, fmt::format("'{}' = {} is no text", name, field.value.shown()));
      return false;
    }
    text = field.value.text;
    return true;
  }

  void read_address(const Field& field, std::string_view name, std::string& address) {
    std::string text;
    if (!read_text(field, name, text)) return;
    if (!native::SocketAddress::parse(text)) {
      return wrong(
          field.value.place,
          fmt::format("'{}' = '{}' is no IPv4 or IPv6 address; write for example '10.0.0.1' (names are not "
                      "looked up: an address chooses device and GID)",
                      name, printable(text)));
    }
    address = text;
  }

  void read_config(const Field& field) {
    std::string text;
    if (!read_text(field, "ssh_config", text)) return;
    const std::filesystem::path path = std::filesystem::path(file_).parent_path() / text;
    std::error_code none;
    if (!std::filesystem::is_regular_file(path, none)) {
      return wrong(field.value.place,
                   fmt::format("'ssh_config' = '{}': there is no file {}", printable(text), path.string()));
    }
    hosts_.ssh_config = path.string();
  }

  void read_hosts(const Field& field) {
    if (field.value.kind != Value::Kind::list) return wrong(field.place, "'host' must be written [[host]]");
    if (field.value.items.size() > kListedHostsMax) {
      return wrong(field.place,
                   fmt::format("names {} hosts; the limit is {}", field.value.items.size(), kListedHostsMax));
    }
    for (const Value& table : field.value.items) {
      if (table.kind == Value::Kind::table) {
        read_host(table);
      } else {
        wrong(table.place, "'host' must be written [[host]]");
      }
    }
  }

  void read_host(const Value& table) {
    ListedHost host;
    host.place = table.place;
    for (const Field& field : table.fields) {
      if (field.key == "name") {
        read_plain(field, "._-", host.name);
      } else if (field.key == "ssh") {
        read_plain(field, "._-@", host.ssh);
      } else if (field.key == "address") {
        read_address(field, "host.address", host.address);
      } else if (field.key == "device") {
        read_plain(field, "._-", host.device);
      } else if (field.key == "bx") {
        read_plain(field, "._-+/", host.bx);
      } else {
        unknown(field, {"name", "ssh", "address", "device", "bx"});
      }
    }
    for (const char* key : {"ssh", "address"}) {
      if (table.find(key) == nullptr) {
        wrong(table.place, fmt::format("a [[host]] needs '{}'{}", key,
                                       *key == 's' ? "; write 'local' for a process on this machine" : ""));
      }
    }
    if (host.name.empty()) host.name = host.ssh;
    if (host.ssh == kLocal) host.ssh.clear();
    for (const ListedHost& other : hosts_.hosts) {
      if (other.address == host.address && !host.address.empty()) {
        wrong(host.place, fmt::format("address {} is that of the host in line {} already", host.address,
                                      other.place.line));
      }
    }
    hosts_.hosts.push_back(std::move(host));
  }

  void read_plain(const Field& field, std::string_view also, std::string& text) {
    std::string read;
    if (!read_text(field, "host." + field.key, read)) return;
    if (!is_plain(read, also)) {
      return wrong(
          field.value.place,
          fmt::format("'host.{}' = '{}' goes on a command line of another machine: only letters, digits and "
                      "{} are taken, and no '-' at its beginning",
                      field.key, printable(read), also));
    }
    text = read;
  }

  const std::string& file_;
  Diagnostics& diagnostics_;
  HostsFile hosts_;
};

}  // namespace

std::optional<HostsFile> parse_hosts_file(std::string_view text, const std::string& file,
                                          Diagnostics& diagnostics) {
  const std::size_t errors_before = diagnostics.count();
  const Value root = parse_toml(text, file, diagnostics);
  if (diagnostics.count() != errors_before) return std::nullopt;
  HostsFile hosts = HostsReader(file, diagnostics).read(root);
  if (diagnostics.count() != errors_before) return std::nullopt;
  return hosts;
}

std::optional<HostsFile> load_hosts_file(const std::string& file, Diagnostics& diagnostics) {
  std::string text;
  if (!read_text_file(file, text, diagnostics)) return std::nullopt;
  return parse_hosts_file(text, file, diagnostics);
}

}  // namespace bx::harness
