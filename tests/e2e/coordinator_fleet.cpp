#include "tests/e2e/coordinator_fleet.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

namespace chorus::testing {
namespace {

using std::chrono_literals::operator""s;

constexpr std::size_t elements = 1000;
constexpr char const* launch = R"({"group":"g","tensor":"x","timeout_ms":10000})";

std::string on_loopback(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

}  // namespace

CoordinatorFleet::CoordinatorFleet(Setup setup) : etcd(setup.etcds), setup_(std::move(setup)) {
  for (std::size_t i = 0; i < setup_.coordinators; ++i) {
    to_etcd_.emplace_back();
    for (std::size_t member = 0; member < etcd.size(); ++member) {
      to_etcd_[i].push_back(std::make_unique<FaultProxy>(i * 16 + member));
      to_etcd_[i].back()->forward_to(etcd.port(member));
    }
    ports_.push_back(std::make_unique<HeldPort>());
    to_coordinators_.push_back(std::make_unique<FaultProxy>(i));
    to_coordinators_.back()->forward_to(ports_.back()->number());
    coordinators_.emplace_back();
  }
  for (std::size_t i = 0; i < size(); ++i) start(i);
  std::string urls;
  for (std::size_t i = 0; i < size(); ++i) urls += (urls.empty() ? "" : ",") + url_for_workers(i);
  REQUIRE(eventually([&] { return leader() != nullptr; }, 20s));
  for (std::uint64_t i = 0; i < 2; ++i) {
    auto const id = "w" + std::to_string(i);
    workers.push_back(std::make_unique<Service>(
        id, command_line({binary("chorus-worker"), "--port", "0", "--coordinator", urls, "--id", id, "--locality",
                          "host=h0", "--drain-ms", "60000", "--log-level", "error"})));
    REQUIRE(workers.back()->put_tensor("x", "u64", std::vector<std::uint64_t>(elements, i + 1)).status == 201);
  }
  for (auto const& worker : workers) REQUIRE(eventually([&] { return worker->get("/readyz").status == 200; }));
  REQUIRE(leader()->put("/v1/groups/g", R"({"workers":["w0","w1"]})").status == 201);
}

std::vector<std::string> CoordinatorFleet::command_line(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), setup_.command.begin(), setup_.command.end());
  return arguments;
}

std::string CoordinatorFleet::url_for_workers(std::size_t i) const {
  return "http://" + on_loopback(setup_.are_proxied ? to_coordinators_[i]->port() : ports_[i]->number());
}

std::string CoordinatorFleet::ways_to_etcd(std::size_t i) const {
  std::string urls;
  for (auto const& proxy : to_etcd_.at(i)) urls += (urls.empty() ? "" : ",") + ("http://" + on_loopback(proxy->port()));
  return urls;
}

void CoordinatorFleet::start(std::size_t i) {
  std::vector<std::string> arguments{binary("chorus-coordinator"),
                                     "--port",
                                     ports_[i]->text(),
                                     "--etcd",
                                     ways_to_etcd(i),
                                     "--lease-ms",
                                     "4000",
                                     "--log-level",
                                     "error"};
  arguments.insert(arguments.end(), setup_.flags.begin(), setup_.flags.end());
  if (setup_.are_proxied) arguments.insert(arguments.end(), {"--advertise", on_loopback(to_coordinators_[i]->port())});
  coordinators_[i] = std::make_unique<Service>("c" + std::to_string(i), command_line(std::move(arguments)));
}

void CoordinatorFleet::start_crashing(std::size_t i, std::uint64_t point, std::string const& armed) {
  coordinators_[i].reset();  // a standby, which would keep the port
  coordinators_[i] = std::make_unique<Service>(
      "c" + std::to_string(i),
      command_line({binary("crashing_coordinator"), ways_to_etcd(i), ports_[i]->text(), std::to_string(point), armed}));
}

std::size_t CoordinatorFleet::number_of(Service const* one) const {
  return static_cast<std::size_t>(std::ranges::find(coordinators_, one, &std::unique_ptr<Service>::get) -
                                  coordinators_.begin());
}

bool CoordinatorFleet::has_ended(std::size_t i) const { return coordinators_.at(i)->process.has_ended(); }

bool CoordinatorFleet::is_ready(std::size_t i) const {
  return coordinators_.at(i) != nullptr && coordinators_[i]->is_ready();
}

std::string CoordinatorFleet::ready_text(std::size_t i) const {
  try {
    return coordinators_.at(i)->get("/readyz").body;
  } catch (std::runtime_error const&) { return ""; }
}

std::size_t CoordinatorFleet::leaders() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < size(); ++i) count += is_ready(i) ? 1 : 0;
  return count;
}

Service* CoordinatorFleet::leader(Service const* other_than) const {
  for (std::size_t i = 0; i < size(); ++i)
    if (coordinators_[i].get() != other_than && is_ready(i)) return coordinators_[i].get();
  return nullptr;
}

bool CoordinatorFleet::launches(Service const* by) {
  if (by == nullptr) return false;
  try {
    auto const answer = by->post("/v1/collectives?wait=20s", launch);
    return answer.status == 200 && answer.json().at("state") == "succeeded";
  } catch (std::runtime_error const&) {  // the coordinator has ended
    return false;
  }
}

bool CoordinatorFleet::succeeds(Service const& leader, std::string& key) {
  try {
    auto const answer = leader.post("/v1/collectives?wait=20s", launch, {{"Idempotency-Key", key}});
    if (answer.status != 200) {
      if (answer.code() == "interrupted") key += "+";
      return false;
    }
    auto const record = answer.json();
    if (record.at("state") != "failed") return record.at("state") == "succeeded";
    CHECK_MESSAGE(record.at("error").at("code") == "interrupted", answer.body);
    key += "+";
  } catch (std::runtime_error const&) {  // the leader has changed again
  }
  return false;
}

// 1 and 2 make 3; from then on both values double.
std::vector<std::uint64_t> CoordinatorFleet::value_after(std::uint64_t launches) {
  return std::vector<std::uint64_t>(elements, std::uint64_t{3} << (launches - 1));
}

bool CoordinatorFleet::holds(std::vector<std::uint64_t> const& value) const {
  return std::ranges::all_of(
      workers, [&](auto const& worker) { return worker->template get_tensor<std::uint64_t>("x") == value; });
}

void CoordinatorFleet::harm_way_to_etcd(std::size_t i, Harm harm) {
  for (auto const& proxy : to_etcd_.at(i)) proxy->suffer(harm);
}

bool is_etcd_missing() {
  auto const why = Etcd::missing();
  if (!why.empty()) MESSAGE("skipped: " << why);
  return !why.empty();
}

}  // namespace chorus::testing
