#include "worker/service/parameters/values/parameter_pulls.hpp"

#include "http/message/range.hpp"
#include "worker/service/memory/prepared_memory.hpp"
#include "worker/service/parameters/requests/parameter_tags.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/service/requests/single_field.hpp"
#include "worker/service/tensors/entity_tag.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using parameters::Access;
using parameters::ShardHost;

// The requested range, or everything; 416 as a response.
struct Cut {
  http::ByteRange range;
  bool is_part = false;
};
Checked<Cut> cut_of(http::Request const& request, std::uint64_t bytes) {
  auto const field = single_field(request.fields, "Range");
  if (!field) return field.error();
  if (!*field || request.method != http::Method::get || http::is_in_other_unit(**field)) return Cut{{0, bytes}, false};
  auto const range = http::parse_range(**field, bytes);
  if (!range) return range.error();
  return Cut{*range, true};
}

http::Response refused(Problem const& problem, std::uint64_t bytes) {
  http::Response response(problem);
  if (problem.code == ProblemCode::range_not_satisfiable)
    response.fields.set("Content-Range", http::content_range_of_none(bytes));
  return response;
}

// The tag is that of the values about to be sent.
std::optional<Problem> refuse_unmatched(http::Request const& request, std::string const& tag) {
  auto const match = find_tags(request.fields, "If-Match");
  if (!match) return match.error();
  if (!*match || (*match)->any || (*match)->matches_strongly('"' + tag + '"')) return std::nullopt;
  return Problem(ProblemCode::precondition_failed, "the values are at \"" + tag + "\" by now");
}

}  // namespace

awaitable<http::Response> ParameterPulls::pull(http::Request const& request) {
  for (bool is_second = false;; is_second = true) {
    auto target = co_await tools_.targets.find(request);
    if (!target) co_return target.error();
    auto const placement = target->placement;
    auto const deadline = target->deadline;
    auto response = co_await pull_from(request, std::move(*target));
    if (is_second || !placement || !response.problem) co_return response;
    auto const is_new = co_await tools_.targets.made_anew(placement, response.problem->code, deadline);
    if (!is_new) co_return response;
  }
}

awaitable<http::Response> ParameterPulls::pull_from(http::Request const& request, ParameterTarget target) {
  if (target.is_lazy()) co_return Problem(ProblemCode::unsupported, "rows are created lazily here: pull rows");
  if (target.host) co_return co_await pull_here(request, std::move(target));
  co_return co_await pull_everywhere(request, std::move(target));
}

Checked<std::optional<ShardHost::View>> ParameterPulls::matched(http::Request const& request, ShardHost const& host) {
  auto const match = find_tags(request.fields, "If-Match");
  if (!match) return match.error();
  if (!*match || (*match)->any) return std::optional<ShardHost::View>();
  auto now = host.view_now();
  for (auto const& quoted : (*match)->tags) {
    if (quoted.size() < 2 || quoted.front() != '"') continue;
    auto const tag = quoted.substr(1, quoted.size() - 2);
    if (auto held = held_.find({host.spec().parameter, host.spec().index, tag}, std::chrono::steady_clock::now()))
      return held;
    if (now && tag_of(now->epoch, now->version) == tag) return now;
  }
  return Problem(ProblemCode::precondition_failed,
                 "If-Match names values that are neither the present ones nor held here any more");
}

void ParameterPulls::release(http::Request const& request, std::string const& reader, ShardHost const& host) {
  auto const match = find_tags(request.fields, "If-Match");
  if (!match || !*match) return;
  for (auto const& quoted : (*match)->tags)
    if (quoted.size() >= 2)
      held_.release({host.spec().parameter, host.spec().index, quoted.substr(1, quoted.size() - 2)}, reader);
}

awaitable<http::Response> ParameterPulls::pull_here(http::Request const& request, ParameterTarget target) {
  auto const conditions = pull_conditions(request);
  if (!conditions) co_return conditions.error();
  auto const none_match = find_tags(request.fields, "If-None-Match");
  if (!none_match) co_return none_match.error();
  auto const& spec = target.host->spec();
  auto cut = cut_of(request, spec.bytes());
  if (!cut) co_return refused(cut.error(), spec.bytes());
  auto const reader = request.query_value("release");
  if (reader && request.method == http::Method::head) {
    release(request, std::string(*reader), *target.host);
    co_return http::Response(204);
  }
  auto const kept = matched(request, *target.host);
  if (!kept) co_return kept.error();
  auto view = Checked<ShardHost::View>(kept->value_or(ShardHost::View()));
  if (!*kept) {
    ShardHost::ReadConstraints const constraints{conditions->min_version, conditions->clock};
    view = co_await target.host->view(constraints, target.deadline);
    if (!view) co_return view.error();
    if (auto const holder = request.query_value("hold"))
      held_.hold({spec.parameter, spec.index, tag_of(view->epoch, view->version)}, std::string(*holder), *view,
                 std::chrono::steady_clock::now());
  }
  http::Response response(200);
  Described const what{tag_of(view->epoch, view->version), view->version, view->epoch, view->is_unconfirmed};
  describe_in(response.fields, what);
  // Held versions, and readers whose clock counts, need a check each time.
  auto const may_repeat = !*kept && !conditions->clock && !request.query_value("hold") && !view->is_unconfirmed;
  if (*none_match && (*none_match)->matches_weakly('"' + what.tag + '"')) {
    response.status = 304;
    tools_.counts.unchanged();
    if (may_repeat) response.again = pull_again(std::move(target.host), view->epoch, view->version, std::nullopt);
    co_return response;
  }
  // A reader that goes on from former values gets all of the present ones.
  auto const condition = request.fields.find("If-Range");
  if (condition && *condition != '"' + what.tag + '"') cut = Cut{{0, spec.bytes()}, false};
  describe_values(response.fields, spec.dtype, shape_of(spec));
  if (cut->is_part) {
    response.status = 206;
    response.fields.set("Content-Range", http::content_range(cut->range, spec.bytes()));
  }
  tools_.counts.pulled();
  if (request.method == http::Method::head)
    response.head_length = spec.bytes();
  else
    response.payload = {view->values, view->values->bytes().subspan(cut->range.first, cut->range.length)};
  if (may_repeat) response.again = pull_again(std::move(target.host), view->epoch, view->version, cut->range);
  co_return response;
}

http::Again ParameterPulls::pull_again(std::shared_ptr<ShardHost> host, std::uint32_t epoch, std::uint64_t version,
                                       std::optional<http::ByteRange> sent) {
  return [this, host = std::move(host), epoch, version, sent]() -> std::optional<http::SharedBytes> {
    auto view = host->view_now();
    if (!view || view->epoch != epoch || view->version != version) return std::nullopt;
    if (!sent) {
      tools_.counts.unchanged();
      return http::SharedBytes();
    }
    tools_.counts.pulled();
    auto const bytes = view->values->bytes().subspan(sent->first, sent->length);
    return http::SharedBytes{std::move(view->values), bytes};
  };
}

awaitable<http::Response> ParameterPulls::pull_everywhere(http::Request const& request, ParameterTarget target) {
  auto const conditions = pull_conditions(request);
  if (!conditions) co_return conditions.error();
  auto const none_match = find_tags(request.fields, "If-None-Match");
  if (!none_match) co_return none_match.error();
  auto const placement = target.placement;
  auto cut = cut_of(request, placement->bytes());
  if (!cut) co_return refused(cut.error(), placement->bytes());
  // The tag is known only with the values. All of them are a correct answer to every If-Range.
  if (request.fields.find("If-Range")) cut = Cut{{0, placement->bytes()}, false};
  Access::ReadConstraints constraints;
  constraints.min_version = conditions->min_version;
  constraints.clock = conditions->clock;
  if (*none_match) constraints.tags = split_tags(**none_match, placement->owners.size());
  auto const is_head = request.method == http::Method::head;
  if (!is_head && cut->range.length > ParameterGateway::buffered_bytes) {
    auto const found = co_await tools_.gateway.pull(placement, constraints, cut->range, target.deadline);
    if (!found) co_return found.error();
    auto const& seen = found->outcome;
    if (auto problem = refuse_unmatched(request, joined(seen.tags))) co_return std::move(*problem);
    http::Response response(!found->stream ? 304 : cut->is_part ? 206 : 200);
    describe_in(response.fields, {joined(seen.tags), seen.version, seen.epoch, seen.is_unconfirmed});
    if (!found->stream) co_return response;
    describe_values(response.fields, placement->dtype, placement->parameter.shape);
    if (cut->is_part) response.fields.set("Content-Range", http::content_range(cut->range, placement->bytes()));
    response.stream = found->stream;
    response.stream_length = cut->range.length;
    co_return response;
  }
  auto const block = co_await acquire_prepared(tools_.pool, tools_.helper, is_head ? 0 : cut->range.length);
  if (!block) co_return to_problem(block.error());
  parameters::Room const room{*block, (*block)->bytes()};
  auto const range = is_head ? http::ByteRange{0, 0} : cut->range;
  auto const outcome = co_await tools_.access.pull(placement, constraints, range, room, target.deadline);
  if (!outcome) co_return outcome.error();
  if (auto problem = refuse_unmatched(request, joined(outcome->tags))) co_return std::move(*problem);

  http::Response response(outcome->unchanged ? 304 : cut->is_part ? 206 : 200);
  Described const what{joined(outcome->tags), outcome->version, outcome->epoch, outcome->is_unconfirmed};
  describe_in(response.fields, what);
  if (outcome->unchanged) co_return response;
  describe_values(response.fields, placement->dtype, placement->parameter.shape);
  if (cut->is_part) response.fields.set("Content-Range", http::content_range(cut->range, placement->bytes()));
  if (is_head)
    response.head_length = placement->bytes();
  else
    response.payload = {*block, (*block)->bytes()};
  co_return response;
}

awaitable<http::Response> ParameterPulls::pull_rows(http::Request const& request, http::Body& body) {
  auto target = co_await tools_.targets.find(request);
  if (!target) co_return target.error();
  auto const placement = target->placement;
  auto const deadline = target->deadline;
  auto response = co_await pull_rows_from(request, body, std::move(*target));
  if (placement && response.problem && ParameterTargets::may_be_of_former(response.problem->code))
    if (auto problem = co_await tools_.targets.made_anew(placement, response.problem->code, deadline))
      co_return std::move(*problem);
  co_return response;
}

awaitable<http::Response> ParameterPulls::pull_rows_from(http::Request const& request, http::Body& body,
                                                         ParameterTarget target) {
  auto const conditions = pull_conditions(request);
  if (!conditions) co_return conditions.error();
  if (target.placement)
    if (auto problem = target.placement->refuse_rows()) co_return std::move(*problem);
  auto const where = target.push_target();
  if (where.row_elements == 0)
    co_return Problem(ProblemCode::unsupported, "rows of this parameter cannot be selected: pull its value");
  auto const count = parameters::number_field(request.fields, "Chorus-Rows");
  if (!count) co_return count.error();
  auto const bytes = body.length().value_or(0);
  if (auto problem = check_body(request, body, bytes)) co_return std::move(*problem);
  if (!*count || **count != bytes / sizeof(std::uint64_t))
    co_return Problem(ProblemCode::length_mismatch,
                      "Chorus-Rows is to be the number of rows, and the body their numbers, 8 bytes each");
  auto const numbers = co_await tools_.reader.read_block(body, **count * sizeof(std::uint64_t));
  if (!numbers) co_return numbers.error();
  auto const rows = co_await tools_.reader.checked_rows(*numbers, **count, 0, target.rows());
  if (!rows) co_return rows.error();
  auto const row_bytes = where.row_elements * element_bytes(where.dtype);
  if (row_bytes > 0 && **count > (std::uint64_t{1} << 62) / row_bytes)
    co_return Problem(ProblemCode::payload_too_large, "so many rows have more than 2^62 bytes");
  auto const block = co_await acquire_prepared(tools_.pool, tools_.helper, **count * row_bytes);
  if (!block) co_return to_problem(block.error());

  Described what;
  if (target.host) {
    ShardHost::ReadConstraints const constraints{conditions->min_version, conditions->clock};
    auto const view = co_await target.host->copy_rows(constraints, *rows, (*block)->bytes(), target.deadline);
    if (!view) co_return view.error();
    what = {tag_of(view->epoch, view->version), view->version, view->epoch, view->is_unconfirmed};
    tools_.counts.pulled();
  } else {
    Access::ReadConstraints constraints;
    constraints.min_version = conditions->min_version;
    constraints.clock = conditions->clock;
    parameters::Room const room{*block, (*block)->bytes()};
    auto const outcome =
        co_await tools_.access.pull_rows(target.placement, constraints, *numbers, *rows, room, target.deadline);
    if (!outcome) co_return outcome.error();
    what = {"", outcome->version, outcome->epoch, outcome->is_unconfirmed};
  }
  http::Response response(200);
  response.fields.set("Parameter-Version", std::to_string(what.version));
  response.fields.set("Parameter-Epoch", std::to_string(what.epoch));
  if (what.is_unconfirmed) response.fields.set("Parameter-Unconfirmed", "true");
  describe_values(response.fields, where.dtype, {**count, where.row_elements});
  response.payload = {*block, (*block)->bytes()};
  co_return response;
}

}  // namespace chorus::service
