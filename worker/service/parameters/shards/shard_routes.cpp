#include "worker/service/parameters/shards/shard_routes.hpp"

#include <charconv>

#include "http/json/json.hpp"
#include "worker/service/requests/json_body.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Problem;
using http::ProblemCode;
using parameters::PushKind;

constexpr std::chrono::seconds log_patience{10};
constexpr std::chrono::seconds base_patience{600};
constexpr std::uint64_t names_limit_bytes = 1 << 20;

http::Checked<std::uint32_t> shard_number(http::Request const& request) {
  auto const& text = request.parameter("shard");
  std::uint32_t shard = 0;
  auto const* const end = text.data() + text.size();
  auto const [stop, failure] = std::from_chars(text.data(), end, shard);
  if (failure == std::errc() && stop == end) return shard;
  return Problem(ProblemCode::bad_request, "a shard is a number, not '" + text.substr(0, 80) + "'");
}

http::Checked<std::uint64_t> required_number(http::Request const& request, std::string_view field) {
  auto const number = parameters::number_field(request.fields, field);
  if (!number) return number.error();
  if (!*number) return Problem(ProblemCode::bad_request, "the header field " + std::string(field) + " is missing");
  return **number;
}

http::Response answer(std::optional<Problem> problem) {
  return problem ? http::Response(*problem) : http::Response(204);
}

}  // namespace

void ShardRoutes::add_to(http::Router& router) {
  auto const add = [&](http::Method method, std::string const& path,
                       Answering (ShardRoutes::*member)(http::Request const&, http::Body&)) {
    router.add(
        method, "/v1/parameters/{name}/shards/{shard}" + path, http::Access::join,
        [this, member](http::Request const& request, http::Body& body) { return (this->*member)(request, body); });
  };
  router.add(http::Method::post, "/v1/shards", http::Access::join,
             [this](http::Request const&, http::Body& body) { return assign_all(body); });
  add(http::Method::put, "", &ShardRoutes::assign);
  add(http::Method::get, "", &ShardRoutes::show);
  add(http::Method::delete_, "", &ShardRoutes::erase);
  add(http::Method::post, "/log", &ShardRoutes::log);
  add(http::Method::put, "/arrays/{array...}", &ShardRoutes::array);
  add(http::Method::post, "/state", &ShardRoutes::state);
  add(http::Method::post, "/complete", &ShardRoutes::complete);
}

awaitable<http::Response> ShardRoutes::assign(http::Request const& request, http::Body& body) {
  auto const name = parameter_name(request);
  if (!name) co_return name.error();
  auto const shard = shard_number(request);
  if (!shard) co_return shard.error();
  auto const assignment = co_await read_json<api::ShardAssignment>(body);
  if (!assignment) co_return assignment.error();
  if (assignment->message.parameter.name != *name || assignment->message.shard != *shard)
    co_return Problem(ProblemCode::invalid_field, "/parameter/name and /shard are not what the path says");
  auto problem = co_await take(assignment->message);
  co_return answer(std::move(problem));
}

awaitable<http::Response> ShardRoutes::assign_all(http::Body& body) {
  auto const list = co_await read_json<api::ShardAssignmentList>(body);
  if (!list) co_return list.error();
  api::ShardAssignmentOutcomeList outcomes;
  for (auto const& assignment : list->message.items) {
    auto problem = co_await take(assignment);
    outcomes.items.push_back({std::move(problem)});
  }
  co_return http::Response::json(200, http::encode(outcomes));
}

// The assignment outlives the call.
awaitable<std::optional<Problem>> ShardRoutes::take(api::ShardAssignment const& message) {
  auto const& name = message.parameter.name;
  auto loaded = http::Checked<std::unique_ptr<parameters::Shard>>(nullptr);
  auto const is_new = !book_.keeps(message);
  if (message.checkpoint && message.fresh)
    loaded = co_await checkpoints_.load(message);
  else if (is_new && message.recover)
    loaded = co_await maker_.recover(message);
  else if (is_new && (message.fresh || message.role != "owner"))
    loaded = co_await maker_.make(message);
  if (!loaded) co_return loaded.error();
  if (auto problem = book_.assign(message, std::move(*loaded))) co_return problem;
  // From here on, acknowledged pushes can be recovered.
  auto const host = book_.find(name, message.shard);
  if (!host) co_return host.error();
  co_return co_await (*host)->until_logged(std::chrono::steady_clock::now() + base_patience);
}

awaitable<http::Response> ShardRoutes::show(http::Request const& request, http::Body&) {
  auto const name = parameter_name(request);
  if (!name) co_return name.error();
  auto const shard = shard_number(request);
  if (!shard) co_return shard.error();
  auto const host = book_.find(*name, *shard);
  if (!host) co_return host.error();
  co_return http::Response::json(200, http::encode((*host)->status()));
}

awaitable<http::Response> ShardRoutes::erase(http::Request const& request, http::Body&) {
  auto const name = parameter_name(request);
  if (!name) co_return name.error();
  auto const shard = shard_number(request);
  if (!shard) co_return shard.error();
  auto const epoch = request.query_number("epoch", UINT32_MAX);
  if (!epoch) co_return epoch.error();
  co_return answer(book_.erase(*name, *shard, static_cast<std::uint32_t>(epoch->value_or(UINT32_MAX))));
}

http::Checked<ShardRoutes::Target> ShardRoutes::target_of(http::Request const& request) const {
  auto const name = parameter_name(request);
  if (!name) return name.error();
  auto const shard = shard_number(request);
  if (!shard) return shard.error();
  auto const epoch = required_number(request, "Chorus-Epoch");
  if (!epoch) return epoch.error();
  auto const history = parameters::number_field(request.fields, "Chorus-History");
  if (!history) return history.error();
  auto host = book_.find(*name, *shard);
  if (!host) return host.error();
  return Target{std::move(*host), static_cast<std::uint32_t>(std::min<std::uint64_t>(*epoch, UINT32_MAX)), *history};
}

awaitable<http::Response> ShardRoutes::log(http::Request const& request, http::Body& body) {
  auto const target = target_of(request);
  if (!target) co_return target.error();
  auto const position = required_number(request, "Chorus-Position");
  if (!position) co_return position.error();
  auto const kind = parameters::parse_push_kind(request.fields.find("Chorus-Kind").value_or(""));
  if (!kind) co_return Problem(ProblemCode::bad_request, "Chorus-Kind is gradient, rows, value or clients");
  auto const& spec = target->host->spec();
  auto push = http::Checked<parameters::Push>(Problem());
  if (*kind == PushKind::clients) {
    auto const names = co_await body.read_all(names_limit_bytes);
    if (!names) co_return names.error();
    push = parameters::clients_push(*names, spec.dtype);
  } else {
    push = co_await reader_.read(request, body, *kind, {spec.dtype, spec.elements(), spec.row_elements});
  }
  if (!push) co_return push.error();
  auto const deadline = std::chrono::steady_clock::now() + log_patience;
  parameters::LogEntry entry{*position, std::move(*push), target->history};
  auto const problem = co_await target->host->follow(std::move(entry), target->epoch, deadline);
  co_return answer(problem);
}

awaitable<http::Response> ShardRoutes::array(http::Request const& request, http::Body& body) {
  auto const target = target_of(request);
  if (!target) co_return target.error();
  parameters::ImagePiece piece;
  piece.array = request.parameter("array");
  for (auto const& [name, number] :
       {std::pair{"image", &piece.image}, {"offset", &piece.offset}, {"bytes", &piece.bytes}}) {
    auto const given = request.query_number(name, UINT64_MAX);
    if (!given) co_return given.error();
    *number = given->value_or(0);
  }
  auto const length = body.length();
  if (!length) co_return Problem(ProblemCode::length_required, "a piece of an array has a Content-Length");
  // Into a block first: the shard may have been replaced by the time the body has arrived.
  auto const block = co_await reader_.read_block(body, *length);
  if (!block) co_return block.error();
  auto problem = co_await target->host->put_piece(std::move(piece), *block, target->epoch);
  co_return answer(std::move(problem));
}

awaitable<http::Response> ShardRoutes::state(http::Request const& request, http::Body& body) {
  auto const target = target_of(request);
  if (!target) co_return target.error();
  auto const image = request.query_number("image", UINT64_MAX);
  if (!image) co_return image.error();
  auto const state = co_await read_json<api::ShardState>(body);
  if (!state) co_return state.error();
  auto content = state->message;
  auto const problem =
      co_await target->host->end_image(image->value_or(0), std::move(content), target->history, target->epoch);
  co_return answer(problem);
}

awaitable<http::Response> ShardRoutes::complete(http::Request const& request, http::Body&) {
  auto const target = target_of(request);
  if (!target) co_return target.error();
  auto const position = required_number(request, "Chorus-Position");
  if (!position) co_return position.error();
  co_return answer(target->host->complete(*position, target->history, target->epoch));
}

}  // namespace chorus::service
