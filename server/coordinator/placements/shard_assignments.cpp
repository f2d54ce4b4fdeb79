#include "server/coordinator/placements/shard_assignments.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/json/json.hpp"
#include "http/wire/errc.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;
using Said = WorkerClient::Said<bool>;

constexpr std::size_t most_of_a_batch = 512;  // shards; their assignments are well below a worker's limit for a body
constexpr std::size_t bytes_of_a_batch = http::json_limit_bytes / 2;

bool may_take_long(api::ShardAssignment const& assignment) {
  return assignment.fresh || assignment.recover || assignment.checkpoint || assignment.role != "owner" ||
         assignment.parameter.durability == "log";
}

Said too_late(std::string const& url) {
  return Error(http::HttpErrc::timed_out, url + " was still busy with what it was told before");
}

}  // namespace

struct ShardAssignments::Order {
  Order(asio::any_io_executor executor, api::ShardAssignment a, http::TimePoint d)
      : assignment(std::move(a)), text(http::encode(assignment)), deadline(d), answered(std::move(executor)) {}
  api::ShardAssignment const assignment;
  std::string const text;
  http::TimePoint const deadline;
  std::optional<Said> said;
  http::Condition answered;

  void answer(Said what) {
    said = std::move(what);
    answered.notify_all();
  }
};

ShardAssignments::ShardAssignments(asio::any_io_executor executor, WorkerClient& workers)
    : executor_(executor), workers_(workers), tasks_(executor) {}

asio::awaitable<void> ShardAssignments::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

asio::awaitable<Said> ShardAssignments::assign(std::string url, api::ShardAssignment assignment,
                                               http::TimePoint deadline) {
  if (may_take_long(assignment)) {
    auto said = co_await workers_.assign_shard(std::move(url), std::move(assignment), deadline);
    co_return said;
  }
  auto const order = std::make_shared<Order>(executor_, std::move(assignment), deadline);
  auto const [outbox, is_new] = outboxes_.try_emplace(url);
  outbox->second.waiting.push_back(order);
  if (is_new) tasks_.spawn("orders to " + url, send(url));
  while (!order->said) co_await order->answered.wait_until(http::TimePoint::max());
  co_return *order->said;
}

std::vector<ShardAssignments::OrderPtr> ShardAssignments::next_batch(Outbox& outbox) const {
  std::vector<OrderPtr> batch;
  std::size_t bytes = 0;
  while (!outbox.waiting.empty() && batch.size() < most_of_a_batch) {
    auto const& next = outbox.waiting.front();
    bytes += next->text.size() + 1;
    if (!batch.empty() && bytes > bytes_of_a_batch) break;
    batch.push_back(next);
    outbox.waiting.pop_front();
  }
  return batch;
}

asio::awaitable<void> ShardAssignments::send(std::string url) {
  // Waits for assignments that other tasks are about to add.
  co_await asio::post(executor_, asio::use_awaitable);
  for (auto const outbox = outboxes_.find(url); !outbox->second.waiting.empty();) {
    std::vector<OrderPtr> batch;
    for (auto const& order : next_batch(outbox->second))
      if (Clock::now() < order->deadline)
        batch.push_back(order);
      else
        order->answer(too_late(url));
    if (batch.empty()) continue;
    std::vector<std::string_view> texts;
    for (auto const& order : batch) texts.push_back(order->text);
    auto const said = co_await workers_.assign_shards(url, std::move(texts), batch.front()->deadline);
    if (said.has_value() && said.value().has_error() && said.value().error().code == ProblemCode::not_found) {
      // A worker of an earlier release gets the assignments one by one.
      tasks_.spawn("orders one by one to " + url, send_each(url, std::move(batch)));
      continue;
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (said.has_error())
        batch[i]->answer(said.error());
      else if (said.value().has_error())
        batch[i]->answer(http::Checked<bool>(said.value().error()));
      else if (auto const& error = said.value().value().items[i].error)
        batch[i]->answer(http::Checked<bool>(*error));
      else
        batch[i]->answer(http::Checked<bool>(true));
    }
  }
  outboxes_.erase(url);
}

asio::awaitable<void> ShardAssignments::send_each(std::string url, std::vector<OrderPtr> orders) {
  for (auto const& order : orders) {
    auto said = co_await workers_.assign_shard(url, order->assignment, order->deadline);
    order->answer(std::move(said));
  }
}

}  // namespace chorus::coordinator
