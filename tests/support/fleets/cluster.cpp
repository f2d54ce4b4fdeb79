#include "tests/support/fleets/cluster.hpp"

#include <signal.h>

#include <charconv>
#include <sstream>
#include <stdexcept>

namespace chorus::testing {
namespace {

Answer to_answer(httplib::Result const& result) {
  if (!result) throw std::runtime_error("no answer: " + httplib::to_string(result.error()));
  return {result->status, result->body, result->headers};
}

std::vector<std::string> coordinator_arguments(HeldPort const& port, std::vector<std::string> const& flags) {
  std::vector<std::string> arguments{binary("chorus-coordinator"), "--port", port.text(), "--log-level", "warn"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return arguments;
}

std::string announced_url(Process& process) {
  std::string const prefix = "listening on ";
  for (;;) {
    auto const line = process.read_line();
    if (line.starts_with(prefix)) return line.substr(prefix.size());
  }
}

}  // namespace

std::string Answer::code() const {
  boost::system::error_code error;
  auto const value = boost::json::parse(body, error);
  if (error || !value.is_object()) return "";
  auto const* code = value.as_object().if_contains("code");
  return code != nullptr && code->is_string() ? std::string(code->as_string()) : "";
}

std::string Answer::header(std::string const& name) const {
  auto const found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

Service::Service(std::string name, std::vector<std::string> arguments)
    : Service(std::move(name), Process(std::move(arguments))) {}

Service::Service(std::string name, Process started)
    : process(std::move(started)), id(std::move(name)), url(announced_url(process)) {}

std::uint16_t Service::port() const {
  std::uint16_t port = 0;
  auto const colon = url.rfind(':');
  std::from_chars(url.data() + colon + 1, url.data() + url.size(), port);
  return port;
}

std::unique_ptr<httplib::Client> Service::client() const {
  auto client = std::make_unique<httplib::Client>(url);
  client->set_read_timeout(60);
  client->set_tcp_nodelay(true);
  return client;
}

Answer Service::get(std::string const& path) const { return to_answer(client()->Get(path)); }
Answer Service::put(std::string const& path, std::string const& json) const {
  return to_answer(client()->Put(path, json, "application/json"));
}
Answer Service::post(std::string const& path, std::string const& json, httplib::Headers headers) const {
  return to_answer(client()->Post(path, headers, json, "application/json"));
}
Answer Service::erase(std::string const& path) const { return to_answer(client()->Delete(path)); }

Answer Service::put_tensor(std::string const& name, std::string const& dtype, std::string const& shape,
                           std::string bytes) const {
  httplib::Headers const headers{{"Tensor-Dtype", dtype}, {"Tensor-Shape", shape}};
  return to_answer(client()->Put("/v1/tensors/" + name, headers, bytes, "application/octet-stream"));
}

std::uint64_t Service::tensor_version(std::string const& name) const {
  auto const answer = to_answer(client()->Head("/v1/tensors/" + name));
  if (answer.status != 200) return 0;
  auto const text = answer.header("Tensor-Version");
  std::uint64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

bool Service::is_ready() const {
  try {
    return get("/readyz").status == 200;
  } catch (std::runtime_error const&) { return false; }
}

double Service::metric(std::string const& name_and_labels) const {
  std::istringstream lines(get("/metrics").body);
  double sum = 0;
  bool found = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name_and_labels)) continue;
    auto const space = line.rfind(' ');
    double value = 0;
    std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
    sum += value;
    found = true;
  }
  return found ? sum : -1;
}

Cluster::Cluster(std::size_t workers, std::vector<std::string> localities, std::vector<std::string> coordinator_flags)
    : coordinator("coordinator", coordinator_arguments(coordinator_port, coordinator_flags)) {
  for (std::size_t i = 0; i < workers; ++i)
    add_worker("w" + std::to_string(i), i < localities.size() ? localities[i] : "host=h0");
}

Service& Cluster::add_worker(std::string const& id, std::string const& locality, std::vector<std::string> const& flags,
                             std::string const& program) {
  std::vector<std::string> arguments{binary(program), "--port",      "0",   "--coordinator",
                                     coordinator.url, "--id",        id,    "--locality",
                                     locality,        "--log-level", "warn"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  workers_.push_back(std::make_unique<Service>(id, std::move(arguments)));
  auto& worker = *workers_.back();
  if (!eventually([&] { return worker.get("/readyz").status == 200; }))
    throw std::runtime_error("worker " + id + " did not become ready: " + worker.get("/readyz").body);
  return worker;
}

void Cluster::kill_worker(std::size_t i) {
  worker(i).process.signal(SIGKILL);
  worker(i).process.wait();
}

std::vector<std::string> Cluster::make_group(std::string const& name, std::vector<std::string> ids) {
  if (ids.empty())
    for (auto const& worker : workers_) ids.push_back(worker->id);
  boost::json::array list;
  for (auto const& id : ids) list.emplace_back(id);
  auto const answer =
      coordinator.put("/v1/groups/" + name, boost::json::serialize(boost::json::object{{"workers", std::move(list)}}));
  if (answer.status / 100 != 2) throw std::runtime_error("PUT group " + name + ": " + answer.body);
  std::vector<std::string> in_rank_order;
  auto const group = answer.json();
  for (auto const& member : group.at("members").as_array()) in_rank_order.emplace_back(member.at("worker").as_string());
  return in_rank_order;
}

Service& Cluster::at_rank(std::string const& group, std::uint32_t rank) {
  auto const view = coordinator.get("/v1/groups/" + group).json();
  auto const& id = view.at("members").as_array().at(rank).at("worker").as_string();
  for (auto const& worker : workers_)
    if (worker->id == std::string_view(id)) return *worker;
  throw std::runtime_error("rank " + std::to_string(rank) + " is on no worker of this cluster");
}

boost::json::value Cluster::run(boost::json::object request) {
  return coordinator.post("/v1/collectives?wait=30s", boost::json::serialize(request)).json();
}

}  // namespace chorus::testing
