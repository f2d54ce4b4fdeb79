#include "worker/service/group_book.hpp"

#include "collectives/core/op.hpp"
#include "worker/engine/errc.hpp"
#include "worker/service/fused_list.hpp"
#include "worker/service/local_order.hpp"
#include "worker/service/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

constexpr std::size_t max_groups = 4096;

Problem fenced(std::string const& name, std::uint32_t epoch, std::uint32_t highest, std::string_view why) {
  Problem problem(ProblemCode::epoch_fenced, "epoch " + std::to_string(epoch) + " of group " + name + " " +
                                                 std::string(why) + ": the highest seen is " + std::to_string(highest));
  problem.errors.push_back({"/group/epoch", std::to_string(highest)});
  return problem;
}

// What the coordinator drew and listed for an epoch. Two assignments that differ here are of two coordinators, one of
// which does not know of the other.
bool same_epoch(Assignment const& a, Assignment const& b) {
  return a.token == b.token && std::equal(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(),
                                          [](auto const& x, auto const& y) {
                                            return x.worker == y.worker && x.incarnation == y.incarnation &&
                                                   x.url == y.url;
                                          });
}

// As long as a call lives, also when its coroutine is cancelled.
class Counted {
 public:
  Counted(std::size_t& count, http::Condition& changed) : count_(count), changed_(changed) { ++count_; }
  ~Counted() {
    --count_;
    changed_.notify_all();
  }
  Counted(Counted const&) = delete;
  Counted& operator=(Counted const&) = delete;

 private:
  std::size_t& count_;
  http::Condition& changed_;
};

// Of the vector, as far as this member can tell.
std::uint64_t bytes_of(RunOrder const& order) {
  if (order.fused) return order.fused->bytes();
  auto elements = order.sizes.elements;
  for (auto const count : order.sizes.counts) elements += count;
  return elements * (order.admitted ? element_bytes(order.admitted->dtype) : 0);
}

steady_clock::duration timeout_of(api::LocalCall const& call, Pace const& pace, RunOrder const& order) {
  if (call.timeout_ms) return std::chrono::milliseconds(*call.timeout_ms);
  auto const patience_s = pace.patience_s(order.spec.op, bytes_of(order));
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(patience_s));
}

std::uint32_t tensors_of(RunOrder const& order) {
  if (order.fused) return static_cast<std::uint32_t>(order.fused->tensors().size());
  if (order.parts > 0) return order.parts;
  return order.tensor.empty() || (order.admitted && order.admitted->version == 0) ? 0 : 1;
}

}  // namespace

std::optional<Problem> GroupBook::assign(api::GroupAssignment const& message) {
  auto problem = accept(message);
  if (!problem && listener_) listener_(message.group.name);
  return problem;
}

std::shared_ptr<GroupEpoch const> GroupBook::epoch_of(std::string const& name) const {
  auto const found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second.epoch;
}

std::optional<Problem> GroupBook::accept(api::GroupAssignment const& message) {
  auto const& name = message.group.name;
  if (!is_valid_worker_id(name)) return invalid_field("/group/name", "is not 1 to 64 letters, digits and ._-");
  auto const incarnation = check_hex("/incarnation", message.incarnation);
  if (!incarnation) return incarnation.error();
  if (message.worker != identity_.id || *incarnation != identity_.incarnation)
    return Problem(ProblemCode::epoch_fenced,
                   "meant for " + message.worker + " of incarnation " + message.incarnation + ", this is another one");
  auto assignment = Assignment::from(message, identity_);
  if (!assignment) return assignment.error();

  auto found = entries_.find(name);
  if (found == entries_.end()) {
    if (entries_.size() == max_groups)
      return Problem(ProblemCode::unavailable, "this worker knows " + std::to_string(max_groups) + " groups already");
    found = entries_.emplace(name, Entry()).first;
  }
  auto& entry = found->second;
  auto const epoch = message.group.epoch;
  if (epoch < entry.highest_epoch) return fenced(name, epoch, entry.highest_epoch, "is over");
  if (epoch == entry.highest_epoch && entry.epoch != nullptr) {
    if (!*assignment || !same_epoch(**assignment, entry.epoch->assignment()))
      return fenced(name, epoch, epoch, "has other members or another token here");
    entry.epoch->update(message.group);
    return std::nullopt;
  }
  entry.highest_epoch = epoch;
  if (entry.epoch != nullptr) go_on(*entry.epoch, message.group);
  entry.epoch.reset();
  if (!*assignment) return std::nullopt;
  for (auto const& member : (*assignment)->members)
    if (member.worker != identity_.id) plane_.fence(member.worker, member.incarnation);
  entry.epoch = std::make_shared<GroupEpoch>(executor_, std::move(**assignment));
  return std::nullopt;
}

// A call that is under way is told whom it has lost, if that is why.
void GroupBook::go_on(GroupEpoch& epoch, api::Group const& next) {
  auto const& old = epoch.assignment();
  auto failure = went_on(old, next);
  engine::Retired retired{old.token, old.group.epoch, failure, {}};
  for (auto const rank : failure.culprits) retired.left_out.push_back(old.members[rank].worker);
  epoch.lost = std::move(failure.culprits);
  end(epoch, {failure.code, std::move(failure.text)});
  plane_.retire(std::move(retired));
}

void GroupBook::end(GroupEpoch& epoch, Error why) {
  epoch.break_epoch(why.detail);
  if (epoch.running != 0) runner_.abort(epoch.running, std::move(why));
}

Checked<GroupBook::EpochPtr> GroupBook::find(std::string const& name) const {
  auto const found = entries_.find(name);
  if (found != entries_.end() && found->second.epoch != nullptr) return found->second.epoch;
  return Problem(ProblemCode::unknown_group, "this worker is no member of a group " + name.substr(0, 80));
}

std::vector<api::Group> GroupBook::list(std::string const& after, std::size_t limit) const {
  std::vector<api::Group> groups;
  for (auto entry = entries_.upper_bound(after); entry != entries_.end() && groups.size() < limit; ++entry)
    if (auto group = get(entry->first)) groups.push_back(std::move(*group));
  return groups;
}

Checked<api::Group> GroupBook::get(std::string const& name) const {
  auto const epoch = find(name);
  if (!epoch) return epoch.error();
  auto group = (*epoch)->assignment().group;
  if ((*epoch)->unusable() && group.lost.empty()) group.state = "broken";
  return group;
}

std::optional<Problem> GroupBook::check_epoch(std::string const& name, std::uint32_t epoch) const {
  auto const found = entries_.find(name);
  if (found == entries_.end() || epoch >= found->second.highest_epoch) return std::nullopt;
  return fenced(name, epoch, found->second.highest_epoch, "is over");
}

awaitable<Checked<api::LocalReport>> GroupBook::call(std::string group, std::string op, api::LocalCall call,
                                                     std::string trace_id) {
  auto const parsed = parse_op(op);
  if (!parsed) co_return Problem(ProblemCode::not_found, "there is no operation " + op.substr(0, 80));
  if (auto problem = check_call(*parsed, call)) co_return std::move(*problem);
  auto const epoch = find(group);
  if (!epoch) co_return epoch.error();
  if (call.timeout_ms)
    if (auto const timeout = check_timeout(*call.timeout_ms); !timeout) co_return timeout.error();
  if (draining_) co_return Problem(ProblemCode::unavailable, "the worker is shutting down");
  if (auto problem = (*epoch)->unusable()) co_return std::move(*problem);
  // What only this member can see is refused before a number is drawn: the others wait, and a corrected call still
  // fits.
  auto const now = steady_clock::now();
  auto order = checked_order(**epoch, (*epoch)->next_sequence(), *parsed, now, call);
  if (!order) co_return order.error();
  order->deadline = now + timeout_of(call, (*epoch)->pace(), *order);
  Counted const counted(calls_, call_ended_);
  co_return co_await run(*epoch, *parsed, std::move(*order), std::move(call), std::move(trace_id));
}

Checked<RunOrder> GroupBook::checked_order(GroupEpoch const& epoch, std::uint64_t sequence, Op op,
                                           steady_clock::time_point deadline, api::LocalCall const& call) {
  auto order = to_order(epoch.assignment(), sequence, op, deadline, call, runner_.store());
  if (!order) return order.error();
  if (auto problem = runner_.refusal(*order)) return std::move(*problem);
  return order;
}

// `order` is the one of the next number; whoever has to wait for a turn looks at the tensors again.
awaitable<Checked<api::LocalReport>> GroupBook::run(EpochPtr epoch, Op op, RunOrder order, api::LocalCall call,
                                                    std::string trace_id) {
  GroupEpoch::Turn turn(*epoch);
  if (!turn.has_come()) {
    auto const deadline = order.deadline;
    order = {};  // who waits holds no tensors: the calls before may be in place
    if (auto problem = co_await turn.wait(deadline)) co_return std::move(*problem);
    auto again = checked_order(*epoch, turn.sequence(), op, deadline, call);
    if (!again) {
      epoch->break_epoch(again.error().detail);
      co_return again.error();
    }
    order = std::move(*again);
  }
  order.trace_id = std::move(trace_id);
  api::LocalReport report;
  report.group = epoch->assignment().group.name;
  report.epoch = epoch->assignment().group.epoch;
  report.sequence = turn.sequence();
  report.rank = epoch->assignment().rank;
  report.algorithm = order.spec.algorithm;
  report.tensors = tensors_of(order);
  auto const bytes = bytes_of(order);
  auto ended = co_await run_portions(*epoch, std::move(order), call);
  if (!ended) {
    auto problem = ended.error();
    epoch->break_epoch(problem.detail);
    if (problem.ranks.empty()) problem.ranks = epoch->lost;
    if (problem.code != ProblemCode::epoch_fenced) on_trouble_(trouble_of(epoch->assignment(), problem.ranks));
    co_return problem;
  }
  // The next call may read what this one has made: its turn is when that stands.
  auto const version = co_await runner_.commit(std::move(ended->result));
  if (!version) {
    epoch->break_epoch(version.error().detail);
    co_return to_problem(version.error(), {report.rank});
  }
  turn.finished();
  epoch->took(op, bytes, ended->seconds);
  report.seconds = ended->seconds;
  report.bytes_sent = ended->bytes_sent;
  report.bytes_received = ended->bytes_received;
  report.version = *version;
  co_return report;
}

awaitable<Checked<RunEnd>> GroupBook::run_portions(GroupEpoch& epoch, RunOrder order, api::LocalCall const& call) {
  if (!order.fused) co_return co_await run_one(epoch, std::move(order));
  RunEnd all;
  for (std::size_t portion = 0; portion < order.fused->portions().size(); ++portion) {
    auto next = portion == 0 ? Checked<RunOrder>(order) : portion_of(order, portion, epoch.assignment(), call);
    if (!next) co_return next.error();
    auto ended = co_await run_one(epoch, std::move(*next));
    if (!ended) co_return ended.error();
    all.seconds += ended->seconds;
    all.bytes_sent += ended->bytes_sent;
    all.bytes_received += ended->bytes_received;
    all.result.add(std::move(ended->result));
  }
  co_return all;
}

awaitable<Checked<RunEnd>> GroupBook::run_one(GroupEpoch& epoch, RunOrder order) {
  if (auto problem = epoch.unusable()) co_return std::move(*problem);
  epoch.running = order.run;
  auto ended = co_await runner_.run(std::move(order));
  epoch.running = 0;
  if (ended && ended->problem) co_return std::move(*ended->problem);
  co_return ended;
}

std::vector<api::GroupCalls> GroupBook::calls() const {
  std::vector<api::GroupCalls> calls;
  for (auto const& [name, entry] : entries_)
    if (entry.epoch != nullptr && entry.epoch->calls().calls > 0) calls.push_back(entry.epoch->calls());
  return calls;
}

awaitable<void> GroupBook::drained(steady_clock::time_point deadline) {
  while (calls_ > 0 && steady_clock::now() < deadline) co_await call_ended_.wait_until(deadline);
}

void GroupBook::stop(std::string const& why) {
  draining_ = true;
  for (auto& [name, entry] : entries_)
    if (entry.epoch != nullptr) end(*entry.epoch, {engine::EngineErrc::aborted, why});
}

}  // namespace chorus::service
