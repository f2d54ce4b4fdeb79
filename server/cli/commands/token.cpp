// `chorus token`: makes, lists and revokes tokens in the file that services read (--auth-tokens). Needs no coordinator.
#include <fcntl.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ostream>
#include <random>

#include "collectives/core/nearest_name.hpp"
#include "http/auth/token_file.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/commands/options.hpp"
#include "server/cli/output/table.hpp"

namespace chorus::cli {
namespace {

using std::chrono::seconds;

struct TokenOptions {
  std::string file = "tokens.jsonl";
  std::string id;
  http::Access role = http::Access::read;
  std::optional<seconds> lifetime;
  std::string out;
};

std::array<std::byte, 32> draw() {
  std::random_device device;  // the system's, suitable for keys
  std::array<std::byte, 32> bytes;
  for (auto& byte : bytes) byte = static_cast<std::byte>(device());
  return bytes;
}

std::string drawn_id() {
  std::random_device device;
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", static_cast<unsigned>(device()));
  return std::string("t-") + text.data();
}

Result<seconds> parse_lifetime(std::string_view text) {
  auto const bad = Error(http::AuthErrc::malformed, "'" + std::string(text) + "' is not a time like 12h or 30d");
  std::uint32_t number = 0;
  auto const [unit, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || unit + 1 != text.data() + text.size() || number == 0 || number > 100000) return bad;
  switch (*unit) {
    case 's':
      return seconds(number);
    case 'm':
      return seconds(std::chrono::minutes(number));
    case 'h':
      return seconds(std::chrono::hours(number));
    case 'd':
      return seconds(std::chrono::hours(24) * number);
    default:
      return bad;
  }
}

ExitCode failed(Session const& session, Error const& error) {
  return report(session, http::Problem(http::ProblemCode::bad_request, error.detail));
}

// Writes a file that only its owner can read.
Status write_secret(std::string const& path, std::string const& token) {
  int const file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  auto const text = token + '\n';
  bool good = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) good = ::close(file) == 0 && good;
  return good ? ok() : Error(http::AuthErrc::unreadable, path + ": " + std::strerror(errno));
}

// True if the output was written completely.
bool has_printed(Session const& session, std::string const& text) {
  try {
    session.out << text << std::flush;
  } catch (std::ios_base::failure const&) {
    session.out.exceptions(std::ios::goodbit);  // standard error flushes standard output first
    return false;
  }
  return session.out.good();
}

ExitCode create(TokenOptions const& options, Session const& session) {
  http::TokenEntry entry;
  entry.id = options.id.empty() ? drawn_id() : options.id;
  entry.role = options.role;
  if (options.lifetime) entry.expires = http::system_time() + *options.lifetime;
  auto const token = http::make_token(draw());
  entry.hash = http::sha256(token);
  if (auto const parsed = http::parse_tokens(http::to_line(entry)); !parsed)
    return report_usage(session, "--id: expected 1 to 64 letters, digits and ._-");
  if (auto const appended = http::append_token(options.file, entry); !appended)
    return failed(session, appended.error());
  if (!options.out.empty()) {
    if (auto const written = write_secret(options.out, token); !written) {
      static_cast<void>(http::revoke_token(options.file, entry.id));  // nobody can use it
      return failed(session, written.error());
    }
  }
  auto const expires = entry.expires ? http::to_text(*entry.expires) : std::string();
  auto const needs_to_be_seen = options.out.empty();
  std::string said;
  if (session.json) {
    boost::json::object line{{"id", entry.id}, {"role", http::name(entry.role)}, {"file", options.file}};
    if (entry.expires) line["expires"] = expires;
    if (needs_to_be_seen) line["token"] = token;
    said = boost::json::serialize(line) + '\n';
  } else if (needs_to_be_seen) {
    said = token + '\n';
  }
  if (!has_printed(session, said)) {
    if (needs_to_be_seen) static_cast<void>(http::revoke_token(options.file, entry.id));  // the user has not seen it
    // Reported on standard error even with --json, because standard output is lost.
    session.err << "error: the output could not be written" << (needs_to_be_seen ? ": no token was made" : "") << '\n';
    return ExitCode::failed;
  }
  if (session.json) return ExitCode::ok;
  session.err << "token " << entry.id << " of the role " << http::name(entry.role)
              << (entry.expires ? ", until " + expires : "") << ": its hash is in " << options.file
              << (needs_to_be_seen ? "; it is not shown again" : ", and it is in " + options.out) << '\n';
  return ExitCode::ok;
}

ExitCode list(TokenOptions const& options, Session const& session) {
  auto const entries = http::read_tokens(options.file);
  if (!entries) return failed(session, entries.error());
  auto const now = http::system_time();
  Table table({{"TOKEN"}, {"ROLE"}, {"EXPIRES"}, {"STATE"}});
  for (auto const& entry : *entries) {
    bool const is_over = entry.expires && *entry.expires <= now;
    auto const expires = entry.expires ? http::to_text(*entry.expires) : "never";
    if (session.json)
      session.out << boost::json::serialize(boost::json::object{{"id", entry.id},
                                                                {"role", http::name(entry.role)},
                                                                {"expires", expires},
                                                                {"expired", is_over}})
                  << '\n';
    table.add({entry.id, std::string(http::name(entry.role)), expires, is_over ? "expired" : "valid"});
  }
  if (!session.json) table.print(session.out);
  return ExitCode::ok;
}

ExitCode revoke(TokenOptions const& options, Session const& session) {
  auto const revoked = http::revoke_token(options.file, options.id);
  if (!revoked) return failed(session, revoked.error());
  if (!*revoked)
    return failed(session, Error(http::AuthErrc::malformed, options.file + ": there is no token " + options.id));
  if (session.json)
    session.out << boost::json::serialize(boost::json::object{{"revoked", options.id}}) << '\n';
  else
    session.out << "token " << options.id << " is revoked; services that read " << options.file
                << " refuse it within a second\n";
  return ExitCode::ok;
}

}  // namespace

void add_token(CLI::App& root, Commands& commands) {
  auto& token = *root.add_subcommand("token", "Make, list and revoke the tokens of a file; no service is called");
  token.require_subcommand(1);
  auto const options = std::make_shared<TokenOptions>();
  token.add_option("--file", options->file, "the file that services read as --auth-tokens")
      ->envname("CHORUS_AUTH_TOKENS")
      ->type_name("FILE")
      ->capture_default_str();

  auto& made = *token.add_subcommand("create", "Make a token, print it once, and put its hash into the file");
  auto const role = [](std::string_view text) -> Result<http::Access> {
    if (auto const parsed = http::parse_role(text)) return *parsed;
    return Error(http::AuthErrc::malformed, unknown_name("role", text, {"read", "submit", "join", "admin"}));
  };
  add_parsed(made, "--role", options->role, role, "what it allows: read, submit, join (services) or admin")
      ->type_name("ROLE")
      ->required();
  made.add_option("--id", options->id, "its name in logs and audits (default: drawn)")->type_name("ID");
  add_parsed(made, "--expires", options->lifetime, parse_lifetime, "after so long, like 12h or 30d (default: never)")
      ->type_name("TIME");
  made.add_option("--out", options->out,
                  "write the token to this new file, for its owner alone, instead of printing it")
      ->type_name("FILE");
  commands.bind(made, [options](Session const& session) { return create(*options, session); });

  auto& shown = *token.add_subcommand("list", "List the tokens of the file");
  commands.bind(shown, [options](Session const& session) { return list(*options, session); });

  auto& revoked = *token.add_subcommand("revoke", "Take a token out of the file");
  revoked.add_option("ID", options->id, "which")->required()->type_name("");
  commands.bind(revoked, [options](Session const& session) { return revoke(*options, session); });
}

}  // namespace chorus::cli
