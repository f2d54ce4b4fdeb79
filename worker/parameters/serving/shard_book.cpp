#include "worker/parameters/serving/shard_book.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <iterator>

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;

constexpr std::size_t most_shards = 100'000;

Problem unknown(std::string const& parameter) {
  return {ProblemCode::unknown_parameter, "no shard of a parameter " + parameter.substr(0, 80) + " is here"};
}

}  // namespace

ShardBook::ShardBook(ShardTools tools, std::string worker, std::string incarnation)
    : tools_(std::move(tools)),
      worker_(std::move(worker)),
      incarnation_(std::move(incarnation)),
      retiring_(tools_.executor) {}

ShardBook::~ShardBook() = default;

std::optional<Problem> ShardBook::assign(api::ShardAssignment const& assignment, std::unique_ptr<Shard> loaded) {
  if (is_stopping_) return Problem(ProblemCode::unavailable, "the worker is stopping");
  if (assignment.worker != worker_ || assignment.incarnation != incarnation_)
    return Problem(ProblemCode::epoch_fenced, "meant for " + assignment.worker.substr(0, 80) + " of incarnation " +
                                                  assignment.incarnation.substr(0, 80) + ", this is another one");
  auto const& parameter = assignment.parameter.name;
  auto const shard = assignment.shard;
  auto spec = ShardSpec::from(assignment);
  if (!spec) return spec.error();
  Key const key(parameter, shard);
  auto const found = hosts_.find(key);
  if (found != hosts_.end()) {
    auto const epoch = found->second->epoch();
    if (keeps(assignment)) return found->second->assign(assignment);
    if (assignment.epoch <= epoch) {
      Problem problem(ProblemCode::epoch_fenced,
                      "a shard of another parameter of this name is here under epoch " + std::to_string(epoch));
      problem.errors.push_back({"/epoch", std::to_string(epoch)});
      return problem;
    }
    retiring_.spawn("retire", retire(found->second));
    hosts_.erase(found);
  }
  if (spec->is_logged && tools_.logs.root.empty())
    return Problem(ProblemCode::unsupported,
                   "durability is log, and worker " + worker_ + " was started without --log-directory");
  if (assignment.role == "owner" && !assignment.fresh && !assignment.recover)
    return Problem(ProblemCode::parameter_lost, "shard " + std::to_string(shard) + " of " + parameter +
                                                    " is to be owned by a worker that does not have it");
  if (hosts_.size() >= most_shards)
    return Problem(ProblemCode::unavailable, std::to_string(most_shards) + " shards are here already");
  if (!loaded) {
    auto made = Shard::make(std::move(*spec), tools_.memory());
    if (!made) return why_not_made(made.error());
    loaded = std::move(*made);
  }
  hosts_.emplace(key, std::make_shared<ShardHost>(tools_, std::move(loaded), assignment));
  return std::nullopt;
}

bool ShardBook::keeps(api::ShardAssignment const& assignment) const {
  auto const spec = ShardSpec::from(assignment);
  auto const found = hosts_.find(Key(assignment.parameter.name, assignment.shard));
  if (!spec || found == hosts_.end()) return false;
  auto const& present = found->second->spec();
  // The parameter was deleted, which this worker was not told, and made again.
  auto const is_other = !spec->uid.empty() && present.uid != spec->uid;
  auto const is_new = is_other || (assignment.fresh && assignment.epoch > found->second->epoch());
  return !is_new && present.begin == spec->begin && present.end == spec->end && present.dtype == spec->dtype;
}

std::optional<Problem> ShardBook::erase(std::string const& parameter, std::uint32_t shard, std::uint32_t epoch) {
  auto const found = hosts_.find(Key(parameter, shard));
  if (found == hosts_.end()) return unknown(parameter);
  if (epoch < found->second->epoch())
    return Problem(ProblemCode::epoch_fenced,
                   "the shard has been placed here again since, under epoch " + std::to_string(found->second->epoch()));
  retiring_.spawn("retire", retire(found->second));
  hosts_.erase(found);
  return std::nullopt;
}

// Also removes its log: the present owner keeps a log of its own.
asio::awaitable<void> ShardBook::retire(std::shared_ptr<ShardHost> host) {
  host->close(Problem(ProblemCode::misdirected,
                      "shard " + std::to_string(host->spec().index) + " of " + host->spec().parameter + " has gone"));
  co_await host->stop();
  co_await host->remove_log();
}

http::Checked<std::shared_ptr<ShardHost>> ShardBook::find(std::string const& parameter, std::uint32_t shard) const {
  auto const found = hosts_.find(Key(parameter, shard));
  if (found != hosts_.end()) return found->second;
  auto const other = hosts_.lower_bound(Key(parameter, 0));
  if (other != hosts_.end() && other->first.first == parameter)
    return Problem(ProblemCode::misdirected,
                   "shard " + std::to_string(shard) + " of " + parameter + " is not on this worker");
  return unknown(parameter);
}

api::ShardStatusList ShardBook::list(std::string const& after, std::size_t limit) const {
  api::ShardStatusList page;
  auto next = after.empty() ? hosts_.begin() : hosts_.upper_bound(Key(after, UINT32_MAX));
  while (next != hosts_.end()) {
    auto const parameter = next->first.first;
    auto const end = hosts_.upper_bound(Key(parameter, UINT32_MAX));
    auto const shards = static_cast<std::size_t>(std::distance(next, end));
    if (!page.items.empty() && page.items.size() + shards > limit) {
      page.next_cursor = page.items.back().parameter;
      break;
    }
    for (; next != end; ++next) page.items.push_back(next->second->status());
  }
  return page;
}

ShardBook::Totals ShardBook::totals() const {
  Totals totals;
  for (auto const& [key, host] : hosts_) {
    auto const rows = host->rows().value_or(0);
    if (host->role() == ShardHost::Role::owner) {
      totals.owned_rows += rows;
      ++totals.owned;
      totals.owned_bytes += host->value_bytes();
      totals.backups_behind += host->backups_behind();
    } else {
      totals.backup_rows += rows;
      ++totals.backups;
      totals.backup_bytes += host->value_bytes();
    }
  }
  return totals;
}

std::optional<std::string> ShardBook::log_failure() const {
  for (auto const& [key, host] : hosts_)
    if (auto const failure = host->log_failure()) return failure->detail;
  return std::nullopt;
}

asio::awaitable<void> ShardBook::stop() {
  is_stopping_ = true;
  for (auto const& [key, host] : hosts_) retiring_.spawn("stop", host->stop());
  co_await retiring_.join();
}

}  // namespace chorus::parameters
