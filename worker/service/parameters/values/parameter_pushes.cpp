#include "worker/service/parameters/values/parameter_pushes.hpp"

#include "http/json/json.hpp"
#include "http/wire/message_checksum.hpp"
#include "worker/parameters/shard/pushes/step.hpp"
#include "worker/service/memory/prepared_memory.hpp"
#include "worker/service/parameters/requests/parameter_tags.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using parameters::Access;
using parameters::PushKind;
using parameters::ShardHost;

http::Response pushed(api::PushAnswer const& answer) {
  auto response = http::Response::json(200, http::encode(answer));
  response.fields.set("Chorus-Next-Sequence", std::to_string(answer.next_sequence));
  response.fields.set("Chorus-Duplicate", answer.duplicate ? "true" : "false");
  return response;
}

// Owners apply parts of a push that is passed on before its end has come. The checksum of a message is known at its
// end.
bool may_be_passed_on(http::Request const& request, http::Body const& body) {
  return body.length() && !request.fields.find("Chorus-Compression") &&
         !request.fields.find(http::message_checksum_field);
}

}  // namespace

awaitable<http::Response> ParameterPushes::push(http::Request const& request, http::Body& body, PushKind kind,
                                                bool pulls) {
  auto target = co_await tools_.targets.find(request);
  if (!target) co_return target.error();
  auto const placement = target->placement;
  auto const deadline = target->deadline;
  auto response = co_await push_to(request, body, kind, pulls, std::move(*target));
  if (placement && response.problem && ParameterTargets::may_be_of_former(response.problem->code))
    if (auto problem = co_await tools_.targets.made_anew(placement, response.problem->code, deadline))
      co_return std::move(*problem);
  co_return response;
}

awaitable<http::Response> ParameterPushes::push_to(http::Request const& request, http::Body& body, PushKind kind,
                                                   bool pulls, ParameterTarget target) {
  for (auto const* const condition : {"If-Match", "If-None-Match"})
    if (request.fields.find(condition))
      co_return Problem(ProblemCode::bad_request,
                        std::string(condition) + " is not looked at here: a push applies to the values of its turn");
  if (target.is_lazy() && kind != PushKind::rows)
    co_return Problem(ProblemCode::unsupported, "rows are created lazily here: push rows");
  if (target.placement && kind == PushKind::rows)
    if (auto problem = target.placement->refuse_rows()) co_return std::move(*problem);
  auto const where = target.push_target();
  auto const offset = request.query_number("offset", UINT64_MAX);
  if (!offset) co_return offset.error();
  if (*offset && pulls) co_return Problem(ProblemCode::unsupported, "pieces are pushed to gradient or value");
  if (*offset) co_return co_await push_piece(request, body, kind, std::move(target), **offset);
  if (target.placement && !pulls && may_be_passed_on(request, body)) {
    auto head = parameters::read_push(request.fields, kind, where.dtype);
    if (!head) co_return head.error();
    if (ParameterGateway::can_pass_on(*target.placement, *head)) {
      auto const is_of_rows = kind == PushKind::rows;
      auto const bytes = is_of_rows ? PushReader::bytes_of_rows(*head, PushReader::most_bytes(body), where)
                                    : Checked<std::uint64_t>(where.elements * element_bytes(head->dtype));
      if (!bytes) co_return bytes.error();
      if (auto problem = check_body(request, body, *bytes)) co_return std::move(*problem);
      auto passed = Checked<Access::Outcome>(Problem());
      if (is_of_rows)
        passed = co_await rows_.push(target.placement, std::move(*head), body, target.deadline);
      else
        passed = co_await tools_.gateway.push(target.placement, std::move(*head), body, target.deadline);
      if (!passed) co_return passed.error();
      auto response = pushed({passed->version, passed->epoch, passed->next_sequence, passed->duplicate});
      describe_in(response.fields, {joined(passed->tags), passed->version, passed->epoch});
      co_return response;
    }
  }
  auto push = co_await tools_.reader.read(request, body, kind, where);
  if (!push) co_return push.error();
  if (kind == PushKind::rows && !target.host) {
    auto const row_bytes = where.row_elements * element_bytes(push->dtype);
    auto const rows = co_await tools_.reader.checked_rows(push->data, push->rows, row_bytes, target.rows());
    if (!rows) co_return rows.error();
  }
  if (target.host) {
    auto response = co_await push_here(target, *push, pulls);
    auto const has_moved = response.problem && response.problem->code == ProblemCode::misdirected;
    if (!has_moved || request.query_value("shard")) co_return response;
    // The shard was here a moment ago; the next owner knows whether the push was applied.
    if (auto problem = co_await tools_.targets.move_on(target)) co_return std::move(*problem);
  }
  co_return co_await push_everywhere(std::move(target), std::move(*push), pulls);
}

awaitable<http::Response> ParameterPushes::push_piece(http::Request const& request, http::Body& body, PushKind kind,
                                                      ParameterTarget target, std::uint64_t offset) {
  if (!target.host) co_return Problem(ProblemCode::unsupported, "pieces are for the owner of a shard");
  auto const where = target.push_target();
  auto push = parameters::read_push(request.fields, kind, where.dtype);
  if (!push) co_return push.error();
  auto const total = request.query_number("of", UINT64_MAX);
  if (!total) co_return total.error();
  auto const bytes = kind == PushKind::rows ? PushReader::bytes_of_rows(*push, total->value_or(0), where)
                                            : Checked<std::uint64_t>(where.elements * element_bytes(push->dtype));
  if (!bytes) co_return bytes.error();
  if (!*total || **total != *bytes)
    co_return Problem(ProblemCode::length_mismatch,
                      "the query parameter of is not " + std::to_string(*bytes) + ", which the push has");
  auto const& spec = target.host->spec();
  StagedPushes::Piece const piece{spec.parameter, spec.index, push->client, push->sequence, offset, **total};
  auto const whole = co_await staged_.add(piece, body);
  if (!whole) co_return whole.error();
  if (*whole == nullptr) co_return http::Response::json(202, R"({"whole":false})");
  push->data = *whole;
  co_return co_await push_here(std::move(target), std::move(*push), false);
}

awaitable<http::Response> ParameterPushes::push_here(ParameterTarget target, parameters::Push push, bool pulls) {
  auto const& spec = target.host->spec();
  auto const clock = push.clock;
  auto const answer = co_await target.host->push(std::move(push), target.deadline);
  if (!answer) co_return answer.error();
  auto response = pushed(*answer);
  Described what{tag_of(answer->epoch, answer->version), answer->version, answer->epoch};
  if (pulls) {
    ShardHost::ReadConstraints constraints{answer->version, std::nullopt};
    if (spec.staleness >= 0 && clock) constraints = {std::nullopt, *clock + 1};
    auto const view = co_await target.host->view(constraints, target.deadline);
    if (!view) co_return view.error();
    what = {tag_of(view->epoch, view->version), view->version, view->epoch};
    response.body.clear();
    response.payload = {view->values, view->values->bytes()};
    describe_values(response.fields, spec.dtype, shape_of(spec));
    tools_.counts.pulled();
  }
  describe_in(response.fields, what);
  co_return response;
}

awaitable<http::Response> ParameterPushes::push_everywhere(ParameterTarget target, parameters::Push push, bool pulls) {
  auto const placement = target.placement;
  auto const wants_norm = placement->parameter.optimizer.clip_norm && !push.norm && placement->owners.size() > 1;
  if (wants_norm && push.kind != PushKind::value) {
    auto const measure = [push, width = placement->row_elements, zeroes = placement->parameter.nonfinite == "zero"] {
      return parameters::norm_of(push, width, zeroes);
    };
    push.norm = co_await tools_.helper.compute(measure);
  }
  parameters::Room room;
  if (pulls) {
    auto const block = co_await acquire_prepared(tools_.pool, tools_.helper, placement->bytes());
    if (!block) co_return to_problem(block.error());
    room = {*block, (*block)->bytes()};
  }
  auto outcome = Checked<Access::Outcome>(Problem());
  if (push.kind == PushKind::rows)
    outcome = co_await tools_.access.push_rows(placement, std::move(push), target.deadline);
  else
    outcome = co_await tools_.access.push(placement, std::move(push), room, target.deadline);
  if (!outcome) co_return outcome.error();
  auto response = pushed({outcome->version, outcome->epoch, outcome->next_sequence, outcome->duplicate});
  Described const what{joined(outcome->tags), outcome->version, outcome->epoch};
  describe_in(response.fields, what);
  if (pulls) {
    response.body.clear();
    response.payload = {room.owner, room.bytes};
    describe_values(response.fields, placement->dtype, placement->parameter.shape);
  }
  co_return response;
}

}  // namespace chorus::service
