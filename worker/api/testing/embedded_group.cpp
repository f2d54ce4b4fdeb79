#include "worker/api/testing/embedded_group.hpp"

#include <boost/json.hpp>
#include <exception>
#include <stdexcept>

#include "http/json/json.hpp"

namespace chorus::embedded::testing {

FakeCoordinator::FakeCoordinator() {
  server_.Post("/v1/workers", [this](httplib::Request const& request, httplib::Response& response) {
    auto worker = boost::json::parse(request.body).as_object();
    worker["state"] = "ready";
    worker["lease_ms"] = 300;
    response.status = 201;
    response.set_content(boost::json::serialize(worker), "application/json");
    std::lock_guard const lock(mutex_);
    joined_[std::string(worker["id"].as_string())] = {std::string(worker["incarnation"].as_string()),
                                                      std::string(worker["url"].as_string())};
    changed_.notify_all();
  });
  server_.Put(R"(/v1/workers/([^/]+)/lease)", [this](httplib::Request const&, httplib::Response& response) {
    std::lock_guard const lock(mutex_);
    response.status = renewal_status_;
    response.set_content(R"({"lease_ms":300,"code":"epoch_fenced","detail":"another process"})", "application/json");
  });
  server_.Delete(R"(/v1/workers/([^/]+)/lease)",
                 [](httplib::Request const&, httplib::Response& response) { response.status = 204; });
  server_.Put(R"(/v1/groups/([^/]+))",
              [this](httplib::Request const& request, httplib::Response& response) { make(request, response); });
  server_.Delete(R"(/v1/groups/([^/]+))", [this](httplib::Request const& request, httplib::Response& response) {
    remove(request.matches[1]);
    response.status = 204;
  });
  port_ = server_.bind_to_any_port("127.0.0.1");
  thread_ = std::thread([this] { server_.listen_after_bind(); });
}

FakeCoordinator::~FakeCoordinator() {
  server_.stop();
  thread_.join();
}

void FakeCoordinator::fence_all() {
  std::lock_guard const lock(mutex_);
  renewal_status_ = 409;
}

FakeCoordinator::Joined FakeCoordinator::wait_for(std::string const& id) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, std::chrono::seconds(20), [&] { return joined_.contains(id); }))
    throw std::runtime_error(id + " did not join");
  return joined_.at(id);
}

bool FakeCoordinator::has_joined(std::string const& id) {
  std::lock_guard const lock(mutex_);
  return joined_.contains(id);
}

void FakeCoordinator::make(httplib::Request const& request, httplib::Response& response) {
  std::vector<std::string> ids;
  auto const asked = boost::json::parse(request.body);
  for (auto const& id : asked.at("workers").as_array()) ids.emplace_back(id.as_string());
  for (auto const& id : ids)
    if (!has_joined(id)) {
      response.status = 404;
      return response.set_content(R"({"code":"unknown_worker","detail":"no worker ')" + id + R"(' has joined"})",
                                  "application/problem+json");
    }
  std::string const name = request.matches[1];
  std::uint32_t epoch = 0;
  {
    std::lock_guard const lock(mutex_);
    epoch = ++last_epoch_;
  }
  assign(name, epoch, ids);
  std::lock_guard const lock(mutex_);
  response.status = 201;
  response.set_content(http::encode(groups_.at(name)), "application/json");
}

void FakeCoordinator::remove(std::string const& name) {
  std::vector<chorus::api::Member> members;
  chorus::api::Group nobody;
  nobody.name = name;
  nobody.state = "ready";
  {
    std::lock_guard const lock(mutex_);
    nobody.epoch = ++last_epoch_;
    if (auto const group = groups_.extract(name)) members = group.mapped().members;
  }
  tell(nobody, members);
}

void FakeCoordinator::tell(chorus::api::Group const& group, std::vector<chorus::api::Member> const& members) {
  chorus::api::GroupAssignment message;
  message.group = group;
  message.token = "00000000000000ff";
  for (auto const& member : members) {
    message.worker = member.worker;
    message.incarnation = member.incarnation;
    httplib::Client client(member.url);
    auto const answer = client.Put("/v1/groups/" + group.name, http::encode(message), "application/json");
    if (!answer || answer->status != 204) throw std::runtime_error(answer ? answer->body : "no answer");
  }
}

void FakeCoordinator::assign(std::string const& name, std::uint32_t epoch, std::vector<std::string> const& ids,
                             Change const& change) {
  chorus::api::Group group;
  group.name = name;
  group.epoch = epoch;
  group.state = "ready";
  for (auto const& id : ids) {
    auto const joined = wait_for(id);
    chorus::api::Member member;
    member.rank = static_cast<std::uint32_t>(group.members.size());
    member.worker = id;
    member.incarnation = joined.incarnation;
    member.url = joined.url;
    group.members.push_back(std::move(member));
  }
  auto const line = [&](std::string const& op, std::optional<std::uint64_t> max_bytes, std::string const& algorithm) {
    group.selection.push_back({op, max_bytes, algorithm, 0, 2, {}, "said so"});
  };
  line("all_reduce", 1024, "tree");
  line("all_reduce", {}, "ring");
  line("reduce", {}, "tree");
  line("broadcast", {}, "tree");
  line("all_gather", {}, "ring");
  line("reduce_scatter", {}, "ring");
  line("gather", {}, "binomial");
  line("scatter", {}, "binomial");
  line("all_to_all", {}, "direct");
  line("barrier", {}, "dissemination");
  if (change) change(group);
  {
    std::lock_guard const lock(mutex_);
    groups_[name] = group;
  }
  tell(group, group.members);
}

WorkerOptions test_options(std::string id, std::string coordinator, Memory memory) {
  WorkerOptions options;
  options.id = std::move(id);
  options.coordinator = std::move(coordinator);
  options.memory_limit_bytes = 256 << 20;
  options.shares_memory = memory == Memory::shared;
  options.drain_timeout = std::chrono::milliseconds(200);
  options.log_level = "off";
  return options;
}

std::chrono::steady_clock::time_point soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

EmbeddedGroup::EmbeddedGroup(std::size_t ranks, Memory memory) {
  for (std::size_t rank = 0; rank < ranks; ++rank)
    workers.push_back(Worker::start(test_options("w" + std::to_string(rank), coordinator.url(), memory)).value());
  coordinator.assign("g", 1, ids());
}

std::vector<std::string> EmbeddedGroup::ids() const {
  std::vector<std::string> ids;
  for (auto const& worker : workers) ids.push_back(worker.id());
  return ids;
}

JoinedGroup EmbeddedGroup::join(std::size_t rank) { return workers.at(rank).join("g", soon()).value(); }

void EmbeddedGroup::everywhere(std::function<void(JoinedGroup&, std::size_t rank)> const& action) {
  std::vector<std::exception_ptr> failures(ranks());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        auto group = join(rank);
        action(group, rank);
      } catch (...) { failures[rank] = std::current_exception(); }
    });
  for (auto& thread : threads) thread.join();
  for (auto const& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace chorus::embedded::testing
