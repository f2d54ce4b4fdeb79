// `chorus journal`: moves the rows of a coordinator's store into a file, and from a file into an empty store. Calls no
// coordinator: none may use the store meanwhile.
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <ostream>
#include <random>

#include "metrics/build/build.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/files/part_file.hpp"
#include "server/cli/text/units.hpp"
#include "server/coordinator/stores/moved_rows.hpp"

namespace chorus::cli {
namespace {

struct JournalOptions {
  coordinator::StoreOptions store;
  std::string file;
  bool force = false;
};

ExitCode report_failed(Session const& session, Error const& error) {
  return report(session, Failure{.problem = {http::ProblemCode::bad_request, error.detail}, .is_local = true});
}

std::string name_of_store(coordinator::StoreOptions const& store) {
  return store.journal.empty() ? "cluster " + store.etcd.cluster + " in etcd" : "journal " + store.journal;
}

ExitCode say_without_store(Session const& session) {
  return report_usage(session, "--journal FILE or --etcd URLS has to name the store");
}

bool names_a_store(coordinator::StoreOptions const& store) {
  return !store.journal.empty() || !store.etcd.endpoints.empty();
}

Status write_file(coordinator::ExportedRows const& exported, JournalOptions const& options) {
  auto file = PartFile::create(options.file, options.force);
  if (!file) return file.error();
  auto const append = [&file](std::string_view line) { return file->append(std::as_bytes(std::span(line))); };
  if (auto const written = write_export(exported, append); !written) return written;
  return file->finish();
}

void print_lines(coordinator::ExportedRows const& exported, std::ostream& out) {
  auto const print = [&out](std::string_view line) -> Status {
    out << line;
    return ok();
  };
  static_cast<void>(write_export(exported, print));  // a lost output is thrown
  out << std::flush;
}

ExitCode export_rows(JournalOptions const& options, Session const& given) {
  auto const session = is_standard(options.file) ? aside(given) : given;
  if (!names_a_store(options.store)) return say_without_store(session);
  bool const is_to_file = !is_standard(options.file);
  if (is_to_file) {
    if (auto const place = check_place(options.file); !place) return report_failed(session, place.error());
    if (!options.force)
      if (auto const absent = check_absent(options.file); !absent) return report_failed(session, absent.error());
  }
  auto exported = coordinator::take_rows(options.store);
  if (!exported) return report_failed(session, exported.error());
  exported->release = metrics::this_build().version;
  if (is_to_file) {
    if (auto const written = write_file(*exported, options); !written) return report_failed(session, written.error());
  } else {
    print_lines(*exported, given.out);
  }
  auto const count = exported->rows.size();
  if (session.json && is_to_file)
    session.out << boost::json::serialize(boost::json::object{{"rows", count}, {"file", options.file}}) << '\n';
  else if (!session.json)
    session.err << format_count(count, "row") << " of " << name_of_store(options.store)
                << (is_to_file ? " are in " + options.file : " were written to standard output") << '\n';
  return ExitCode::ok;
}

Result<coordinator::ExportedRows> read_file(std::string const& path) {
  if (is_standard(path)) return coordinator::read_export(std::cin, "standard input");
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error(std::error_code(errno, std::generic_category()), path + ": " + std::strerror(errno));
  return coordinator::read_export(file, path);
}

ExitCode import_rows(JournalOptions const& options, Session const& session) {
  if (!names_a_store(options.store)) return say_without_store(session);
  auto const exported = read_file(options.file);
  if (!exported) return report_failed(session, exported.error());
  std::random_device random;
  auto const new_cluster_id = std::uint64_t{random()} << 32 | random();
  if (auto const written = coordinator::put_rows(*exported, options.store, new_cluster_id); !written)
    return report_failed(session, written.error());
  auto const count = exported->rows.size();
  if (session.json)
    session.out << boost::json::serialize(boost::json::object{{"rows", count}, {"release", exported->release}}) << '\n';
  else
    session.err << format_count(count, "row") << " are in " << name_of_store(options.store) << '\n';
  return ExitCode::ok;
}

}  // namespace

void add_journal(CLI::App& root, Commands& commands) {
  auto& journal = *root.add_subcommand("journal", "Move what a coordinator keeps between a journal and etcd");
  journal.require_subcommand(1);
  auto const options = std::make_shared<JournalOptions>();
  coordinator::add_store_flags(journal, options->store, "the store is this journal of a coordinator",
                               "the store is etcd: its endpoints, with commas");
  journal.footer(
      "No coordinator may use the store meanwhile. A journal belongs to the user that imports it.\n"
      "Exit codes: 0 done, 1 failed and nothing was changed, 2 wrong usage.");

  auto& out = *journal.add_subcommand("export", "Write all rows of the store into a file, one line of JSON each");
  out.add_option("FILE", options->file, "a new file, or - for standard output")->required()->type_name("");
  out.add_flag("--force", options->force, "over a file that exists");
  commands.bind(out, [options](Session const& session) { return export_rows(*options, session); });

  auto& in = *journal.add_subcommand("import", "Write the rows of an exported file into an empty store");
  in.add_option("FILE", options->file, "an exported file, or - for standard input")->required()->type_name("");
  commands.bind(in, [options](Session const& session) { return import_rows(*options, session); });
}

}  // namespace chorus::cli
