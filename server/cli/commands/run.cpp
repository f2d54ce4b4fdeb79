// run: launches a collective, waits for it, and shows the results of every rank.
#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>

#include "collectives/core/op.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/core/wire_format.hpp"
#include "collectives/plan/spec.hpp"
#include "http/api/collectives/collectives.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/commands/options.hpp"
#include "server/cli/commands/waiting.hpp"
#include "server/cli/connection/client.hpp"
#include "server/cli/files/tensor_file.hpp"
#include "server/cli/output/table.hpp"
#include "server/cli/text/format.hpp"

namespace chorus::cli {
namespace {

struct RunOptions {
  api::CollectiveRequest request;
  std::optional<std::chrono::milliseconds> timeout;
  std::optional<std::chrono::milliseconds> wait;  // empty: until the collective must have ended
  std::string id;
  bool validate_only = false;
};

void print_summary(api::Collective const& collective, std::ostream& out) {
  auto const& request = collective.request;
  out << request.op << (request.tensor.empty() ? "" : " of " + request.tensor) << " in " << request.group << ": "
      << collective.state;
  if (collective.state == "succeeded" && collective.seconds > 0)
    out << " in " << format_seconds(collective.seconds) << ", "
        << format_rate(static_cast<double>(collective.bytes) / collective.seconds);
  out << '\n';
  if (!collective.id.empty()) out << "  id         " << collective.id << '\n';
  if (!collective.dtype.empty())
    out << "  tensor     " << collective.dtype << " [" << format_shape(collective.shape) << "], "
        << format_bytes(collective.bytes) << " over " << format_count(collective.ranks.size(), "rank") << '\n';
  if (collective.algorithm.empty()) return;
  out << "  algorithm  "
      << format_algorithm(collective.algorithm, collective.root, collective.arity, collective.algorithm_shape) << '\n'
      << "  reason     " << collective.reason << '\n'
      << "  predicted  " << format_seconds(collective.predicted_seconds) << "; no algorithm sends less than "
      << format_bytes(collective.lower_bound.bytes_per_rank) << " per rank\n";
}

void print_members(api::Collective const& collective, std::ostream& out) {
  Table table({{"RANK", Align::right}, {"WORKER"}, {"STATE"}});
  for (auto const& record : collective.ranks) table.add({std::to_string(record.rank), record.worker, record.state});
  table.print(out);
}

void print_reports(api::Collective const& collective, std::ostream& out) {
  Table table({{"RANK", Align::right},
               {"WORKER"},
               {"STATE"},
               {"TIME", Align::right},
               {"WAITED", Align::right},
               {"SENT", Align::right},
               {"RECEIVED", Align::right},
               {"STEPS", Align::right},
               {"VERSION", Align::right},
               {"DIGEST"}});
  for (auto const& record : collective.ranks) {
    std::vector<std::string> cells{std::to_string(record.rank), record.worker, record.state};
    if (auto const& report = record.report)
      cells.insert(cells.end(), {format_seconds(report->seconds), format_seconds(report->wait_seconds),
                                 format_bytes(report->bytes_sent), format_bytes(report->bytes_received),
                                 std::to_string(report->steps), std::to_string(report->version),
                                 report->output_digest.value_or("")});
    cells.resize(10);
    table.add(std::move(cells));
  }
  table.print(out);
}

void print_ranks(api::Collective const& collective, std::ostream& out) {
  if (collective.ranks.empty()) return;
  auto const has_report = [](api::RankRecord const& record) { return record.report.has_value(); };
  out << '\n';
  if (std::any_of(collective.ranks.begin(), collective.ranks.end(), has_report))
    print_reports(collective, out);
  else
    print_members(collective, out);
}

std::chrono::milliseconds wait_of(RunOptions const& options) {
  return options.wait.value_or(options.timeout ? wait_for_the_end(*options.timeout) : longest_wait);
}

// Returns 0 only for the requested outcome: a result, a plan, or, with --wait 0s, a launch.
ExitCode verdict(api::Collective const& collective, RunOptions const& options, Session const& session) {
  if (collective.state == "succeeded" || options.validate_only) return ExitCode::ok;
  if (has_ended(collective)) {
    // The JSON of the collective contains the problem.
    if (collective.error && !session.json) return report(session, *collective.error);
    return ExitCode::failed;
  }
  if (!session.json)
    session.err << "still " << collective.state << "; ask again: " << split_services(session.coordinator).front()
                << "/v1/collectives/" << collective.id << '\n';
  return wait_of(options).count() == 0 ? ExitCode::ok : ExitCode::failed;
}

Request launch(RunOptions const& options) {
  auto body = options.request;
  if (options.timeout) body.timeout_ms = static_cast<std::uint64_t>(options.timeout->count());
  Request request{.method = "POST", .path = "/v1/collectives", .body = http::encode(body)};
  request.repeatable = true;
  if (options.id.empty()) {
    request.fields.emplace_back("Idempotency-Key", draw_key());
  } else {
    request.method = "PUT";
    request.path += "/" + percent_encode(options.id);
  }
  request.path +=
      options.validate_only ? "?validate_only=true" : "?wait=" + std::to_string(wait_of(options).count()) + "ms";
  request.patience = wait_of(options) + answer_slack;
  return request;
}

// The key of a run without an id ends with the command.
Failure with_remedy(Failure failure, RunOptions const& options) {
  if (failure.may_be_done && !options.validate_only)
    failure.problem.detail += options.id.empty()
                                  ? ": typed again, it would be another one; with --id ID it would be the same"
                                  : ": typing it again shows the collective, and launches none besides";
  return failure;
}

ExitCode run(RunOptions const& options, Session const& session) {
  if (options.request.tensor.empty() && options.request.op != name(Op::barrier))
    return report_usage(session, "--tensor is required");
  if (wait_of(options) > longest_wait) return report_usage(session, "--wait is at most 10m");
  auto const collective = Client(session).ask<api::Collective>(launch(options));
  if (!collective) return report(session, with_remedy(collective.error(), options));
  if (session.json) {
    session.out << http::encode(*collective) << '\n';
  } else {
    print_summary(*collective, session.out);
    print_ranks(*collective, session.out);
  }
  return verdict(*collective, options, session);
}

}  // namespace

void add_run(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("run", "Launch a collective and wait for its result");
  auto const options = std::make_shared<RunOptions>();
  auto& request = options->request;
  command.add_option("OP", request.op, "the operation, such as all_reduce")
      ->required()
      ->check(one_of(all_ops))
      ->type_name("");
  command.add_option("--group", request.group, "the group that runs it")->required()->type_name("NAME");
  command.add_option("--tensor", request.tensor, "the tensor, by its name on every rank; a barrier has none")
      ->type_name("NAME");
  command.add_option("--output", request.output, "the tensor that takes the result, instead of the next version")
      ->type_name("NAME");
  add_numbers<std::uint64_t>(command, "--counts", request.counts, 0, UINT64_MAX,
                             "rows that each rank is left with, like 4,0,3");
  command.add_option("--reduce", request.reduce, "how two elements become one")
      ->check(one_of(all_reduce_ops))
      ->type_name("REDUCE")
      ->capture_default_str();
  command.add_option("--algorithm", request.algorithm, "by name, or auto: the coordinator chooses")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--local-algorithm", request.local_algorithm, "among the tensors NAME/0, NAME/1, ... of a worker")
      ->type_name("NAME")
      ->capture_default_str();
  add_number(command, "--root", request.root, 0, plan::max_ranks - 1,
             "the root of reduce, broadcast, gather, scatter, or of an algorithm that has one");
  add_number(command, "--arity", request.arity, 1, plan::max_ranks, "children per node of a tree, base of a bcube");
  add_algorithm_shape(command, request.algorithm_shape);
  add_duration(command, "--timeout", options->timeout, "the collective fails after this long")
      ->default_str("by what the group's took");
  command.add_flag("--reproducible", request.reproducible, "the same bits from every algorithm, size and placement");
  add_compression(command, request.compression);
  // Left out unless it is asked for: a coordinator of the release before does not know the field.
  command.add_flag_callback(
      "--error-feedback", [options] { options->request.error_feedback = true; },
      "with --compression: add what the codes lack to the tensor's next collective");
  command.add_flag("--in-place", request.in_place, "write over the tensor while it runs: less memory, no way back");
  add_bytes(command, "--segment-bytes", request.schedule.segment_bytes, "the pipelining unit, 4K to 64M")
      ->default_str("as the group has it");
  add_duration(command, "--wait", options->wait, "wait this long for the end, at most 10m; 0s only launches")
      ->default_str("the timeout and 5s, or 10m");
  command.add_option("--id", options->id, "launch under this id: typing it again shows it and launches nothing")
      ->type_name("ID");
  command.add_flag("--validate-only", options->validate_only, "admit and plan, and do not run");
  commands.bind(command, [options](Session const& session) { return run(*options, session); });
}

}  // namespace chorus::cli
