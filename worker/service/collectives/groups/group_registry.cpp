#include "worker/service/collectives/groups/group_registry.hpp"

#include "collectives/core/nearest_name.hpp"
#include "collectives/core/op.hpp"
#include "http/json/json.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/engine/trace/run_identity.hpp"
#include "worker/service/collectives/groups/local_order.hpp"
#include "worker/service/operands/fused_list.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/service/tensors/digest.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

constexpr std::size_t max_groups = 4096;
constexpr std::chrono::seconds farewell{30};  // for telling members that the epoch is broken
Problem fenced(std::string const& name, std::uint32_t epoch, std::uint32_t highest, std::string_view why) {
  Problem problem(ProblemCode::epoch_fenced, "epoch " + std::to_string(epoch) + " of group " + name + " " +
                                                 std::string(why) + ": the highest seen is " + std::to_string(highest));
  problem.errors.push_back({"/group/epoch", std::to_string(highest)});
  return problem;
}

// Compares what the coordinator drew and listed for an epoch. Assignments that differ here come from two coordinators
// that do not know each other.
bool same_epoch(Assignment const& a, Assignment const& b) {
  return a.token == b.token && std::equal(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(),
                                          [](auto const& x, auto const& y) {
                                            return x.worker == y.worker && x.incarnation == y.incarnation &&
                                                   x.url == y.url;
                                          });
}

// Counts a call while it lives, also if its coroutine is cancelled.
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

// Size of the vector, as far as this member can tell.
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

// Name by which a repetition of the call is recognised; "" if there is none.
std::string name_of(api::LocalCall const& call, std::optional<std::string> const& key, std::uint32_t epoch) {
  if (key) return "key " + *key;
  if (!call.sequence) return "";
  return "call " + std::to_string(call.epoch.value_or(epoch)) + "/" + std::to_string(*call.sequence);
}

// Text that a repetition shares with the first call. A digest, because a list of tensors may be long.
std::string asked_by(std::string const& op, api::LocalCall const& call) {
  auto const text = op + " " + http::encode(call);
  return fast_digest(std::as_bytes(std::span(text)));
}

std::string in_words(std::string const& op, api::LocalCall const& call) {
  if (!call.tensors.empty()) return op + " of " + call.tensors.front() + " and others";
  return call.tensor.empty() ? op : op + " of " + call.tensor;
}

Problem unknown_group(std::string const& name) {
  return {ProblemCode::unknown_group, "this worker is no member of a group " + name.substr(0, 80)};
}

std::uint32_t tensors_of(RunOrder const& order) {
  if (order.fused) return static_cast<std::uint32_t>(order.fused->tensors().size());
  if (order.parts > 0) return order.parts;
  return order.tensor.empty() || (order.admitted && order.admitted->version == 0) ? 0 : 1;
}

}  // namespace

std::optional<Problem> GroupRegistry::assign(api::GroupAssignment const& message) {
  auto problem = accept(message);
  if (!problem && listener_) listener_(message.group.name);
  return problem;
}

std::shared_ptr<GroupEpoch const> GroupRegistry::epoch_of(std::string const& name) const {
  auto const found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second->epoch;
}

std::optional<Problem> GroupRegistry::accept(api::GroupAssignment const& message) {
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
    if (entries_.size() - retired_.size() == max_groups)
      return Problem(ProblemCode::unavailable, "this worker knows " + std::to_string(max_groups) + " groups already");
    found = entries_.emplace(name, std::make_shared<Entry>(executor_)).first;
  }
  auto& entry = *found->second;
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
  runner_.forget(name);
  entry.epoch.reset();
  std::erase(retired_, name);
  if (!*assignment) {
    retire(name);
    return std::nullopt;
  }
  for (auto const& member : (*assignment)->members)
    if (member.worker != identity_.id) plane_.fence(member.worker, member.incarnation);
  entry.epoch = std::make_shared<GroupEpoch>(executor_, std::move(**assignment));
  return std::nullopt;
}

void GroupRegistry::retire(std::string const& name) {
  retired_.push_back(name);
  if (retired_.size() <= retired_kept) return;
  entries_.erase(retired_.front());
  retired_.pop_front();
}

// The failure of the current call names the lost members, if there are any.
void GroupRegistry::go_on(GroupEpoch& epoch, api::Group const& next) {
  auto const& old = epoch.assignment();
  auto failure = superseded_by(old, next);
  engine::Retired retired{old.token, old.group.epoch, failure, {}};
  for (auto const rank : failure.culprits) retired.left_out.push_back(old.members[rank].worker);
  epoch.lost = std::move(failure.culprits);
  end(epoch, {failure.code, std::move(failure.text)});
  plane_.retire(std::move(retired));
}

void GroupRegistry::end(GroupEpoch& epoch, Error why) {
  epoch.break_epoch(why.detail);
  if (epoch.running != 0) runner_.abort(epoch.running, std::move(why));
}

Checked<GroupRegistry::EpochPtr> GroupRegistry::find(std::string const& name) const {
  auto const found = entries_.find(name);
  if (found != entries_.end() && found->second->epoch != nullptr) return found->second->epoch;
  return unknown_group(name);
}

std::vector<api::Group> GroupRegistry::list(std::string const& after, std::size_t limit) const {
  std::vector<api::Group> groups;
  for (auto entry = entries_.upper_bound(after); entry != entries_.end() && groups.size() < limit; ++entry)
    if (auto group = get(entry->first)) groups.push_back(std::move(*group));
  return groups;
}

Checked<api::Group> GroupRegistry::get(std::string const& name) const {
  auto const epoch = find(name);
  if (!epoch) return epoch.error();
  auto group = (*epoch)->assignment().group;
  if ((*epoch)->unusable() && group.lost.empty()) group.state = "broken";
  group.next_sequence = (*epoch)->next_sequence();
  return group;
}

std::optional<Problem> GroupRegistry::check_epoch(std::string const& name, std::uint32_t epoch) const {
  auto const found = entries_.find(name);
  if (found == entries_.end() || epoch >= found->second->highest_epoch) return std::nullopt;
  return fenced(name, epoch, found->second->highest_epoch, "is over");
}

awaitable<GroupRegistry::Outcome> GroupRegistry::call(std::string group, std::string op, api::LocalCall call,
                                                      Origin origin) {
  auto const parsed = parse_op(op);
  if (!parsed) co_return Problem(ProblemCode::not_found, unknown_name("operation", op, names_of(all_ops)));
  if (auto problem = check_call(*parsed, call)) co_return std::move(*problem);
  auto const found = entries_.find(group);
  if (found == entries_.end()) co_return unknown_group(group);
  auto const kept = found->second;
  auto& entry = *kept;
  auto const name = name_of(call, origin.key, entry.highest_epoch);
  auto asked = name.empty() ? "" : asked_by(op, call);
  if (auto const known = entry.answers.find(name)) {
    if (known->asked() == asked) {
      if (origin.body != nullptr) http::only_wait(*origin.body);  // the first one runs on without its client
      co_return co_await again(known);
    }
    if (origin.key) co_return http::idempotency_reused("a call on group " + group);
  }
  auto const epoch = find(group);
  if (!epoch) co_return epoch.error();
  auto const reception = name.empty() && origin.body != nullptr ? http::reception_of(*origin.body) : nullptr;
  if (auto problem = refusal(entry, **epoch, call, reception != nullptr)) co_return std::move(*problem);
  // Errors that only this member can see are refused before a number is drawn: the other members wait, and a corrected
  // call still fits.
  auto const now = steady_clock::now();
  auto const sequence = (*epoch)->next_sequence();
  auto order = checked_order(**epoch, sequence, *parsed, now, call);
  if (!order) co_return order.error();
  order->deadline = now + timeout_of(call, (*epoch)->pace(), *order);
  UnnamedCalls::Place const place{(*epoch)->assignment().group.epoch, sequence};
  if (reception)
    if (auto lost = entry.unnamed.lost(place)) co_return break_for_all(**epoch, sequence, std::move(*lost));

  std::optional<Answers::Answering> answering;
  if (!name.empty()) answering.emplace(entry.answers, name, std::move(asked));
  if (call.sequence) entry.unnamed.forget();
  if (reception) entry.unnamed.begun(place, in_words(op, call), reception);
  Counted const counted(calls_, call_ended_);
  auto* const unnamed = reception ? &entry.unnamed : nullptr;
  auto outcome = co_await run(*epoch, *parsed, std::move(*order), std::move(call), std::move(origin.trace_id), unnamed);
  if (unnamed != nullptr) outcome ? unnamed->succeeded(place) : unnamed->failed(place);
  if (answering) answering->end(outcome, sizeof outcome + name.size());
  co_return outcome;
}

awaitable<GroupRegistry::Outcome> GroupRegistry::again(Answers::RecordPtr record) {
  Counted const counted(calls_, call_ended_);
  auto outcome = co_await record->answer();
  if (outcome) co_return std::move(*outcome);
  co_return Problem(ProblemCode::unavailable, "the call was given up: the worker is shutting down");
}

std::optional<Problem> GroupRegistry::refusal(Entry& entry, GroupEpoch& epoch, api::LocalCall const& call,
                                              bool is_unnamed) {
  auto const& group = epoch.assignment().group;
  auto const next = epoch.next_sequence();
  if (call.timeout_ms)
    if (auto const timeout = check_timeout(*call.timeout_ms); !timeout) return timeout.error();
  if (call.epoch && *call.epoch != group.epoch) {
    Problem problem(ProblemCode::epoch_fenced, "the call is of epoch " + std::to_string(*call.epoch) + " of group " +
                                                   group.name + ", which stands at " + std::to_string(group.epoch));
    problem.errors.push_back({"/epoch", std::to_string(group.epoch)});
    return problem;
  }
  if (draining_) return Problem(ProblemCode::unavailable, "the worker is shutting down");
  if (auto problem = epoch.unusable()) {
    if (is_unnamed)
      if (auto const lost = entry.unnamed.lost({group.epoch, next})) problem->detail += "; " + *lost;
    return problem;
  }
  if (call.sequence && *call.sequence != next) {
    Problem wrong(ProblemCode::out_of_order, "sequence " + std::to_string(*call.sequence) +
                                                 " is not the next of epoch " + std::to_string(group.epoch) +
                                                 " of group " + group.name + " here: " + std::to_string(next) + " is");
    wrong.errors.push_back({"/sequence", std::to_string(next)});
    return wrong;
  }
  return std::nullopt;
}

Problem GroupRegistry::break_for_all(GroupEpoch& epoch, std::uint64_t sequence, std::string why) {
  why += ". A call without sequence and Idempotency-Key has come, which is that one again or the next: nobody can tell";
  auto const& assignment = epoch.assignment();
  RunOrder order;
  order.run = engine::local_run_number(assignment.group.name, assignment.group.epoch, sequence);
  order.epoch = assignment.group.epoch;
  order.token = assignment.token;
  order.rank = assignment.rank;
  order.members = assignment.members;
  order.deadline = steady_clock::now() + farewell;
  end(epoch, {engine::EngineErrc::aborted, std::move(why)});
  auto problem = *epoch.unusable();
  runner_.give_up(order, problem);
  on_trouble_(trouble_of(assignment, {}));
  return problem;
}

Problem GroupRegistry::fail(GroupEpoch& epoch, Problem problem) {
  epoch.break_epoch(problem.detail);
  if (problem.ranks.empty()) problem.ranks = epoch.lost;
  if (problem.code != ProblemCode::group_broken) plane_.retire(retired_by(problem, epoch.assignment()));
  if (problem.code != ProblemCode::epoch_fenced) on_trouble_(trouble_of(epoch.assignment(), problem.ranks));
  return problem;
}

Checked<RunOrder> GroupRegistry::checked_order(GroupEpoch const& epoch, std::uint64_t sequence, Op op,
                                               steady_clock::time_point deadline, api::LocalCall const& call) {
  auto order = to_order(epoch.assignment(), sequence, op, deadline, call, runner_.store());
  if (!order) return order.error();
  if (auto problem = runner_.refusal(*order)) return std::move(*problem);
  return order;
}

// `order` is for the next sequence number. A call that waits for its turn makes its order again.
awaitable<GroupRegistry::Outcome> GroupRegistry::run(EpochPtr epoch, Op op, RunOrder order, api::LocalCall call,
                                                     std::string trace_id, UnnamedCalls* unnamed) {
  GroupEpoch::Turn turn(*epoch);
  if (!turn.has_come()) {
    auto const deadline = order.deadline;
    order = {};  // holds no tensors while it waits: the calls before may be in place
    if (auto problem = co_await turn.wait(deadline)) {
      if (problem->code == ProblemCode::group_broken) co_return std::move(*problem);
      co_return fail(*epoch, std::move(*problem));
    }
    if (unnamed != nullptr)
      if (auto lost = unnamed->lost({epoch->assignment().group.epoch, turn.sequence()}))
        co_return break_for_all(*epoch, turn.sequence(), std::move(*lost));
    auto again = checked_order(*epoch, turn.sequence(), op, deadline, call);
    if (!again) co_return fail(*epoch, again.error());
    order = std::move(*again);
  }
  order.trace_id = std::move(trace_id);
  api::LocalReport report;
  report.group = epoch->assignment().group.name;
  report.epoch = epoch->assignment().group.epoch;
  report.sequence = turn.sequence();
  report.rank = epoch->assignment().rank;
  report.algorithm = order.spec.algorithm;
  if (auto const format = format_sent(order)) report.wire_format = name(*format);
  report.tensors = tensors_of(order);
  auto const bytes = bytes_of(order);
  auto ended = co_await run_portions(*epoch, std::move(order), call);
  if (!ended) co_return fail(*epoch, ended.error());
  // The next call may read this result, so its turn comes after the commit.
  auto const version = co_await runner_.commit(std::move(ended->result));
  if (!version) co_return fail(*epoch, to_problem(version.error(), {report.rank}));
  turn.finished();
  epoch->took(op, bytes, ended->statistics.seconds());
  report.seconds = ended->statistics.seconds();
  report.bytes_sent = ended->statistics.bytes_sent;
  report.bytes_received = ended->statistics.bytes_received;
  report.version = *version;
  report.next_sequence = epoch->next_sequence();
  co_return report;
}

awaitable<Checked<RunEnd>> GroupRegistry::run_portions(GroupEpoch& epoch, RunOrder order, api::LocalCall const& call) {
  if (!order.fused) co_return co_await run_one(epoch, std::move(order));
  RunEnd all;
  for (std::size_t portion = 0; portion < order.fused->portions().size(); ++portion) {
    auto next = portion == 0 ? Checked<RunOrder>(order) : portion_of(order, portion, epoch.assignment(), call);
    if (!next) co_return next.error();
    auto ended = co_await run_one(epoch, std::move(*next));
    if (!ended) co_return ended.error();
    all.statistics += ended->statistics;
    all.result.add(std::move(ended->result));
  }
  co_return all;
}

awaitable<Checked<RunEnd>> GroupRegistry::run_one(GroupEpoch& epoch, RunOrder order) {
  if (auto problem = epoch.unusable()) co_return std::move(*problem);
  epoch.running = order.run;
  auto ended = co_await runner_.run(std::move(order));
  epoch.running = 0;
  if (ended && ended->problem) co_return std::move(*ended->problem);
  co_return ended;
}

std::vector<api::GroupCalls> GroupRegistry::calls() const {
  std::vector<api::GroupCalls> calls;
  for (auto const& [name, entry] : entries_)
    if (entry->epoch != nullptr && entry->epoch->calls().calls > 0) calls.push_back(entry->epoch->calls());
  return calls;
}

awaitable<void> GroupRegistry::drained(steady_clock::time_point deadline) {
  while (calls_ > 0 && steady_clock::now() < deadline) co_await call_ended_.wait_until(deadline);
}

void GroupRegistry::stop(std::string const& why) {
  draining_ = true;
  for (auto& [name, entry] : entries_)
    if (entry->epoch != nullptr) end(*entry->epoch, {engine::EngineErrc::aborted, why});
}

}  // namespace chorus::service
