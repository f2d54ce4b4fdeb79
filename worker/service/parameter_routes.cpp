#include "worker/service/parameter_routes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "http/json.hpp"
#include "http/paging.hpp"
#include "http/range.hpp"
#include "worker/parameters/shard/step.hpp"
#include "worker/service/entity_tag.hpp"
#include "worker/service/problems.hpp"
#include "worker/service/single_field.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using parameters::Access;
using parameters::PushKind;
using parameters::ShardHost;

std::string tag_of(std::uint32_t epoch, std::uint64_t version) {
  return std::to_string(epoch) + "." + std::to_string(version);
}

// Of all shards as one: one tag where they have the same, otherwise all of them.
std::string joined(std::vector<std::string> const& tags) {
  auto const differs = std::ranges::adjacent_find(tags, std::not_equal_to<>()) != tags.end();
  std::string text;
  for (auto const& tag : tags)
    if (differs || text.empty()) text += (text.empty() ? "" : "-") + tag;
  return text;
}

// The other way round, of the first tag that can be one of so many shards; nothing otherwise.
std::vector<std::string> split_tags(TagList const& list, std::size_t shards) {
  for (auto tag : list.tags) {
    if (tag.starts_with("W/")) tag = tag.substr(2);
    tag = tag.substr(1, tag.size() - 2);
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= tag.size();) {
      auto const end = std::min(tag.find('-', begin), tag.size());
      parts.push_back(tag.substr(begin, end - begin));
      begin = end + 1;
    }
    if (parts.size() == 1) parts.assign(shards, parts.front());
    if (parts.size() == shards) return parts;
  }
  return {};
}

struct Described {
  std::string tag;
  std::uint64_t version = 0;
  std::uint32_t epoch = 0;
};

void describe_in(http::Fields& fields, Described const& what) {
  fields.set("ETag", '"' + what.tag + '"');
  fields.set("Parameter-Version", std::to_string(what.version));
  fields.set("Parameter-Epoch", std::to_string(what.epoch));
}

void describe_values(http::Fields& fields, Dtype dtype, std::vector<std::uint64_t> const& shape) {
  fields.set("Content-Type", "application/octet-stream");
  fields.set("Tensor-Dtype", std::string(name(dtype)));
  fields.set("Tensor-Shape", tensors::to_string(shape));
  fields.set("Accept-Ranges", "bytes");
}

std::vector<std::uint64_t> shape_of(parameters::ShardSpec const& spec) {
  return spec.is_whole() ? spec.shape : std::vector<std::uint64_t>{spec.elements()};
}

http::Response pushed(api::PushAnswer const& answer) {
  auto response = http::Response::json(200, http::encode(answer));
  response.fields.set("Chorus-Next-Sequence", std::to_string(answer.next_sequence));
  response.fields.set("Chorus-Duplicate", answer.duplicate ? "true" : "false");
  return response;
}

// The range that is asked for, or all of it; 416 as a response.
struct Cut {
  http::ByteRange range;
  bool is_part = false;
};
Checked<Cut> cut_of(http::Request const& request, std::uint64_t bytes) {
  auto const field = single_field(request.fields, "Range");
  if (!field) return field.error();
  if (!*field || request.method != http::Method::get) return Cut{{0, bytes}, false};
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

}  // namespace

PushTarget ParameterRoutes::Target::push_target() const {
  if (host) return {host->spec().dtype, host->spec().elements(), host->spec().row_elements};
  return {placement->dtype, placement->elements, placement->row_elements};
}

parameters::RowRange ParameterRoutes::Target::rows() const {
  if (host) return host->spec().rows();
  return {0, placement->elements / std::max<std::uint64_t>(placement->row_elements, 1)};
}

bool ParameterRoutes::Target::is_lazy() const {
  return host ? host->spec().lazy_rows.has_value() : placement->parameter.lazy_rows.has_value();
}

Dtype ParameterRoutes::Target::dtype() const { return host ? host->spec().dtype : placement->dtype; }

void ParameterRoutes::add_to(http::Router& router) {
  auto const add = [&](http::Method method, std::string_view pattern, http::Access access,
                       Answering (ParameterRoutes::*member)(http::Request const&, http::Body&)) {
    router.add(method, pattern, access, [this, member](http::Request const& request, http::Body& body) {
      return (this->*member)(request, body);
    });
  };
  add(http::Method::get, "/v1/parameters", http::Access::read, &ParameterRoutes::list);
  add(http::Method::get, "/v1/parameters/{name}", http::Access::read, &ParameterRoutes::describe);
  add(http::Method::get, "/v1/parameters/{name}/value", http::Access::read, &ParameterRoutes::pull);
  add(http::Method::put, "/v1/parameters/{name}/value", http::Access::submit, &ParameterRoutes::put_value);
  add(http::Method::post, "/v1/parameters/{name}/gradient", http::Access::submit, &ParameterRoutes::push_gradient);
  add(http::Method::post, "/v1/parameters/{name}/push_pull", http::Access::submit, &ParameterRoutes::push_pull);
  add(http::Method::post, "/v1/parameters/{name}/rows", http::Access::read, &ParameterRoutes::pull_rows);
  add(http::Method::post, "/v1/parameters/{name}/rows/gradient", http::Access::submit, &ParameterRoutes::push_rows);
}

awaitable<http::Response> ParameterRoutes::list(http::Request const& request, http::Body&) {
  auto const page = http::page_of(request);
  if (!page) co_return page.error();
  // A page ends between two parameters: the cursor names one, with all of its shards.
  api::ShardStatusList list;
  list.items = book_.list(page->after, page->limit + 1);
  if (list.items.size() > page->limit) {
    auto const& last = list.items.back().parameter;
    auto const begin = std::ranges::find(list.items, last, &api::ShardStatus::parameter);
    if (begin != list.items.begin()) list.items.erase(begin, list.items.end());
    list.next_cursor = list.items.back().parameter;
  }
  co_return http::Response::json(200, http::encode(list));
}

awaitable<http::Response> ParameterRoutes::describe(http::Request const& request, http::Body&) {
  auto const name = parameter_name(request);
  if (!name) co_return name.error();
  auto const deadline = deadline_of(request, std::chrono::steady_clock::now());
  if (!deadline) co_return deadline.error();
  auto const placement = co_await access_.placement(*name, *deadline);
  if (!placement) co_return placement.error();
  co_return http::Response::json(200, http::encode((*placement)->parameter));
}

awaitable<Checked<ParameterRoutes::Target>> ParameterRoutes::target_of(http::Request const& request) {
  Target target;
  auto const name = parameter_name(request);
  if (!name) co_return name.error();
  auto const deadline = deadline_of(request, std::chrono::steady_clock::now());
  if (!deadline) co_return deadline.error();
  target.deadline = *deadline;
  auto const shard = request.query_number("shard", UINT32_MAX);
  if (!shard) co_return shard.error();
  auto const host = book_.find(*name, static_cast<std::uint32_t>(shard->value_or(0)));
  if (*shard) {
    if (!host) co_return host.error();
    target.host = *host;
    co_return target;
  }
  // All of it is here: nobody else need be asked.
  if (host && (*host)->spec().is_whole() && (*host)->role() == ShardHost::Role::owner) {
    target.host = *host;
    co_return target;
  }
  auto placement = co_await access_.placement(*name, *deadline);
  if (!placement) co_return placement.error();
  target.placement = std::move(*placement);
  co_return target;
}

awaitable<http::Response> ParameterRoutes::pull(http::Request const& request, http::Body&) {
  auto target = co_await target_of(request);
  if (!target) co_return target.error();
  if (target->is_lazy()) co_return Problem(ProblemCode::unsupported, "rows are created lazily here: pull rows");
  if (target->host) co_return co_await pull_here(request, std::move(*target));
  co_return co_await pull_everywhere(request, std::move(*target));
}

Checked<std::optional<ShardHost::View>> ParameterRoutes::find_held(http::Request const& request,
                                                                   ShardHost const& host) {
  auto const match = find_tags(request.fields, "If-Match");
  if (!match) return match.error();
  if (!*match || (*match)->any) return std::optional<ShardHost::View>();
  for (auto const& quoted : (*match)->tags) {
    if (quoted.size() < 2 || quoted.front() != '"') continue;
    HeldViews::Key const key{host.spec().parameter, host.spec().index, quoted.substr(1, quoted.size() - 2)};
    auto held = held_.find(key, std::chrono::steady_clock::now());
    if (held && request.query_value("release")) held_.release(key);
    if (held) return held;
  }
  return Problem(ProblemCode::precondition_failed, "If-Match names values that are held here no more");
}

awaitable<http::Response> ParameterRoutes::pull_here(http::Request const& request, Target target) {
  auto const conditions = pull_conditions(request);
  if (!conditions) co_return conditions.error();
  auto const none_match = find_tags(request.fields, "If-None-Match");
  if (!none_match) co_return none_match.error();
  auto const& spec = target.host->spec();
  auto const cut = cut_of(request, spec.bytes());
  if (!cut) co_return refused(cut.error(), spec.bytes());
  auto const kept = find_held(request, *target.host);
  if (!kept) co_return kept.error();
  auto view = Checked<ShardHost::View>(kept->value_or(ShardHost::View()));
  if (!*kept) {
    ShardHost::Wish const wish{conditions->min_version, conditions->clock};
    view = co_await target.host->view(wish, target.deadline);
    if (!view) co_return view.error();
    if (request.query_value("hold"))
      held_.hold({spec.parameter, spec.index, tag_of(view->epoch, view->version)}, *view,
                 std::chrono::steady_clock::now());
  }
  http::Response response(200);
  Described const what{tag_of(view->epoch, view->version), view->version, view->epoch};
  describe_in(response.fields, what);
  // A held version, and a reader whose clock is counted, are looked at each time.
  auto const may_repeat = !*kept && !conditions->clock && !request.query_value("hold");
  if (*none_match && (*none_match)->matches_weakly('"' + what.tag + '"')) {
    response.status = 304;
    counts_.unchanged();
    if (may_repeat) response.again = pull_again(std::move(target.host), view->epoch, view->version, std::nullopt);
    co_return response;
  }
  describe_values(response.fields, spec.dtype, shape_of(spec));
  if (cut->is_part) {
    response.status = 206;
    response.fields.set("Content-Range", http::content_range(cut->range, spec.bytes()));
  }
  counts_.pulled();
  if (request.method == http::Method::head)
    response.head_length = spec.bytes();
  else
    response.payload = {view->values, view->values->bytes().subspan(cut->range.first, cut->range.length)};
  if (may_repeat) response.again = pull_again(std::move(target.host), view->epoch, view->version, cut->range);
  co_return response;
}

http::Again ParameterRoutes::pull_again(std::shared_ptr<ShardHost> host, std::uint32_t epoch, std::uint64_t version,
                                        std::optional<http::ByteRange> sent) {
  return [this, host = std::move(host), epoch, version, sent]() -> std::optional<http::SharedBytes> {
    auto view = host->view_now();
    if (!view || view->epoch != epoch || view->version != version) return std::nullopt;
    if (!sent) {
      counts_.unchanged();
      return http::SharedBytes();
    }
    counts_.pulled();
    auto const bytes = view->values->bytes().subspan(sent->first, sent->length);
    return http::SharedBytes{std::move(view->values), bytes};
  };
}

awaitable<http::Response> ParameterRoutes::pull_everywhere(http::Request const& request, Target target) {
  auto const conditions = pull_conditions(request);
  if (!conditions) co_return conditions.error();
  auto const none_match = find_tags(request.fields, "If-None-Match");
  if (!none_match) co_return none_match.error();
  auto const placement = target.placement;
  auto const cut = cut_of(request, placement->bytes());
  if (!cut) co_return refused(cut.error(), placement->bytes());
  Access::Wish wish;
  wish.min_version = conditions->min_version;
  wish.clock = conditions->clock;
  if (*none_match) wish.tags = split_tags(**none_match, placement->owners.size());
  auto const is_head = request.method == http::Method::head;
  if (!is_head && cut->range.length > ParameterGateway::buffered_bytes) {
    auto const found = co_await gateway_.pull(placement, wish, cut->range, target.deadline);
    if (!found) co_return found.error();
    auto const& seen = found->outcome;
    http::Response response(!found->stream ? 304 : cut->is_part ? 206 : 200);
    describe_in(response.fields, {joined(seen.tags), seen.version, seen.epoch});
    if (!found->stream) co_return response;
    describe_values(response.fields, placement->dtype, placement->parameter.shape);
    if (cut->is_part) response.fields.set("Content-Range", http::content_range(cut->range, placement->bytes()));
    response.stream = found->stream;
    co_return response;
  }
  auto const block = pool_.acquire(is_head ? 0 : cut->range.length);
  if (!block) co_return to_problem(block.error());
  parameters::Room const room{*block, (*block)->bytes()};
  auto const range = is_head ? http::ByteRange{0, 0} : cut->range;
  auto const outcome = co_await access_.pull(placement, wish, range, room, target.deadline);
  if (!outcome) co_return outcome.error();

  http::Response response(outcome->unchanged ? 304 : cut->is_part ? 206 : 200);
  Described const what{joined(outcome->tags), outcome->version, outcome->epoch};
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

awaitable<http::Response> ParameterRoutes::put_value(http::Request const& request, http::Body& body) {
  return push(request, body, PushKind::value, false);
}
awaitable<http::Response> ParameterRoutes::push_gradient(http::Request const& request, http::Body& body) {
  return push(request, body, PushKind::gradient, false);
}
awaitable<http::Response> ParameterRoutes::push_pull(http::Request const& request, http::Body& body) {
  return push(request, body, PushKind::gradient, true);
}
awaitable<http::Response> ParameterRoutes::push_rows(http::Request const& request, http::Body& body) {
  return push(request, body, PushKind::rows, false);
}

awaitable<http::Response> ParameterRoutes::push(http::Request const& request, http::Body& body, PushKind kind,
                                                bool pulls) {
  auto target = co_await target_of(request);
  if (!target) co_return target.error();
  if (target->is_lazy() && kind != PushKind::rows)
    co_return Problem(ProblemCode::unsupported, "rows are created lazily here: push rows");
  auto const where = target->push_target();
  auto const offset = request.query_number("offset", UINT64_MAX);
  if (!offset) co_return offset.error();
  if (*offset && pulls) co_return Problem(ProblemCode::unsupported, "pieces are pushed to gradient or value");
  if (*offset) co_return co_await push_piece(request, body, kind, std::move(*target), **offset);
  auto const is_compressed = request.fields.find("Chorus-Compression").has_value();
  if (target->placement && !pulls && !is_compressed) {
    auto head = parameters::read_push(request.fields, kind, where.dtype);
    if (!head) co_return head.error();
    if (ParameterGateway::can_pass_on(*target->placement, *head)) {
      auto const bytes = where.elements * element_bytes(head->dtype);
      if (auto problem = check_body(request, body, bytes)) co_return std::move(*problem);
      auto const passed = co_await gateway_.push(target->placement, std::move(*head), body, target->deadline);
      if (!passed) co_return passed.error();
      auto response = pushed({passed->version, passed->epoch, passed->next_sequence, passed->duplicate});
      describe_in(response.fields, {joined(passed->tags), passed->version, passed->epoch});
      co_return response;
    }
  }
  auto push = co_await reader_.read(request, body, kind, where);
  if (!push) co_return push.error();
  if (kind == PushKind::rows && !target->host) {
    auto const row_bytes = where.row_elements * element_bytes(push->dtype);
    auto const rows = parameters::check_rows(push->data->bytes(), push->rows, row_bytes, target->rows());
    if (!rows) co_return rows.error();
  }
  if (target->host) {
    auto response = co_await push_here(*target, *push, pulls);
    auto const has_moved = response.problem && response.problem->code == ProblemCode::misdirected;
    if (!has_moved || request.query_value("shard")) co_return response;
    // It was here a moment ago. Whether it was applied or not, the next owner knows.
    auto placement = co_await access_.placement(target->host->spec().parameter, target->deadline);
    if (!placement) co_return placement.error();
    target->host = nullptr;
    target->placement = std::move(*placement);
  }
  co_return co_await push_everywhere(std::move(*target), std::move(*push), pulls);
}

awaitable<http::Response> ParameterRoutes::push_piece(http::Request const& request, http::Body& body, PushKind kind,
                                                      Target target, std::uint64_t offset) {
  if (!target.host || (kind != PushKind::gradient && kind != PushKind::value))
    co_return Problem(ProblemCode::unsupported, "pieces are of a gradient or a value, for the owner of a shard");
  auto const where = target.push_target();
  auto push = parameters::read_push(request.fields, kind, where.dtype);
  if (!push) co_return push.error();
  auto const total = request.query_number("of", UINT64_MAX);
  if (!total) co_return total.error();
  if (auto const bytes = where.elements * element_bytes(push->dtype); total->value_or(0) != bytes || !*total)
    co_return Problem(ProblemCode::length_mismatch,
                      "the query parameter of is not " + std::to_string(bytes) + ", which the push has");
  auto const& spec = target.host->spec();
  StagedPushes::Piece const piece{spec.parameter, spec.index, push->client, push->sequence, offset, **total};
  auto const whole = co_await staged_.add(piece, body);
  if (!whole) co_return whole.error();
  if (*whole == nullptr) co_return http::Response::json(202, R"({"whole":false})");
  push->data = *whole;
  co_return co_await push_here(std::move(target), std::move(*push), false);
}

awaitable<http::Response> ParameterRoutes::push_here(Target target, parameters::Push push, bool pulls) {
  auto const& spec = target.host->spec();
  auto const clock = push.clock;
  auto const answer = co_await target.host->push(std::move(push), target.deadline);
  if (!answer) co_return answer.error();
  auto response = pushed(*answer);
  Described what{tag_of(answer->epoch, answer->version), answer->version, answer->epoch};
  if (pulls) {
    ShardHost::Wish wish{answer->version, std::nullopt};
    if (spec.staleness >= 0 && clock) wish = {std::nullopt, *clock + 1};
    auto const view = co_await target.host->view(wish, target.deadline);
    if (!view) co_return view.error();
    what = {tag_of(view->epoch, view->version), view->version, view->epoch};
    response.body.clear();
    response.payload = {view->values, view->values->bytes()};
    describe_values(response.fields, spec.dtype, shape_of(spec));
    counts_.pulled();
  }
  describe_in(response.fields, what);
  co_return response;
}

awaitable<http::Response> ParameterRoutes::push_everywhere(Target target, parameters::Push push, bool pulls) {
  auto const placement = target.placement;
  auto const wants_norm = placement->parameter.optimizer.clip_norm && !push.norm && placement->owners.size() > 1;
  if (wants_norm && push.kind != PushKind::value)
    push.norm = std::sqrt(parameters::squared_norm(parameters::gradient_of(push)));
  parameters::Room room;
  if (pulls) {
    auto const block = pool_.acquire(placement->bytes());
    if (!block) co_return to_problem(block.error());
    room = {*block, (*block)->bytes()};
  }
  auto outcome = Checked<Access::Outcome>(Problem());
  if (push.kind == PushKind::rows)
    outcome = co_await access_.push_rows(placement, std::move(push), target.deadline);
  else
    outcome = co_await access_.push(placement, std::move(push), room, target.deadline);
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

awaitable<http::Response> ParameterRoutes::pull_rows(http::Request const& request, http::Body& body) {
  auto const target = co_await target_of(request);
  if (!target) co_return target.error();
  auto const conditions = pull_conditions(request);
  if (!conditions) co_return conditions.error();
  auto const where = target->push_target();
  if (where.row_elements == 0)
    co_return Problem(ProblemCode::unsupported, "rows of this parameter cannot be selected: pull its value");
  auto const count = parameters::number_field(request.fields, "Chorus-Rows");
  if (!count) co_return count.error();
  auto const bytes = body.length().value_or(0);
  if (auto problem = check_body(request, body, bytes)) co_return std::move(*problem);
  if (!*count || **count != bytes / sizeof(std::uint64_t))
    co_return Problem(ProblemCode::length_mismatch,
                      "Chorus-Rows is to be the number of rows, and the body their numbers, 8 bytes each");
  auto const numbers = co_await reader_.read_block(body, **count * sizeof(std::uint64_t));
  if (!numbers) co_return numbers.error();
  auto const rows = parameters::check_rows((*numbers)->bytes(), **count, 0, target->rows());
  if (!rows) co_return rows.error();
  auto const row_bytes = where.row_elements * element_bytes(where.dtype);
  if (row_bytes > 0 && **count > (std::uint64_t{1} << 62) / row_bytes)
    co_return Problem(ProblemCode::payload_too_large, "so many rows have more than 2^62 bytes");
  auto const block = pool_.acquire(**count * row_bytes);
  if (!block) co_return to_problem(block.error());

  Described what;
  if (target->host) {
    ShardHost::Wish const wish{conditions->min_version, conditions->clock};
    auto const view = co_await target->host->view(wish, target->deadline);
    if (!view) co_return view.error();
    target->host->copy_rows(*rows, (*block)->bytes());
    what = {tag_of(view->epoch, view->version), view->version, view->epoch};
    counts_.pulled();
  } else {
    Access::Wish wish;
    wish.min_version = conditions->min_version;
    wish.clock = conditions->clock;
    parameters::Room const room{*block, (*block)->bytes()};
    auto const outcome = co_await access_.pull_rows(target->placement, wish, *numbers, *rows, room, target->deadline);
    if (!outcome) co_return outcome.error();
    what = {"", outcome->version, outcome->epoch};
  }
  http::Response response(200);
  response.fields.set("Parameter-Version", std::to_string(what.version));
  response.fields.set("Parameter-Epoch", std::to_string(what.epoch));
  describe_values(response.fields, where.dtype, {**count, where.row_elements});
  response.payload = {*block, (*block)->bytes()};
  co_return response;
}

}  // namespace chorus::service
