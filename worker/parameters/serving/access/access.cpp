#include "worker/parameters/serving/access/access.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <cstring>

#include "http/wire/errc.hpp"
#include "worker/parameters/serving/access/nonfinite_in_turns.hpp"
#include "worker/parameters/serving/access/push_fields.hpp"
#include "worker/parameters/serving/access/row_calls.hpp"
#include "worker/parameters/shard/pushes/step.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::uint64_t number_or_0(http::Fields const& fields, std::string_view name) {
  auto const number = number_field(fields, name);
  return number && *number ? **number : 0;
}

std::string unquoted(std::string_view tag) {
  if (tag.size() >= 2 && tag.front() == '"' && tag.back() == '"') tag = tag.substr(1, tag.size() - 2);
  return std::string(tag);
}

// The owner's timeout is shorter than the caller's, so that the owner's answer arrives.
std::string timeout_query(http::TimePoint deadline) {
  auto const left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
  return "&timeout_ms=" + std::to_string(std::max<milliseconds::rep>(left.count() - left.count() / 16, 0));
}

// Problems that may go away: the shard has another owner, the owner is not ready, or the network changed the request.
bool is_worth_repeating(ProblemCode code) {
  return code == ProblemCode::misdirected || code == ProblemCode::unknown_parameter ||
         code == ProblemCode::unavailable || code == ProblemCode::digest_mismatch;
}

}  // namespace

// Requests to owners, and their results.
struct Access::Asked {
  struct Part {
    api::ParameterEndpoint owner;
    bool is_concerned = false;
    unsigned status = 0;
    http::Fields fields;
    std::optional<Problem> problem;
    bool has_ended = false;
  };
  Asked(asio::any_io_executor executor, PlacementPtr p, Make m, http::TimePoint d)
      : placement(std::move(p)), make(std::move(m)), deadline(d), ended(std::move(executor)) {}
  PlacementPtr placement;
  Make make;
  http::TimePoint deadline;
  std::vector<Part> parts;
  std::size_t pending = 0;
  http::Condition ended;
};

// Signals the end of a part to the waiting call, also if the part is cancelled.
class Access::Ending {
 public:
  Ending(Asked& asked, Asked::Part& part) : asked_(asked), part_(part) {}
  ~Ending() {
    if (!part_.has_ended) part_.problem = Problem(ProblemCode::unavailable, "the request was given up");
    --asked_.pending;
    asked_.ended.notify_all();
  }
  Ending(Ending const&) = delete;
  Ending& operator=(Ending const&) = delete;

 private:
  Asked& asked_;
  Asked::Part& part_;
};

Problem Access::with_what_was_applied(Problem problem, Asked const& asked) {
  auto const has_applied = [](Asked::Part const& part) {
    return part.is_concerned && !part.problem && part.fields.find("Chorus-Next-Sequence");
  };
  if (std::ranges::any_of(asked.parts, has_applied))
    problem.detail += "; other shards have applied their part: only the same push may follow";
  return problem;
}

Access::Access(asio::any_io_executor executor, http::Client& client, http::MessageChecksums checksums,
               std::string coordinator, bool is_patient)
    : executor_(executor),
      directory_(client, std::move(coordinator)),
      owners_(client, checksums),
      is_patient_(is_patient),
      tasks_(std::move(executor)) {}

asio::awaitable<void> Access::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

Access::Outcome Access::joined(std::vector<Outcome> const& of_shards) {
  Outcome whole;
  whole.version = UINT64_MAX;
  whole.duplicate = true;
  for (auto const& one : of_shards) {
    whole.epoch = std::max(whole.epoch, one.epoch);
    whole.version = std::min(whole.version, one.version);
    whole.next_sequence = one.next_sequence;
    whole.duplicate &= one.duplicate;
    whole.tags.push_back(one.tags.front());
  }
  return whole;
}

asio::awaitable<http::Checked<Access::Outcome>> Access::ask_all(PlacementPtr placement, Make make,
                                                                http::TimePoint deadline,
                                                                std::optional<std::uint32_t> only) {
  auto const asked = std::make_shared<Asked>(executor_, placement, std::move(make), deadline);
  for (auto const& owner : placement->owners) asked->parts.push_back({owner, false, 0, {}, std::nullopt, false});
  asked->pending = only ? 1 : asked->parts.size();
  for (std::size_t shard = only.value_or(0); shard < (only ? *only + 1 : asked->parts.size()); ++shard)
    tasks_.spawn("ask for " + placement->parameter.name, ask(asked, shard));
  while (asked->pending > 0) co_await asked->ended.wait_until(http::TimePoint::max());

  Outcome outcome;
  outcome.version = UINT64_MAX;
  outcome.duplicate = true;
  outcome.unchanged = true;
  for (auto const& part : asked->parts) {
    if (!part.is_concerned) {
      if (!only) outcome.tags.emplace_back();
      continue;
    }
    if (part.problem) co_return with_what_was_applied(*part.problem, *asked);
    outcome.epoch = std::max(outcome.epoch, static_cast<std::uint32_t>(number_or_0(part.fields, "Parameter-Epoch")));
    outcome.version = std::min(outcome.version, number_or_0(part.fields, "Parameter-Version"));
    outcome.tags.push_back(unquoted(part.fields.find("ETag").value_or("")));
    outcome.next_sequence = number_or_0(part.fields, "Chorus-Next-Sequence");
    outcome.duplicate &= part.fields.find("Chorus-Duplicate") == "true";
    outcome.unchanged &= part.status == 304;
    outcome.is_unconfirmed |= part.fields.find("Parameter-Unconfirmed") == "true";
  }
  if (outcome.version == UINT64_MAX) outcome.version = 0;
  co_return outcome;
}

// Asks until the shard's owner answers, and follows changes of the owner.
asio::awaitable<void> Access::ask(AskedPtr asked, std::size_t shard) {
  constexpr milliseconds first_pause{10}, longest_pause{200};
  constexpr milliseconds patience_with_silence{1000};
  auto& part = asked->parts[shard];
  Ending const ending(*asked, part);
  auto const name = asked->placement->parameter.name;
  auto why = std::string("the deadline has passed");
  for (auto pause = first_pause;; pause = std::min(pause * 2, longest_pause)) {
    auto call = asked->make(part.owner);
    part.is_concerned = call.has_value();
    if (!call) break;
    call->repeatable = true;
    auto const wanted_bytes = call->destination.size();
    call->url = part.owner.url + api::parameter_path(name) + call->url + "shard=" + std::to_string(shard) +
                timeout_query(asked->deadline);
    if (auto const& uid = asked->placement->parameter.uid) call->fields.set(std::string(uid_field), *uid);
    auto const is_waited_for = part.owner.state == "unavailable";
    auto const until =
        is_waited_for ? std::min(asked->deadline, steady_clock::now() + patience_with_silence) : asked->deadline;
    auto answer = co_await owners_.send(std::move(*call), until);
    std::string query;
    if (answer && answer->status != 304 && answer->ok() && answer->received_bytes != wanted_bytes) {
      // The parameter was deleted and made again with another size.
      part.problem = Problem(ProblemCode::length_mismatch,
                             "shard " + std::to_string(shard) + " of " + name + " has another size now");
      break;
    }
    if (answer && (answer->ok() || answer->status == 304)) {
      part.status = answer->status;
      part.fields = std::move(answer->fields);
      break;
    }
    if (answer) {
      auto problem = answer->problem();
      if (!is_worth_repeating(problem.code)) {
        part.problem = std::move(problem);
        break;
      }
      why = std::move(problem.detail);
    } else {
      why = answer.error().detail;
      query = "?suspect=" + part.owner.worker + "&incarnation=" + part.owner.incarnation;
    }
    if (steady_clock::now() + pause >= asked->deadline) {
      part.problem = Problem(ProblemCode::deadline_exceeded,
                             "shard " + std::to_string(shard) + " of " + name + " did not answer: " + why);
      break;
    }
    asio::steady_timer timer(executor_, pause);
    co_await timer.async_wait(asio::use_awaitable);
    auto const placed = co_await directory_.fetch(name, std::move(query), asked->deadline);
    if (!placed) {
      auto const is_over =
          placed.error().code == ProblemCode::unknown_parameter || placed.error().code == ProblemCode::parameter_lost;
      if (is_over) part.problem = placed.error();
    } else if (!(*placed)->is_of_same(*asked->placement) || shard >= (*placed)->owners.size() ||
               (*placed)->owners[shard].elements != part.owner.elements) {
      part.problem = made_anew(name);
    } else {
      part.owner = (*placed)->owners[shard];
      if (is_waited_for && !is_patient_ && part.owner.state == "unavailable") {
        part.problem = Problem(ProblemCode::unavailable,
                               name + " is unavailable: " + (*placed)->parameter.why.value_or("it waits for a worker"));
        part.problem->retry_after_s = 1;
      }
    }
    if (part.problem) break;
  }
  if (part.problem) directory_.forget(name);  // an outdated placement may be the reason
  part.has_ended = true;
}

asio::awaitable<http::Checked<Access::Outcome>> Access::pull(PlacementPtr placement, ReadConstraints constraints,
                                                             http::ByteRange range, Room into,
                                                             http::TimePoint deadline) {
  auto const size = element_bytes(placement->dtype);
  auto const has_tags = constraints.tags.size() == placement->owners.size();
  Make make = [constraints, range, into, size,
               has_tags](api::ParameterEndpoint const& owner) -> std::optional<http::Call> {
    auto const begin = owner.elements[0] * size, end = owner.elements[1] * size;
    auto const first = std::max(begin, range.first), last = std::min(end, range.first + range.length);
    auto const is_empty = first >= last;
    http::Call call;
    call.url = "/value?" + constraints.query();
    if (constraints.clock) call.fields.set("Chorus-Clock", std::to_string(*constraints.clock));
    if (has_tags && !constraints.tags[owner.shard].empty())
      call.fields.set("If-None-Match", '"' + constraints.tags[owner.shard] + '"');
    // The tag needs answers of all shards, also of those outside of the range.
    if (is_empty) {
      call.method = http::Method::head;
      return call;
    }
    if (last - first < end - begin)
      call.fields.set("Range", "bytes=" + std::to_string(first - begin) + "-" + std::to_string(last - begin - 1));
    call.destination = into.bytes.subspan(first - range.first, last - first);
    return call;
  };
  auto outcome = co_await ask_all(placement, make, deadline);
  if (!outcome || !has_tags || outcome->unchanged) co_return outcome;
  // Some shards have changed and others have not: pull again without tags, so that all of them are sent.
  constraints.tags.clear();
  co_return co_await pull(std::move(placement), std::move(constraints), range, std::move(into), deadline);
}

asio::awaitable<http::Checked<Access::Outcome>> Access::look(PlacementPtr placement, ReadConstraints constraints,
                                                             std::string reader, http::TimePoint deadline) {
  Make make = [constraints, reader = std::move(reader)](api::ParameterEndpoint const&) -> std::optional<http::Call> {
    http::Call call;
    call.method = http::Method::head;
    call.url = "/value?" + constraints.query() + (reader.empty() ? "" : "hold=" + reader + "&");
    if (constraints.clock) call.fields.set("Chorus-Clock", std::to_string(*constraints.clock));
    return call;
  };
  return ask_all(std::move(placement), std::move(make), deadline);
}

asio::awaitable<http::Checked<Access::Outcome>> Access::pull_held(PlacementPtr placement, Part part, Room into,
                                                                  http::TimePoint deadline) {
  auto const shard = part.shard;
  Make make = [part, into](api::ParameterEndpoint const&) -> std::optional<http::Call> {
    http::Call call;
    call.url = "/value?";
    call.fields.set("If-Match", '"' + part.tag + '"');
    call.fields.set("Range", "bytes=" + std::to_string(part.range.first) + "-" +
                                 std::to_string(part.range.first + part.range.length - 1));
    call.destination = into.bytes;
    return call;
  };
  return ask_all(std::move(placement), std::move(make), deadline, shard);
}

asio::awaitable<http::Checked<Access::Outcome>> Access::release_held(PlacementPtr placement, Part part,
                                                                     std::string reader, http::TimePoint deadline) {
  auto const shard = part.shard;
  Make make = [part = std::move(part), reader = std::move(reader)](api::ParameterEndpoint const&) {
    http::Call call;
    call.method = http::Method::head;
    call.url = "/value?release=" + reader + "&";
    call.fields.set("If-Match", '"' + part.tag + '"');
    return std::optional(std::move(call));
  };
  return ask_all(std::move(placement), std::move(make), deadline, shard);
}

asio::awaitable<http::Checked<Access::Outcome>> Access::push_piece(PlacementPtr placement, Push push, Part part,
                                                                   std::uint64_t total, Room bytes,
                                                                   http::TimePoint deadline) {
  auto const shard = part.shard;
  Make make = [push = std::move(push), part, total, bytes](api::ParameterEndpoint const&) -> std::optional<http::Call> {
    http::Call call;
    call.method = push.kind == PushKind::value ? http::Method::put : http::Method::post;
    auto const* const what = push.kind == PushKind::value  ? "/value?offset="
                             : push.kind == PushKind::rows ? "/rows/gradient?offset="
                                                           : "/gradient?offset=";
    call.url = what + std::to_string(part.range.first) + "&of=" + std::to_string(total) + "&";
    write_push(push, call.fields);
    call.fields.set("Content-Type", "application/octet-stream");
    call.payload = bytes.bytes;
    return call;
  };
  return ask_all(std::move(placement), std::move(make), deadline, shard);
}

// Checks the whole gradient before any shard gets a part: otherwise one shard could refuse its part while the others
// apply theirs.
asio::awaitable<std::optional<Problem>> Access::refuse(PlacementPtr placement, Push push) {
  if (placement->parameter.nonfinite != "reject" || placement->owners.size() < 2) co_return std::nullopt;
  auto const found = co_await nonfinite_in_turns(push);
  if (found == 0) co_return std::nullopt;
  co_return Problem(ProblemCode::non_finite,
                    std::to_string(found) + " elements for " + placement->parameter.name + " are NaN or infinite");
}

asio::awaitable<http::Checked<Access::Outcome>> Access::push(PlacementPtr placement, Push push, Room answer,
                                                             http::TimePoint deadline) {
  if (auto problem = co_await refuse(placement, push)) co_return std::move(*problem);
  auto const size = element_bytes(push.dtype), answer_size = element_bytes(placement->dtype);
  Make make = [push, answer, size, answer_size](api::ParameterEndpoint const& owner) -> std::optional<http::Call> {
    http::Call call;
    call.method = push.kind == PushKind::value ? http::Method::put : http::Method::post;
    call.url = push.kind == PushKind::value ? "/value?" : answer.bytes.empty() ? "/gradient?" : "/push_pull?";
    write_push(push, call.fields);
    auto const begin = owner.elements[0], count = owner.elements[1] - begin;
    call.payload = push.data->bytes().subspan(begin * size, count * size);
    call.fields.set("Content-Type", "application/octet-stream");
    if (!answer.bytes.empty()) call.destination = answer.bytes.subspan(begin * answer_size, count * answer_size);
    return call;
  };
  co_return co_await ask_all(std::move(placement), std::move(make), deadline);
}

asio::awaitable<http::Checked<Access::Outcome>> Access::push_compressed(PlacementPtr placement, Push push,
                                                                        std::shared_ptr<Compressed const> gradient,
                                                                        Room answer, http::TimePoint deadline) {
  auto const answer_size = element_bytes(placement->dtype);
  Make make = [=](api::ParameterEndpoint const& owner) -> std::optional<http::Call> {
    http::Call call;
    call.method = http::Method::post;
    call.url = answer.bytes.empty() ? "/gradient?" : "/push_pull?";
    write_push(push, call.fields);
    call.fields.set("Chorus-Compression", gradient->compression);
    call.fields.set("Content-Type", "application/octet-stream");
    call.payload = gradient->parts.at(owner.shard);
    auto const begin = owner.elements[0], count = owner.elements[1] - begin;
    if (!answer.bytes.empty()) call.destination = answer.bytes.subspan(begin * answer_size, count * answer_size);
    return call;
  };
  co_return co_await ask_all(std::move(placement), std::move(make), deadline);
}

asio::awaitable<http::Checked<Access::Outcome>> Access::push_rows(PlacementPtr placement, Push push,
                                                                  http::TimePoint deadline) {
  if (auto problem = placement->refuse_rows()) co_return std::move(*problem);
  if (auto problem = co_await refuse(placement, push)) co_return std::move(*problem);
  auto const numbers = rows_of(push);
  Make make = [push, numbers, width = placement->row_elements](api::ParameterEndpoint const& owner) {
    return std::optional(call_of_rows(push, part_of(numbers, row_range_of(owner, width))));
  };
  co_return co_await ask_all(std::move(placement), std::move(make), deadline);
}

asio::awaitable<http::Checked<Access::Outcome>> Access::push_rows_of(PlacementPtr placement, std::uint32_t shard,
                                                                     Push push, http::TimePoint deadline) {
  Make make = [push = std::move(push)](api::ParameterEndpoint const&) { return std::optional(call_of_rows(push)); };
  return ask_all(std::move(placement), std::move(make), deadline, shard);
}

asio::awaitable<http::Checked<Access::Outcome>> Access::pull_rows(PlacementPtr placement, ReadConstraints constraints,
                                                                  std::shared_ptr<void const> numbers_owner,
                                                                  std::span<std::uint64_t const> numbers, Room into,
                                                                  http::TimePoint deadline) {
  if (auto problem = placement->refuse_rows()) co_return std::move(*problem);
  auto const width = placement->row_elements;
  auto const row_bytes = width * element_bytes(placement->dtype);
  Make make = [=, constraints = std::move(constraints), owner_of_numbers = std::move(numbers_owner)](
                  api::ParameterEndpoint const& owner) -> std::optional<http::Call> {
    auto const part = part_of(numbers, row_range_of(owner, width));
    if (part.count == 0) return std::nullopt;
    auto call = call_for_rows(numbers.subspan(part.first, part.count), constraints.query(), constraints.clock);
    call.destination = into.bytes.subspan(part.first * row_bytes, part.count * row_bytes);
    return call;
  };
  co_return co_await ask_all(std::move(placement), std::move(make), deadline);
}

}  // namespace chorus::parameters
