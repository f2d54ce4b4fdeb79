// tensors: lists the tensors of workers, and puts, gets and deletes them.
#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <ostream>

#include "collectives/core/nearest_name.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/json/json.hpp"
#include "http/tls/errc.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/commands/options.hpp"
#include "server/cli/connection/client.hpp"
#include "server/cli/files/part_file.hpp"
#include "server/cli/files/tensor_file.hpp"
#include "server/cli/files/tensor_transfer.hpp"
#include "server/cli/output/long_work.hpp"
#include "server/cli/output/table.hpp"

namespace chorus::cli {
namespace {

constexpr std::uint32_t tensors_per_page = 1000;
constexpr std::chrono::milliseconds default_timeout = std::chrono::minutes(30);

struct TensorOptions {
  std::string name;
  std::string file;
  std::vector<std::string> workers;
  std::optional<std::string> dtype;
  std::optional<Shape> shape;
  std::optional<std::string> device;
  std::chrono::milliseconds timeout = default_timeout;
  bool force = false;
  bool table = false;
};

std::string with_nearest(std::string what, std::string_view wrong, std::span<std::string_view const> names) {
  auto const nearest = nearest_name(wrong, names);
  return nearest.empty() ? what : what + "; did you mean '" + std::string(nearest) + "'?";
}

template <class Named>
std::vector<std::string_view> names_of(std::vector<Named> const& all, std::string Named::*name) {
  std::vector<std::string_view> names;
  for (auto const& one : all) names.emplace_back(one.*name);
  return names;
}

Failure unknown_worker(std::string const& id, std::vector<api::Worker> const& all) {
  return {.problem = {http::ProblemCode::unknown_worker,
                      with_nearest("there is no worker '" + id + "'", id, names_of(all, &api::Worker::id))}};
}

Reply<WorkerAddress> place_of(api::Worker const& worker) {
  WorkerAddress place{worker.id, worker.url};
  while (place.url.ends_with('/')) place.url.pop_back();
  if (auto const usable = check_coordinator_url(place.url); !usable)
    return failed_at(place, {.problem = {http::ProblemCode::worker_unreachable, usable.error().detail}});
  return place;
}

Reply<std::vector<api::Worker>> all_workers(Session const& session) {
  return Client(session).list<api::WorkerList>("/v1/workers", workers_per_page);
}

// Returns the named workers in this order.
Reply<std::vector<WorkerAddress>> find_workers(Session const& session, std::vector<std::string> const& ids) {
  auto const all = all_workers(session);
  if (!all) return all.error();
  std::vector<WorkerAddress> places;
  for (auto const& id : ids) {
    auto const found = std::ranges::find(*all, id, &api::Worker::id);
    if (found == all->end()) return unknown_worker(id, *all);
    auto place = place_of(*found);
    if (!place) return place.error();
    places.push_back(std::move(*place));
  }
  return places;
}

// Returns all ready workers; lost workers are reported and not asked.
Reply<std::vector<WorkerAddress>> find_ready_workers(Session const& session) {
  auto const all = all_workers(session);
  if (!all) return all.error();
  std::vector<WorkerAddress> places;
  for (auto const& worker : *all) {
    if (worker.state != "ready") {
      session.err << "worker " << worker.id << " is " << worker.state << ": what it held is not listed\n";
      continue;
    }
    auto place = place_of(worker);
    if (!place) return place.error();
    places.push_back(std::move(*place));
  }
  return places;
}

Client client_of(Session const& session, WorkerAddress const& place) { return {session, place.url, "it"}; }

boost::json::object to_object(WorkerAddress const& place, api::TensorInfo const& tensor) {
  boost::json::object object{{"worker", place.worker}};
  auto const described = boost::json::parse(http::encode(tensor));
  for (auto const& [key, value] : described.as_object()) object[key] = value;
  return object;
}

void add_row(Table& table, WorkerAddress const& place, api::TensorInfo const& tensor) {
  table.add({place.worker, tensor.name, tensor.dtype, "[" + format_shape(tensor.shape) + "]",
             format_bytes(tensor.bytes), std::to_string(tensor.version), tensor.device});
}

ExitCode list(TensorOptions const& options, Session const& session) {
  auto const places = options.workers.empty() ? find_ready_workers(session) : find_workers(session, options.workers);
  if (!places) return report(session, places.error());
  Table table(
      {{"WORKER"}, {"NAME"}, {"DTYPE"}, {"SHAPE"}, {"BYTES", Align::right}, {"VERSION", Align::right}, {"DEVICE"}});
  std::vector<Failure> failures;
  for (auto const& place : *places) {
    auto const tensors = client_of(session, place).list<api::TensorList>("/v1/tensors", tensors_per_page);
    if (!tensors) {
      failures.push_back(failed_at(place, tensors.error()));
      continue;
    }
    for (auto const& tensor : *tensors)
      if (session.json)
        session.out << boost::json::serialize(to_object(place, tensor)) << '\n';
      else
        add_row(table, place, tensor);
  }
  if (!session.json) table.print(session.out);
  auto code = ExitCode::ok;
  for (auto const& failure : failures) code = report(session, failure);
  return code;
}

void print(Transferred const& done, WorkerAddress const& place, std::string_view way, TensorOptions const& options,
           Session const& session) {
  auto const& tensor = done.tensor;
  auto& out = is_standard(options.file) ? session.err : session.out;
  if (gives_lines(session, options.table)) {
    auto line = boost::json::serialize(to_object(place, tensor));
    line.back() = ',';
    out << line << "\"seconds\":" << format_decimal(done.seconds, 6) << '}' << std::endl;
    return;
  }
  out << tensor.name << ' ' << way << ' ' << place.worker << ": " << tensor.dtype << '[' << format_shape(tensor.shape)
      << "], " << format_bytes(tensor.bytes) << ", version " << tensor.version;
  if (tensor.device != "cpu") out << ", " << tensor.device;
  if (tensor.bytes > 0 && done.seconds > 0)
    out << ", " << format_rate(static_cast<double>(tensor.bytes) / done.seconds);
  out << std::endl;
}

ExitCode report_credentials(Session const& session, Error const& why) {
  return report(session, Failure{.problem = {http::ProblemCode::unauthorized, why.detail},
                                 .is_local = why.code == http::AuthErrc::bad_certificate});
}

// Sends the tensor to one worker after the other, and stops at the first failure.
ExitCode put(TensorOptions const& options, Session const& session) {
  auto const file =
      TensorFile::open(options.file, options.dtype ? parse_dtype(*options.dtype) : std::nullopt, options.shape);
  if (!file) return report_usage(session, file.error().detail);
  auto const places = find_workers(session, options.workers);
  if (!places) return report(session, places.error());
  TensorTransfer transfer(session);
  if (auto const opened = transfer.open(); !opened) return report_credentials(session, opened.error());
  for (auto const& place : *places) {
    auto const done = transfer.put(place, options.name, *file, options.device, options.timeout);
    if (!done) {
      transfer.pass_signal_on();
      return report(session, done.error());
    }
    print(*done, place, "on", options, session);
  }
  return ExitCode::ok;
}

// Returns the worker's description of the tensor.
Reply<api::TensorInfo> find_tensor(Session const& session, WorkerAddress const& place, std::string const& name) {
  auto const client = client_of(session, place);
  // Among names with this prefix, the exact name comes first.
  auto const first = client.ask<api::TensorList>({.path = "/v1/tensors?limit=1&prefix=" + percent_encode(name)});
  if (!first) return failed_at(place, first.error());
  if (!first->items.empty() && first->items.front().name == name) return first->items.front();
  auto const all = client.list<api::TensorList>("/v1/tensors", tensors_per_page);
  if (!all) return failed_at(place, all.error());
  return failed_at(
      place, {.problem = {http::ProblemCode::unknown_tensor, with_nearest("there is no tensor '" + name + "'", name,
                                                                          names_of(*all, &api::TensorInfo::name))}});
}

Status check_target(TensorOptions const& options) {
  if (is_standard(options.file)) return ok();
  if (auto const fits = check_place(options.file); !fits) return fits;
  return options.force ? ok() : check_absent(options.file);
}

ExitCode get(TensorOptions const& options, Session const& given) {
  auto const session = is_standard(options.file) ? aside(given) : given;
  if (options.workers.size() != 1) return report_usage(session, "--worker names one worker");
  if (auto const takes = check_target(options); !takes) return report_usage(session, takes.error().detail);
  auto const places = find_workers(session, options.workers);
  if (!places) return report(session, places.error());
  auto const& place = places->front();
  auto const tensor = find_tensor(session, place, options.name);
  if (!tensor) return report(session, tensor.error());
  TensorTransfer transfer(session);
  if (auto const opened = transfer.open(); !opened) return report_credentials(session, opened.error());
  auto const done = transfer.get(place, *tensor, options.file, options.force, options.timeout);
  if (!done) {
    transfer.pass_signal_on();
    return report(session, done.error());
  }
  print(*done, place, "from", options, session);
  return ExitCode::ok;
}

// Deletes the tensor on all workers, also after one has failed.
ExitCode remove(TensorOptions const& options, Session const& session) {
  auto const places = find_workers(session, options.workers);
  if (!places) return report(session, places.error());
  auto code = ExitCode::ok;
  for (auto const& place : *places) {
    auto const done = client_of(session, place).send({.method = "DELETE", .path = tensor_path(options.name)});
    if (!done)
      code = report(session, failed_at(place, done.error()));
    else if (session.json)
      session.out << boost::json::serialize(boost::json::object{{"removed", options.name}, {"worker", place.worker}})
                  << '\n';
    else
      session.out << options.name << " on " << place.worker << ": removed\n";
  }
  return code;
}

CLI::Option* add_worker(CLI::App& command, TensorOptions& options, std::string const& help) {
  return add_names(command, "--worker", options.workers, help)->type_name("ID,...");
}

void add_timeout(CLI::App& command, TensorOptions& options) {
  add_duration(command, "--timeout", options.timeout, "for each worker, from beginning to end")->default_str("30m");
}

CLI::App& add_one(CLI::App& tensors, std::string const& name, std::string const& help, TensorOptions& options) {
  auto& command = *tensors.add_subcommand(name, help);
  command.add_option("NAME", options.name, "name of the tensor")->required()->type_name("");
  return command;
}

void add_file(CLI::App& command, TensorOptions& options, std::string const& help) {
  command.add_option("FILE", options.file, help)->required()->type_name("");
}

// Only the workers know their devices; the check keeps other characters out of the header field.
std::string check_device(std::string const& text) {
  auto const is_name = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == ':'; };
  bool const fits = !text.empty() && text.size() <= 32 && std::ranges::all_of(text, is_name);
  return fits ? "" : "'" + text + "' is no device: cpu, cuda:0, cuda:1, ...";
}

void add_put(CLI::App& tensors, Commands& commands) {
  auto const options = std::make_shared<TensorOptions>();
  auto& command = add_one(tensors, "put", "Send a file: to each worker the tensor's next version", *options);
  add_file(command, *options, "the elements, little-endian and row-major; or a .npy file");
  add_worker(command, *options, "to these, one after the other")->required();
  command.add_option("--dtype", options->dtype, "what the elements are; a .npy file says so itself")
      ->check(one_of(all_dtypes))
      ->type_name("DTYPE");
  add_parsed(command, "--shape", options->shape, parse_shape, "like 1024,1024; one dimension unless given")
      ->type_name("N,...");
  command
      .add_option("--device", options->device,
                  "where it is to lie there: cpu, cuda:0, ...; the host's memory unless given")
      ->check(check_device)
      ->type_name("DEVICE");
  add_timeout(command, *options);
  add_table(command, options->table);
  commands.bind(command, [options](Session const& session) { return put(*options, session); });
}

void add_get(CLI::App& tensors, Commands& commands) {
  auto const options = std::make_shared<TensorOptions>();
  auto& command = add_one(tensors, "get", "Write a worker's tensor into a file, all of it of one version", *options);
  add_file(command, *options,
           "gets the elements, little-endian and row-major; as a .npy file where it ends so; - is standard output");
  add_worker(command, *options, "of this one")->required()->type_name("ID");
  command.add_flag("--force", options->force, "over a file that exists");
  add_timeout(command, *options);
  add_table(command, options->table);
  commands.bind(command, [options](Session const& session) { return get(*options, session); });
}

}  // namespace

void add_tensors(CLI::App& root, Commands& commands) {
  auto const options = std::make_shared<TensorOptions>();
  auto& command = *root.add_subcommand("tensors", "List what workers hold; put, get or remove a tensor");
  command.require_subcommand(0, 1);
  add_worker(command, *options, "of these; of all unless given");
  commands.bind(command, [options](Session const& session) { return list(*options, session); });
  add_put(command, commands);
  add_get(command, commands);

  auto const removed = std::make_shared<TensorOptions>();
  auto& remove_command = add_one(command, "remove", "Remove a tensor from workers", *removed);
  add_worker(remove_command, *removed, "from these")->required();
  commands.bind(remove_command, [removed](Session const& session) { return remove(*removed, session); });
}

}  // namespace chorus::cli
