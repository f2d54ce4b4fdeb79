#include "server/coordinator/observability/demo.hpp"

#include <algorithm>

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;

constexpr char const* tensor_name = "chorus.demo";
constexpr char const* group_name = "demo";
constexpr std::uint64_t elements_max = 4 << 20;
constexpr std::size_t members_max = 64;
constexpr std::chrono::seconds demo_patience{5};  // for all tensors

Problem invalid(char const* pointer, std::string detail) {
  Problem problem(ProblemCode::invalid_field, std::move(detail));
  problem.errors.push_back({pointer, problem.detail});
  return problem;
}

}  // namespace

// State of the PUTs; lives until the last member has answered.
struct Demo::Spreading {
  Spreading(asio::any_io_executor executor, std::size_t members, std::uint64_t count)
      : elements(count), pending(members), changed(std::move(executor)) {}
  std::uint64_t const elements;
  TimePoint const deadline = std::chrono::steady_clock::now() + demo_patience;
  std::size_t pending;
  std::optional<Problem> problem;
  http::Condition changed;
};

Demo::Demo(Tools tools) : tools_(tools), tasks_(tools.executor) {}

Demo::~Demo() = default;

asio::awaitable<void> Demo::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

asio::awaitable<http::Checked<api::Group>> Demo::find_group(std::optional<std::string> name) {
  auto const& groups = tools_.cluster.groups();
  if (name) {
    auto const named = groups.find(*name);
    if (named.has_error()) co_return named.error();
    co_return *named.value();
  }
  auto const ready = std::min(tools_.cluster.membership().ready_count(), members_max);
  auto const present = groups.find(group_name);
  if (present.has_value() && present.value()->state == "ready" && present.value()->members.size() == ready)
    co_return *present.value();
  if (ready == 0) co_return Problem(ProblemCode::not_enough_workers, "no worker is ready: start one, then try again");
  api::GroupRequest request;
  request.size = static_cast<std::uint32_t>(ready);
  co_return co_await tools_.cluster.put_group(group_name, std::move(request));
}

asio::awaitable<http::Checked<std::shared_ptr<Record>>> Demo::launch(api::DemoRequest request) {
  if (request.elements == 0 || request.elements > elements_max)
    co_return invalid("/elements", "elements is " + std::to_string(request.elements) + ", expected 1 to " +
                                       std::to_string(elements_max));
  auto const group = co_await find_group(request.group);
  if (group.has_error()) co_return group.error();
  auto const& members = group.value().members;
  if (members.size() > members_max)
    co_return invalid("/group", "a demonstration is for groups of at most " + std::to_string(members_max) + " members");
  auto const spreading = std::make_shared<Spreading>(tools_.executor, members.size(), request.elements);
  for (auto const& member : members) tasks_.spawn("demo tensor of " + member.worker, put_on(spreading, member));
  while (spreading->pending > 0) co_await spreading->changed.wait_until(TimePoint::max());
  if (spreading->problem) co_return *spreading->problem;
  api::CollectiveRequest collective;
  collective.group = group.value().name;
  collective.tensor = tensor_name;
  Records::Name name;
  auto launched = co_await tools_.collectives.launch(std::move(name), std::move(collective), std::nullopt,
                                                     Execution::Mode::launch_asking);
  if (launched.has_error()) co_return launched.error();
  co_return launched.value().record;
}

// Every element of rank r is r + 1, so that the expected sum is known.
asio::awaitable<void> Demo::put_on(std::shared_ptr<Spreading> spreading, api::Member member) {
  std::vector<std::int32_t> const elements(spreading->elements, static_cast<std::int32_t>(member.rank) + 1);
  auto const said = co_await tools_.workers.put_tensor(member.url, tensor_name, elements, spreading->deadline);
  if (said.has_error())
    spreading->problem =
        Problem(ProblemCode::worker_unreachable, "worker '" + member.worker + "': " + said.error().detail);
  else if (said.value().has_error())
    spreading->problem = said.value().error();
  if (--spreading->pending == 0) spreading->changed.notify_all();
}

}  // namespace chorus::coordinator
