#include "server/coordinator/high_availability/election.hpp"

#include <boost/json/array.hpp>

#include "base/runtime/pause.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view format = "1 ";  // and the cluster's id behind it

// Body of a transaction that creates a key if it does not exist.
json::object creation(std::string const& key, std::string const& value, std::int64_t lease) {
  json::object put{{"key", to_base64(key)}, {"value", to_base64(value)}};
  if (lease != 0) put["lease"] = std::to_string(lease);
  json::object const compare{
      {"target", "CREATE"}, {"result", "EQUAL"}, {"key", to_base64(key)}, {"create_revision", "0"}};
  return {{"compare", json::array{compare}}, {"success", json::array{json::object{{"request_put", put}}}}};
}

}  // namespace

Election::Election(EtcdClient& etcd, std::uint64_t new_cluster_id, ElectionPatience patience)
    : etcd_(etcd), new_cluster_id_(new_cluster_id), patience_(patience) {}

bool Election::leads() const { return lease_ != 0 && steady_clock::now() + patience_.margin < lease_ends_; }

asio::awaitable<Status> Election::check_format(TimePoint deadline) {
  auto const found = co_await etcd_.get(format_key(), deadline);
  if (!found) co_return found.error();
  if (*found) {
    auto const& value = (*found)->value;
    if (!value.starts_with(format))
      co_return Error(EtcdErrc::newer, "the keys of cluster " + etcd_.options().cluster + " in " + etcd_.endpoint() +
                                           " are of a format that this release does not know: '" + value.substr(0, 20) +
                                           "'");
    if (cluster_id_.empty()) cluster_id_ = value;
    if (cluster_id_ == value) co_return ok();
    co_return Error(EtcdErrc::made_anew,
                    "the keys of cluster " + etcd_.options().cluster +
                        " in etcd were made anew since this coordinator saw them: it ends, and belongs to the new "
                        "cluster when it is started again");
  }
  if (!cluster_id_.empty()) co_return is_emptied();
  auto const value = std::string(format) + std::to_string(new_cluster_id_);
  auto const made = co_await etcd_.call("/v3/kv/txn", creation(format_key(), value, 0), deadline);
  if (!made) co_return made.error();
  co_return co_await check_format(deadline);
}

Error Election::is_emptied() const {
  return {EtcdErrc::emptied,
          "etcd has lost cluster " + etcd_.options().cluster +
              ": its keys are gone since this coordinator saw them; restore etcd from a snapshot, or start all "
              "coordinators again to begin with nothing"};
}

std::optional<std::string> Election::other_leader() const {
  bool const is_other = leader_ && *leader_ != own_url_ && *leader_ != url_of_holder;
  return is_other ? leader_ : std::nullopt;
}

asio::awaitable<Result<std::optional<Leadership>>> Election::try_to_lead(std::string url) {
  auto const deadline = steady_clock::now() + patience_.answer;
  own_url_ = url;
  if (auto const checked = co_await check_format(deadline); !checked) co_return checked.error();
  auto const found = co_await etcd_.get(key(), deadline);
  if (!found) co_return found.error();
  if (*found) {
    leader_ = (*found)->value;
    term_ = (*found)->create_revision;
    leader_seen_ = steady_clock::now();
    co_return std::nullopt;
  }
  leader_.reset();
  auto const begun = steady_clock::now();
  json::object const wanted{{"TTL", std::to_string(patience_.lease.count())}};
  auto const granted = co_await etcd_.call("/v3/lease/grant", wanted, deadline);
  if (!granted) co_return granted.error();
  Leadership leadership;
  leadership.key = key();
  leadership.lease = number_at(*granted, "ID");
  auto const put = co_await etcd_.call("/v3/kv/txn", creation(key(), url, leadership.lease), deadline);
  if (!put) co_return put.error();
  // The answer to the transaction is not enough: a transaction that reached etcd by two endpoints succeeds once and
  // then fails.
  auto const now = co_await etcd_.get(key(), deadline);
  if (!now) co_return now.error();
  if (!*now || (*now)->lease != leadership.lease) co_return std::nullopt;
  leadership.create_revision = (*now)->create_revision;
  lease_ = leadership.lease;
  lease_ends_ = begun + patience_.lease;
  leader_ = std::move(url);
  term_ = leadership.create_revision;
  co_return leadership;
}

asio::awaitable<Result<Leadership>> Election::campaign(std::string url) {
  for (;;) {
    auto const tried = co_await try_to_lead(url);
    if (tried && *tried && leads()) co_return **tried;
    trouble_ = tried ? "" : tried.error().detail;
    if (!tried) {
      auto const code = tried.error().code;
      bool const is_final = code == EtcdErrc::refused || code == EtcdErrc::newer || code == EtcdErrc::emptied ||
                            code == EtcdErrc::made_anew;
      // The leader that was seen last is the best answer until its lease must have ended.
      if (is_final || steady_clock::now() - leader_seen_ > patience_.lease) leader_.reset();
      if (is_final) co_return tried.error();
    }
    co_await http::pause(patience_.look);
  }
}

asio::awaitable<std::string> Election::keep() {
  auto const every = std::chrono::duration_cast<milliseconds>(patience_.lease) / 4;
  std::string why = "its lease ended";
  while (leads()) {
    auto const until = lease_ends_ - patience_.margin;
    auto const begun = steady_clock::now();
    json::object const body{{"ID", std::to_string(lease_)}};
    auto const answer = co_await etcd_.call("/v3/lease/keepalive", body, until);
    if (answer) {
      trouble_.clear();
      auto const* const result = answer->if_contains("result");
      auto const ttl = result != nullptr && result->is_object() ? number_at(result->as_object(), "TTL") : 0;
      if (ttl <= 0) {
        lease_ = 0;
        co_return "etcd has ended its lease";
      }
      lease_ends_ = begun + std::min(std::chrono::seconds(ttl), patience_.lease);
      co_await http::pause(every);
    } else {
      trouble_ = why = answer.error().detail;
      co_await http::pause(patience_.look);
    }
  }
  lease_ = 0;
  co_return "etcd has not renewed its lease in time: " + why;
}

asio::awaitable<bool> Election::was_emptied(TimePoint deadline) {
  auto const checked = co_await check_format(deadline);
  co_return !checked && checked.error().code == EtcdErrc::emptied;
}

asio::awaitable<void> Election::found_again() {
  for (;;) {
    auto const found = co_await etcd_.get(format_key(), steady_clock::now() + patience_.answer);
    if (found && *found) break;
    trouble_ = found ? is_emptied().detail : found.error().detail;
    co_await http::pause(patience_.look);
  }
  trouble_.clear();
}

asio::awaitable<void> Election::resign(TimePoint deadline) {
  if (lease_ == 0) co_return;
  json::object const body{{"ID", std::to_string(std::exchange(lease_, 0))}};
  static_cast<void>(co_await etcd_.call("/v3/lease/revoke", body, deadline));
}

}  // namespace chorus::coordinator
