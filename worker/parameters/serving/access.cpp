#include "worker/parameters/serving/access.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <cstring>

#include "http/errc.hpp"
#include "http/json.hpp"
#include "worker/parameters/optimizers/nonfinite.hpp"
#include "worker/parameters/serving/push_fields.hpp"
#include "worker/parameters/shard/step.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t most_known = 65536;

std::string without_trailing_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::uint64_t number_or_0(http::Fields const& fields, std::string_view name) {
  auto const number = number_field(fields, name);
  return number && *number ? **number : 0;
}

std::string unquoted(std::string_view tag) {
  if (tag.size() >= 2 && tag.front() == '"' && tag.back() == '"') tag = tag.substr(1, tag.size() - 2);
  return std::string(tag);
}

// How long the owner may take: less than what the caller waits, so that it is the owner's answer that arrives.
std::string timeout_query(http::TimePoint deadline) {
  auto const left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
  return "&timeout_ms=" + std::to_string(std::max<milliseconds::rep>(left.count() - left.count() / 16, 0));
}

std::string wish_query(Access::Wish const& wish) {
  return wish.min_version ? "min_version=" + std::to_string(*wish.min_version) + "&" : "";
}

// The owner may be another one, or the same one later, or the network may have changed what was asked.
bool is_worth_repeating(ProblemCode code) {
  return code == ProblemCode::misdirected || code == ProblemCode::unknown_parameter ||
         code == ProblemCode::unavailable || code == ProblemCode::digest_mismatch;
}

}  // namespace

http::Checked<PlacementPtr> Placement::from(api::Parameter parameter) {
  auto const broken = [&](std::string const& why) {
    return Problem(ProblemCode::internal, "the placement of " + parameter.name + " " + why);
  };
  auto placement = std::make_shared<Placement>();
  auto const dtype = parse_dtype(parameter.dtype);
  if (!dtype) return broken("has no dtype");
  placement->dtype = *dtype;
  placement->elements = 1;
  for (std::size_t i = 0; i < parameter.shape.size(); ++i) {
    placement->elements *= parameter.shape[i];
    if (i > 0) placement->row_elements *= parameter.shape[i];
  }
  std::ranges::copy_if(parameter.endpoints, std::back_inserter(placement->owners),
                       [](auto const& endpoint) { return endpoint.role == "owner"; });
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < placement->owners.size(); ++i) {
    auto const& owner = placement->owners[i];
    if (owner.shard != i || owner.elements.size() != 2 || owner.elements[0] != next || owner.elements[1] < next)
      return Problem(ProblemCode::parameter_lost,
                     "shard " + std::to_string(i) + " of " + parameter.name + " has no owner");
    next = owner.elements[1];
  }
  if (next != placement->elements || placement->owners.empty())
    return Problem(ProblemCode::parameter_lost, "a shard of " + parameter.name + " has no owner");
  placement->parameter = std::move(parameter);
  return PlacementPtr(std::move(placement));
}

// Requests to all owners that are concerned, and what came of them.
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

// Whoever waits for a part hears of its end, also when it was cancelled.
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

Access::Access(asio::any_io_executor executor, http::Client& client, http::MessageChecksums checksums,
               std::string coordinator)
    : executor_(executor),
      client_(client),
      owners_(client, checksums),
      coordinator_(without_trailing_slash(std::move(coordinator))),
      tasks_(std::move(executor)) {}

asio::awaitable<void> Access::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

asio::awaitable<http::Checked<PlacementPtr>> Access::placement(std::string name, http::TimePoint deadline) {
  if (auto const found = known_.find(name); found != known_.end()) co_return found->second;
  co_return co_await fetch(std::move(name), "", deadline);
}

asio::awaitable<http::Checked<PlacementPtr>> Access::fetch(std::string name, std::string query,
                                                           http::TimePoint deadline) {
  if (coordinator_.empty())
    co_return Problem(ProblemCode::unavailable, "this worker has no coordinator, which places parameters");
  http::Call call;
  call.url = coordinator_ + api::parameter_path(name) + query;
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (!answer) co_return Problem(ProblemCode::unavailable, "the coordinator does not answer: " + answer.error().detail);
  if (!answer->ok()) co_return answer->problem();
  auto parameter = http::decode<api::Parameter>(answer->body, http::UnknownFields::ignore);
  if (!parameter) co_return parameter.error();
  auto placed = Placement::from(std::move(*parameter));
  if (!placed) co_return placed.error();
  if (known_.size() >= most_known) known_.clear();
  known_[name] = *placed;
  co_return *placed;
}

asio::awaitable<void> Access::suspect(std::string worker, std::string incarnation, http::TimePoint deadline) {
  http::Call call;
  call.url = coordinator_ + "/v1/parameters?limit=1&suspect=" + worker + "&incarnation=" + incarnation;
  if (!coordinator_.empty()) (void)co_await client_.send(std::move(call), deadline);
}

asio::awaitable<bool> Access::report_loss(std::string parameter, std::uint32_t shard, std::string worker,
                                          std::string incarnation, http::TimePoint deadline) {
  if (coordinator_.empty()) co_return true;
  http::Call call;
  call.url = coordinator_ + api::parameter_path(parameter) + "?lost_shard=" + std::to_string(shard) +
             "&suspect=" + worker + "&incarnation=" + incarnation;
  auto const answer = co_await client_.send(std::move(call), deadline);
  co_return answer && (answer->ok() || answer->problem().code == ProblemCode::unknown_parameter);
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
      outcome.tags.emplace_back();
      continue;
    }
    if (part.problem) co_return *part.problem;
    outcome.epoch = std::max(outcome.epoch, static_cast<std::uint32_t>(number_or_0(part.fields, "Parameter-Epoch")));
    outcome.version = std::min(outcome.version, number_or_0(part.fields, "Parameter-Version"));
    outcome.tags.push_back(unquoted(part.fields.find("ETag").value_or("")));
    outcome.next_sequence = number_or_0(part.fields, "Chorus-Next-Sequence");
    outcome.duplicate &= part.fields.find("Chorus-Duplicate") == "true";
    outcome.unchanged &= part.status == 304;
  }
  if (outcome.version == UINT64_MAX) outcome.version = 0;
  co_return outcome;
}

// Until somebody answers for the shard, whoever that is by then.
asio::awaitable<void> Access::ask(AskedPtr asked, std::size_t shard) {
  constexpr milliseconds first_pause{10}, longest_pause{200};
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
    auto answer = co_await owners_.send(std::move(*call), asked->deadline);
    std::string query;
    if (answer && answer->status != 304 && answer->ok() && answer->received_bytes != wanted_bytes) {
      // A parameter that was deleted and made anew, of another size.
      part.problem = Problem(ProblemCode::length_mismatch,
                             "shard " + std::to_string(shard) + " of " + name + " has " + "another size now");
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
    auto const placed = co_await fetch(name, std::move(query), asked->deadline);
    if (placed && shard < (*placed)->owners.size() && (*placed)->owners[shard].elements == part.owner.elements)
      part.owner = (*placed)->owners[shard];
    else if (placed) {
      part.problem = Problem(ProblemCode::unavailable, name + " was made anew with other shards: ask again");
      break;
    } else if (placed.error().code == ProblemCode::unknown_parameter) {
      part.problem = placed.error();
      break;
    }
  }
  if (part.problem) known_.erase(name);  // what was known of it may be the reason
  part.has_ended = true;
}

asio::awaitable<http::Checked<Access::Outcome>> Access::pull(PlacementPtr placement, Wish wish, http::ByteRange range,
                                                             Room into, http::TimePoint deadline) {
  auto const size = element_bytes(placement->dtype);
  auto const has_tags = wish.tags.size() == placement->owners.size();
  Make make = [wish, range, into, size, has_tags](api::ParameterEndpoint const& owner) -> std::optional<http::Call> {
    auto const begin = owner.elements[0] * size, end = owner.elements[1] * size;
    auto const first = std::max(begin, range.first), last = std::min(end, range.first + range.length);
    auto const is_empty = first >= last;
    http::Call call;
    call.url = "/value?" + wish_query(wish);
    if (wish.clock) call.fields.set("Chorus-Clock", std::to_string(*wish.clock));
    if (has_tags && !wish.tags[owner.shard].empty())
      call.fields.set("If-None-Match", '"' + wish.tags[owner.shard] + '"');
    // The tag is that of all shards, also of those that the range does not touch.
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
  // Some have changed and others not: of those everything is wanted after all.
  wish.tags.clear();
  co_return co_await pull(std::move(placement), std::move(wish), range, std::move(into), deadline);
}

asio::awaitable<http::Checked<Access::Outcome>> Access::look(PlacementPtr placement, Wish wish, bool holds,
                                                             http::TimePoint deadline) {
  Make make = [wish, holds](api::ParameterEndpoint const&) -> std::optional<http::Call> {
    http::Call call;
    call.method = http::Method::head;
    call.url = "/value?" + wish_query(wish) + (holds ? "hold=1&" : "");
    if (wish.clock) call.fields.set("Chorus-Clock", std::to_string(*wish.clock));
    return call;
  };
  return ask_all(std::move(placement), std::move(make), deadline);
}

asio::awaitable<http::Checked<Access::Outcome>> Access::pull_held(PlacementPtr placement, Part part, Room into,
                                                                  http::TimePoint deadline) {
  auto const shard = part.shard;
  Make make = [part, into](api::ParameterEndpoint const&) -> std::optional<http::Call> {
    http::Call call;
    call.url = std::string("/value?") + (part.is_last ? "release=1&" : "");
    call.fields.set("If-Match", '"' + part.tag + '"');
    call.fields.set("Range", "bytes=" + std::to_string(part.range.first) + "-" +
                                 std::to_string(part.range.first + part.range.length - 1));
    call.destination = into.bytes;
    return call;
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
    call.url = (push.kind == PushKind::value ? "/value?offset=" : "/gradient?offset=") +
               std::to_string(part.range.first) + "&of=" + std::to_string(total) + "&";
    write_push(push, call.fields);
    call.fields.set("Content-Type", "application/octet-stream");
    call.payload = bytes.bytes;
    return call;
  };
  return ask_all(std::move(placement), std::move(make), deadline, shard);
}

// Before any shard has a part of it: what one of them refused the others would have applied.
std::optional<Problem> Access::refuse(Placement const& placement, Push const& push) {
  if (placement.parameter.nonfinite != "reject" || placement.owners.size() < 2) return std::nullopt;
  auto const found = count_nonfinite(push.dtype, gradient_of(push).bytes);
  if (found == 0) return std::nullopt;
  return Problem(ProblemCode::non_finite,
                 std::to_string(found) + " elements for " + placement.parameter.name + " are NaN or infinite");
}

asio::awaitable<http::Checked<Access::Outcome>> Access::push(PlacementPtr placement, Push push, Room answer,
                                                             http::TimePoint deadline) {
  if (auto problem = refuse(*placement, push)) co_return std::move(*problem);
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
  auto const width = placement->row_elements;
  auto const row_bytes = width * element_bytes(push.dtype);
  std::span const numbers(reinterpret_cast<std::uint64_t const*>(push.data->data()), push.rows);
  if (auto problem = refuse(*placement, push)) co_return std::move(*problem);
  // Every shard gets every sequence, also without a row: so each knows what is next.
  std::vector<std::shared_ptr<std::string const>> bodies;
  std::vector<std::uint64_t> counts;
  for (auto const& owner : placement->owners) {
    auto const part = part_of(numbers, {owner.elements[0] / width, owner.elements[1] / width});
    std::string body(part.count * (sizeof(std::uint64_t) + row_bytes), '\0');
    auto const* const gradients = push.data->data() + numbers.size_bytes();
    if (part.count > 0) {
      std::memcpy(body.data(), numbers.data() + part.first, part.count * sizeof(std::uint64_t));
      std::memcpy(body.data() + part.count * sizeof(std::uint64_t), gradients + part.first * row_bytes,
                  part.count * row_bytes);
    }
    counts.push_back(part.count);
    bodies.push_back(std::make_shared<std::string const>(std::move(body)));
  }
  Make make = [push, bodies, counts](api::ParameterEndpoint const& owner) -> std::optional<http::Call> {
    http::Call call;
    call.method = http::Method::post;
    call.url = "/rows/gradient?";
    write_push(push, call.fields);
    call.fields.set("Chorus-Rows", std::to_string(counts[owner.shard]));
    call.fields.set("Content-Type", "application/octet-stream");
    call.payload = std::as_bytes(std::span(*bodies[owner.shard]));
    return call;
  };
  co_return co_await ask_all(std::move(placement), std::move(make), deadline);
}

asio::awaitable<http::Checked<Access::Outcome>> Access::pull_rows(PlacementPtr placement, Wish wish,
                                                                  std::shared_ptr<void const> numbers_owner,
                                                                  std::span<std::uint64_t const> numbers, Room into,
                                                                  http::TimePoint deadline) {
  auto const width = placement->row_elements;
  auto const row_bytes = width * element_bytes(placement->dtype);
  Make make = [=, wish = std::move(wish), owner_of_numbers = std::move(numbers_owner)](
                  api::ParameterEndpoint const& owner) -> std::optional<http::Call> {
    auto const part = part_of(numbers, {owner.elements[0] / width, owner.elements[1] / width});
    if (part.count == 0) return std::nullopt;
    http::Call call;
    call.method = http::Method::post;
    call.url = "/rows?" + wish_query(wish);
    if (wish.clock) call.fields.set("Chorus-Clock", std::to_string(*wish.clock));
    call.fields.set("Chorus-Rows", std::to_string(part.count));
    call.fields.set("Content-Type", "application/octet-stream");
    call.payload = std::as_bytes(numbers.subspan(part.first, part.count));
    call.destination = into.bytes.subspan(part.first * row_bytes, part.count * row_bytes);
    return call;
  };
  co_return co_await ask_all(std::move(placement), std::move(make), deadline);
}

}  // namespace chorus::parameters
