#include "server/coordinator/cluster/survey.hpp"

#include <algorithm>

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr std::size_t workers_asked_max = 256;
constexpr std::size_t surveys_kept_max = 64;

// Reports the end of a question, with or without an answer.
class Answered {
 public:
  Answered(std::size_t& pending, http::Condition& changed) : pending_(pending), changed_(changed) {}
  ~Answered() {
    if (--pending_ == 0) changed_.notify_all();
  }
  Answered(Answered const&) = delete;
  Answered& operator=(Answered const&) = delete;

 private:
  std::size_t& pending_;
  http::Condition& changed_;
};

}  // namespace

struct Survey::Traffic {
  Traffic(asio::any_io_executor executor, TimePoint now) : begun(now), changed(std::move(executor)) {}
  TimePoint begun;
  api::LinkTrafficList list;
  std::size_t pending = 0;
  http::Condition changed;
};

struct Survey::Shards {
  explicit Shards(asio::any_io_executor executor) : changed(std::move(executor)) {}
  api::ShardStatusList list;
  std::size_t pending = 0;
  http::Condition changed;
};

Survey::Survey(Tools tools, SurveyPatience patience) : tools_(tools), patience_(patience), tasks_(tools.executor) {}

Survey::~Survey() = default;

asio::awaitable<void> Survey::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

http::Checked<std::vector<Survey::Asked>> Survey::whom(std::optional<std::string> const& group) const {
  std::vector<Asked> asked;
  auto const& membership = tools_.cluster.membership();
  if (group) {
    auto const found = tools_.cluster.groups().find(*group);
    if (found.has_error()) return found.error();
    for (auto const& member : found.value()->members)
      if (auto const* worker = membership.find(member.worker); worker != nullptr && worker->ready)
        asked.push_back({worker->id, worker->url});
  } else {
    for (auto const& [id, worker] : membership.all())
      if (worker.ready) asked.push_back({id, worker.url});
  }
  if (asked.size() > workers_asked_max)
    return Problem(ProblemCode::unavailable,
                   std::to_string(asked.size()) + " workers are too many to ask at once; name a group with ?group=");
  return asked;
}

asio::awaitable<http::Checked<api::LinkTrafficList>> Survey::traffic(std::optional<std::string> group) {
  auto const now = Clock::now();
  auto const key = group.value_or("");
  auto const known = last_.find(key);
  auto traffic = known == last_.end() ? nullptr : known->second;
  if (!traffic || (traffic->pending == 0 && now - traffic->begun >= patience_.fresh)) {
    auto const workers = whom(group);
    if (workers.has_error()) co_return workers.error();
    traffic = std::make_shared<Traffic>(tools_.executor, now);
    traffic->list.at_s = std::chrono::duration<double>(now.time_since_epoch()).count();
    traffic->pending = workers.value().size();
    if (last_.size() >= surveys_kept_max) last_.clear();
    last_[key] = traffic;
    for (auto const& worker : workers.value())
      tasks_.spawn("links of " + worker.id, ask_links(traffic, worker, now + patience_.answer));
  }
  while (traffic->pending > 0) co_await traffic->changed.wait_until(TimePoint::max());
  co_return traffic->list;
}

asio::awaitable<void> Survey::ask_links(std::shared_ptr<Traffic> traffic, Asked worker, TimePoint deadline) {
  Answered const answered(traffic->pending, traffic->changed);
  auto const said = co_await tools_.workers.list_links(worker.url, deadline);
  if (said.has_error() || said.value().has_error()) {
    traffic->list.silent.push_back(worker.id);
    co_return;
  }
  for (auto const& link : said.value().value().items) {
    auto& item = traffic->list.items.emplace_back();
    item.from = worker.id;
    item.to = link.worker;
    item.link = link.link;
    item.connections = link.connections;
    item.why_not_shm = link.why_not_shm;
    item.sent_bytes = link.sent_bytes;
    item.send_busy_seconds = link.send_busy_seconds;
  }
}

asio::awaitable<api::ShardStatusList> Survey::shards(api::Parameter parameter) {
  auto const shards = std::make_shared<Shards>(tools_.executor);
  auto const deadline = Clock::now() + patience_.answer;
  auto const is_owner = [](api::ParameterEndpoint const& endpoint) { return endpoint.role == "owner"; };
  shards->pending = static_cast<std::size_t>(std::ranges::count_if(parameter.endpoints, is_owner));
  for (auto const& endpoint : parameter.endpoints)
    if (is_owner(endpoint))
      tasks_.spawn("shard of " + parameter.name, ask_shard(shards, endpoint, parameter.name, deadline));
  while (shards->pending > 0) co_await shards->changed.wait_until(TimePoint::max());
  std::ranges::sort(shards->list.items, {}, &api::ShardStatus::shard);
  co_return shards->list;
}

asio::awaitable<void> Survey::ask_shard(std::shared_ptr<Shards> shards, api::ParameterEndpoint owner,
                                        std::string parameter, TimePoint deadline) {
  Answered const answered(shards->pending, shards->changed);
  auto said = co_await tools_.workers.look_at_shard(owner.url, parameter, owner.shard, deadline);
  if (said.has_value() && said.value().has_value()) shards->list.items.push_back(std::move(said.value().value()));
}

}  // namespace chorus::coordinator
