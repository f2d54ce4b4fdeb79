#include "http/auth/token_file.hpp"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/whole_file.hpp"
#include "http/api/cluster/tokens.hpp"
#include "http/json/json.hpp"

namespace chorus::http {
namespace {

constexpr std::size_t file_bytes_max = 16 << 20;

std::string system_reason() { return std::strerror(errno); }

bool is_valid_id(std::string_view id) {
  auto const allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), allowed);
}

std::string to_hex(std::span<std::byte const> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (auto const byte : bytes) {
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

std::optional<Sha256> parse_hash(std::string_view text) {
  Sha256 hash{};
  if (text.size() != 2 * hash.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto const c = text[i];
    auto const digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return std::nullopt;
    hash[i / 2] = (hash[i / 2] << 4) | static_cast<std::byte>(digit);
  }
  return hash;
}

Result<TokenEntry> parse_line(std::string_view line) {
  auto const bad = [](std::string why) { return Error(AuthErrc::malformed, std::move(why)); };
  auto const read = decode<api::TokenLine>(line);
  if (!read) {
    auto const& problem = read.error();
    return bad(problem.errors.empty() ? problem.detail : problem.errors[0].pointer + ": " + problem.errors[0].detail);
  }
  TokenEntry entry;
  entry.id = read->id;
  if (!is_valid_id(entry.id)) return bad("/id: expected 1 to 64 letters, digits and ._-");
  auto const role = parse_role(read->role);
  if (!role) return bad("/role: expected read, submit, join or admin");
  entry.role = *role;
  auto const hash = parse_hash(read->sha256);
  if (!hash) return bad("/sha256: expected 64 hexadecimal digits");
  entry.hash = *hash;
  if (read->expires) {
    entry.expires = parse_time(*read->expires);
    if (!entry.expires) return bad("/expires: expected a time like 2027-01-31T00:00:00Z");
  }
  return entry;
}

Result<std::string> content_of(std::string const& path) {
  auto text = content_of_file(path);
  if (!text) return Error(AuthErrc::unreadable, text.error().detail);
  if (text->size() > file_bytes_max) return Error(AuthErrc::malformed, path + ": larger than 16 MiB");
  return std::move(*text);
}

// The file behind links; the name itself if there is none yet.
std::string real_path(std::string const& name) {
  std::error_code missing;
  auto const real = std::filesystem::canonical(name, missing);
  return missing ? name : real.string();
}

// Changes of one file come one after the other, also those of several processes. The directory is locked, because the
// file is replaced; where it cannot be, changes that meet may undo each other.
class Change {
 public:
  explicit Change(std::string const& path) {
    std::error_code none;
    auto const directory = std::filesystem::absolute(real_path(path), none).parent_path();
    descriptor_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {}
  }
  ~Change() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Change(Change const&) = delete;
  Change& operator=(Change const&) = delete;

 private:
  int descriptor_ = -1;
};

// Gives a new file the owner, the group and the mode of the file that it replaces.
bool keep_access(int file, std::string const& replaced) {
  struct stat old {
  }, made{};
  if (::stat(replaced.c_str(), &old) != 0) return errno == ENOENT;
  if (::fstat(file, &made) != 0) return false;
  bool const is_ours = made.st_uid == old.st_uid && made.st_gid == old.st_gid;
  return (is_ours || ::fchown(file, old.st_uid, old.st_gid) == 0) && ::fchmod(file, old.st_mode & 07777) == 0;
}

// Replaces the file at once: a reader sees the old file or the new one. Whoever could read the old one can read the new
// one: services of another user would go on with the old tokens.
Status replace(std::string const& name, std::string_view text) {
  auto const path = real_path(name);
  auto const beside = path + ".new-" + std::to_string(::getpid());
  int const file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return Error(AuthErrc::unreadable, beside + ": " + system_reason());
  bool good = true;
  while (good && !text.empty()) {
    auto const written = ::write(file, text.data(), text.size());
    good = written > 0;
    if (good) text.remove_prefix(static_cast<std::size_t>(written));
  }
  good = good && keep_access(file, path) && ::fsync(file) == 0;
  good = ::close(file) == 0 && good;
  good = good && ::rename(beside.c_str(), path.c_str()) == 0;
  if (good) return ok();
  auto const why = system_reason();
  ::unlink(beside.c_str());
  return Error(AuthErrc::unreadable, path + ": " + why);
}

}  // namespace

Sha256 sha256(std::string_view text) {
  Sha256 hash{};
  ::SHA256(reinterpret_cast<unsigned char const*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(hash.data()));
  return hash;
}

std::string make_token(std::span<std::byte const, 32> random) { return std::string(token_prefix) + to_hex(random); }

std::string to_line(TokenEntry const& entry) {
  api::TokenLine line{entry.id, std::string(name(entry.role)), to_hex(entry.hash), {}};
  if (entry.expires) line.expires = to_text(*entry.expires);
  return encode(line) + '\n';
}

Result<std::vector<TokenEntry>> parse_tokens(std::string_view text) {
  std::vector<TokenEntry> entries;
  for (std::size_t number = 1; !text.empty(); ++number) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    auto entry = parse_line(line);
    if (!entry) return Error(AuthErrc::malformed, "line " + std::to_string(number) + ": " + entry.error().detail);
    for (auto const& other : entries)
      if (other.id == entry->id)
        return Error(AuthErrc::malformed, "line " + std::to_string(number) + ": a second token " + other.id);
    entries.push_back(std::move(*entry));
  }
  return entries;
}

Result<std::vector<TokenEntry>> read_tokens(std::string const& path) {
  auto const text = content_of(path);
  if (!text) return text.error();
  auto entries = parse_tokens(*text);
  if (!entries) return Error(AuthErrc::malformed, path + ": " + entries.error().detail);
  return entries;
}

Status append_token(std::string const& path, TokenEntry const& entry) {
  Change const change(path);
  std::string text;
  if (::access(path.c_str(), F_OK) == 0) {
    auto const entries = read_tokens(path);
    if (!entries) return entries.error();
    for (auto const& other : *entries)
      if (other.id == entry.id) return Error(AuthErrc::exists, path + ": there is a token " + entry.id + " already");
    text = content_of(path).value();
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
  }
  return replace(path, text + to_line(entry));
}

Result<bool> revoke_token(std::string const& path, std::string_view id) {
  Change const change(path);
  auto const text = content_of(path);
  if (!text) return text.error();
  std::string kept;
  bool found = false;
  for (std::string_view rest = *text; !rest.empty();) {
    auto const line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    auto const entry = parse_line(line);
    if (entry && entry->id == id)
      found = true;
    else
      kept.append(line).append("\n");
  }
  if (!found) return false;
  if (auto const written = replace(path, kept); !written) return written.error();
  return true;
}

Result<std::string> read_secret(std::string const& path) {
  auto text = content_of(path);
  if (!text) return text.error();
  auto token = text->substr(0, text->find('\n'));
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  auto const is_plain = [](char c) { return c > ' ' && c < 0x7f; };
  if (token.empty() || token.size() > 512 || !std::all_of(token.begin(), token.end(), is_plain))
    return Error(AuthErrc::malformed, path + ": its first line is not a token; `chorus token create` prints one");
  return token;
}

}  // namespace chorus::http
