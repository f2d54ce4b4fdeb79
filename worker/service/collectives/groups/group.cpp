#include "worker/service/collectives/groups/group.hpp"

#include <algorithm>
#include <set>
#include <thread>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/op.hpp"
#include "collectives/model/choice/averages.hpp"
#include "collectives/model/choice/candidates.hpp"
#include "collectives/model/choice/compressions.hpp"
#include "collectives/model/network.hpp"
#include "collectives/plan/positions.hpp"
#include "collectives/plan/sizes/codes.hpp"
#include "worker/service/operands/run_order.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using http::Problem;
using http::ProblemCode;

std::string of_epoch(api::Group const& group) {
  return "epoch " + std::to_string(group.epoch) + " of group " + group.name;
}

bool fits(api::Selection const& line, std::string_view op, std::optional<std::uint64_t> bytes) {
  return line.op == op && (!line.max_bytes || (bytes && *bytes <= *line.max_bytes));
}

// Returns the line, or one with the algorithm that takes the place of the line's.
api::Selection with(api::Selection const& line, std::string_view algorithm, std::string_view why_not) {
  if (algorithm == line.algorithm) return line;
  api::Selection other;
  other.op = line.op;
  other.algorithm = algorithm;
  other.reason = line.algorithm + std::string(why_not);
  return other;
}

// Codes are added at one place: where the table has an algorithm that adds on the way, another one with few bytes.
api::Selection for_codes(api::Selection const& line, Op op, std::size_t ranks) {
  return with(line, model::algorithm_of_codes(op, line.algorithm, static_cast<std::uint32_t>(ranks)),
              " does not add codes at one place");
}

api::Selection for_average(api::Selection const& line, Op op, std::size_t ranks) {
  return with(line, model::algorithm_of_averages(op, line.algorithm, static_cast<std::uint32_t>(ranks)),
              " would carry the average in wider numbers");
}

Problem refused(std::string pointer, std::string detail) {
  Problem problem(ProblemCode::unsupported, detail);
  problem.errors.push_back({std::move(pointer), std::move(detail)});
  return problem;
}

// True if the order has every rank once.
bool is_order_of_ranks(std::vector<std::uint32_t> const& order, std::size_t ranks) {
  std::vector<bool> seen(ranks);
  for (auto const rank : order) {
    if (rank >= ranks || seen[rank]) return false;
    seen[rank] = true;
  }
  return order.size() == ranks;
}

// By position.
std::vector<Locality> localities_of(api::Group const& group) {
  std::vector<Locality> localities;
  for (std::size_t i = 0; i < group.members.size(); ++i)
    localities.push_back(group.members[group.by_position ? (*group.by_position)[i] : i].locality);
  return localities;
}

// Empty if no messages are codes, or all.
std::optional<http::Checked<api::Selection>> with_codes_between(api::Group const& group, std::string_view op,
                                                                std::string_view algorithm,
                                                                std::optional<Compression> const& compression) {
  if (!compression || !compression->between || group.members.empty()) return std::nullopt;
  auto const localities = localities_of(group);
  model::Network const network(localities, model::Constants::defaults());
  auto const level = model::coded_level(compression, network);
  if (!level) return std::nullopt;
  auto const& coded = algorithms::grouped_allpairs;
  if (op != name(Op::all_reduce))
    return refused("/compression", std::string(op) + " has no algorithm with codes between " +
                                       std::string(name(*level)) + "s; all_reduce has one");
  if (!algorithm.empty() && algorithm != coded.name)
    return refused("/algorithm",
                   std::string(algorithm) + " sends no codes between groups; " + std::string(coded.name) + " does");
  auto const shape = model::shape_between(*level, network);
  if (!shape) return refused("/compression", shape.error().detail);
  api::Selection selection;
  selection.op = op;
  selection.algorithm = coded.name;
  selection.algorithm_shape = *shape;
  return selection;
}

}  // namespace

std::uint64_t segment_bytes_of(api::Group const& group) {
  if (group.members.empty()) return api::default_segment_bytes;
  auto const localities = localities_of(group);
  auto constants = model::Constants::defaults();
  constants.host_cores = std::max(std::thread::hardware_concurrency(), 1U);
  return model::Network(localities, constants).segment_bytes();
}

plan::Spec positioned(plan::Spec spec, api::Group const& group) {
  auto const algorithm = algorithms::find(spec.algorithm);
  if (!group.by_position || !algorithm) return spec;
  return plan::with_positions(**algorithm, std::move(spec), *group.by_position);
}

http::Checked<std::optional<Assignment>> Assignment::from(api::GroupAssignment const& message, Identity const& self) {
  auto const& members = message.group.members;
  auto const& order = message.group.by_position;
  if (order && !members.empty() && !is_order_of_ranks(*order, members.size()))
    return invalid_field("/group/by_position", "does not have every rank once");
  Assignment assignment;
  assignment.group = message.group;
  assignment.segment_bytes = segment_bytes_of(message.group);
  auto const token = check_hex("/token", message.token);
  if (!token) return token.error();
  assignment.token = *token;
  bool is_member = false;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto const& member = members[i];
    auto const at = "/group/members/" + std::to_string(i);
    if (member.rank != i)
      return invalid_field(at + "/rank", "is not " + std::to_string(i) + ": members come in rank order");
    if (!is_valid_worker_id(member.worker)) return invalid_field(at + "/worker", "is not a worker id");
    if (!seen.insert(member.worker).second) return invalid_field(at + "/worker", "is listed twice");
    auto const incarnation = check_hex(at + "/incarnation", member.incarnation);
    if (!incarnation) return incarnation.error();
    assignment.members.push_back({member.rank, member.worker, *incarnation, member.url});
    if (member.worker != self.id || *incarnation != self.incarnation) continue;
    assignment.rank = member.rank;
    is_member = true;
  }
  if (!is_member) return std::optional<Assignment>();
  return std::optional(std::move(assignment));
}

engine::Retired retired_by(http::Problem const& why, Assignment const& assignment) {
  return {assignment.token, assignment.group.epoch, {to_errc(why.code), why.detail, why.ranks, {}}, {}};
}

engine::Failure superseded_by(Assignment const& assignment, api::Group const& next) {
  engine::Failure failure{engine::EngineErrc::epoch_fenced, {}, {}, {}};
  if (next.members.empty()) {
    failure.text = "group " + assignment.group.name + " was deleted";
    return failure;
  }
  failure.text = "group " + assignment.group.name + " went on to epoch " + std::to_string(next.epoch);
  for (auto const& peer : assignment.members) {
    auto const incarnation = api::to_hex(peer.incarnation);
    bool const stays = std::any_of(next.members.begin(), next.members.end(), [&](auto const& member) {
      return member.worker == peer.worker && member.incarnation == incarnation;
    });
    if (stays) continue;
    failure.code = engine::EngineErrc::peer_lost;
    failure.text += (failure.culprits.empty() ? " without rank " : ", rank ") + std::to_string(peer.rank) + " (" +
                    peer.worker + ")";
    failure.culprits.push_back(peer.rank);
  }
  return failure;
}

api::Trouble trouble_of(Assignment const& assignment, std::vector<plan::Rank> const& culprits) {
  api::Trouble trouble{assignment.group.name, assignment.group.epoch, {}};
  for (auto const rank : culprits)
    if (rank < assignment.members.size() && rank != assignment.rank)
      trouble.accused.push_back({assignment.members[rank].worker, api::to_hex(assignment.members[rank].incarnation)});
  return trouble;
}

http::Checked<std::optional<Compression>> decide_compression(api::Group const& group, CompressionQuestion const& call,
                                                             std::optional<CompressionWish> const& wish) {
  if (!wish) return std::optional<Compression>();
  if (!wish->is_automatic()) return wish->fixed();
  if (!can_be_compressed(call.op)) return refused("/compression", plan::has_no_codes(call.op));
  if (reduces(call.op) && !plan::has_bound(call.reduce))
    return refused("/compression", plan::has_no_bound(call.reduce));
  if (call.shares_memory) return std::optional<Compression>();
  if (!group.compression)
    return refused("/compression", of_epoch(group) +
                                       " has no table for 'auto': its coordinator or a member is of an earlier "
                                       "release; name a format");
  auto const op = name(call.op);
  Compression const any(WireFormat::bf16, wish->between());
  if (auto const coded = with_codes_between(group, op, "", any); coded && coded->has_error()) return coded->error();
  auto const between = wish->between() ? std::optional(std::string(name(*wish->between()))) : std::nullopt;
  auto const width = std::min<std::size_t>(element_bytes(call.dtype), sizeof(float));
  for (auto const& line : *group.compression) {
    if (line.op != op || line.element_bytes != width || line.between != between) continue;
    if (line.max_bytes && !(call.bytes && *call.bytes <= *line.max_bytes)) continue;
    for (auto const& each : line.formats) {
      auto const format = parse_wire_format(each);
      if (!format || !wish->allowed().has(*format)) continue;
      Compression const compression(*format, wish->between());
      if (plan::has_codes(call.dtype, compression)) return std::optional(compression);
    }
    break;
  }
  return std::optional<Compression>();
}

http::Checked<api::Selection> select(api::Group const& group, std::string_view op, std::optional<std::uint64_t> bytes,
                                     std::optional<std::string> const& algorithm,
                                     std::optional<Compression> const& compression, bool is_large_average) {
  bool const by_name = algorithm && *algorithm != "auto";
  if (auto coded = with_codes_between(group, op, by_name ? *algorithm : "", compression)) return std::move(*coded);
  if (by_name) {
    for (auto const& line : group.selection)
      if (line.op == op && line.algorithm == *algorithm) return line;
    api::Selection asked;
    asked.op = op;
    asked.algorithm = *algorithm;
    return asked;
  }
  auto const ranks = group.members.size();
  auto const known = parse_op(op);
  for (auto const& line : group.selection) {
    if (!fits(line, op, bytes)) continue;
    if (known && compression && !compression->between) return for_codes(line, *known, ranks);
    return known && is_large_average ? for_average(line, *known, ranks) : line;
  }
  Problem problem(ProblemCode::unsupported,
                  of_epoch(group) + " has no algorithm for " + std::string(op) +
                      (bytes ? " of " + std::to_string(*bytes) + " bytes" : std::string(" of any size")));
  problem.errors.push_back({"/algorithm", "the table of the group has no line for this: name one"});
  return problem;
}

std::optional<Problem> GroupEpoch::unusable() const {
  auto const& group = assignment_.group;
  if (!broken_.empty())
    return Problem(ProblemCode::group_broken, of_epoch(group) + " is broken: " + broken_ + "; it needs a new epoch");
  if (group.lost.empty()) return std::nullopt;
  Problem problem(ProblemCode::group_broken, of_epoch(group) + " has lost");
  for (std::size_t i = 0; i < group.lost.size(); ++i) problem.detail += (i == 0 ? " " : ", ") + group.lost[i];
  for (auto const& member : assignment_.members)
    if (std::find(group.lost.begin(), group.lost.end(), member.worker) != group.lost.end())
      problem.ranks.push_back(member.rank);
  return problem;
}

void GroupEpoch::took(Op op, std::uint64_t bytes, double seconds) {
  pace_.finished(op, bytes, seconds);
  if (is_rooted(op)) return;
  ++calls_.calls;
  calls_.seconds += seconds;
}

void GroupEpoch::break_epoch(std::string why) {
  if (broken_.empty()) broken_ = std::move(why);
  turns_.notify_all();
}

GroupEpoch::Turn::~Turn() {
  if (!finished_) epoch_.break_epoch("call " + std::to_string(sequence_) + " was given up");
  if (epoch_.serving_ == sequence_) ++epoch_.serving_;
  epoch_.turns_.notify_all();
}

boost::asio::awaitable<std::optional<Problem>> GroupEpoch::Turn::wait(std::chrono::steady_clock::time_point deadline) {
  while (epoch_.serving_ != sequence_ && epoch_.broken_.empty() && std::chrono::steady_clock::now() < deadline)
    co_await epoch_.turns_.wait_until(deadline);
  if (!epoch_.broken_.empty()) co_return epoch_.unusable();
  if (epoch_.serving_ == sequence_) co_return std::nullopt;
  co_return Problem(ProblemCode::deadline_exceeded, "call " + std::to_string(sequence_) + " on " +
                                                        of_epoch(epoch_.assignment_.group) + " still waited for call " +
                                                        std::to_string(epoch_.serving_));
}

}  // namespace chorus::service
