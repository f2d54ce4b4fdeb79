#include "worker/service/parameters/requests/parameter_request.hpp"

#include "collectives/core/nearest_name.hpp"
#include "http/api/parameters/parameters.hpp"
#include "worker/parameters/compression/decode.hpp"
#include "worker/service/memory/prepared_memory.hpp"
#include "worker/service/requests/octets.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/service/requests/single_field.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;

Problem wrong_length(std::uint64_t found, std::uint64_t expected) {
  return {ProblemCode::length_mismatch,
          "the body has " + std::to_string(found) + " bytes, expected " + std::to_string(expected)};
}

// The length of a chunked body is known at its end.
std::optional<Problem> check_length(http::Body const& body, std::uint64_t bytes) {
  if (body.length() && *body.length() != bytes) return wrong_length(*body.length(), bytes);
  return std::nullopt;
}

std::optional<Problem> require_length(http::Body const& body, std::string const& of) {
  if (body.length()) return std::nullopt;
  return Problem(ProblemCode::length_required, "this body needs a Content-Length: " + of);
}

}  // namespace

Checked<std::string> parameter_name(http::Request const& request) {
  auto const& name = request.parameter("name");
  if (api::is_parameter_name(name)) return name;
  return Problem(ProblemCode::bad_request,
                 "parameter names are 1 to 255 letters, digits and ._~/- without empty, . or .. parts");
}

Checked<http::TimePoint> deadline_of(http::Request const& request, http::TimePoint now) {
  constexpr std::uint64_t otherwise_ms = 30'000, most_ms = 600'000;
  auto const timeout_ms = request.query_number("timeout_ms", most_ms);
  if (!timeout_ms) return timeout_ms.error();
  return now + std::chrono::milliseconds(timeout_ms->value_or(otherwise_ms));
}

Checked<PullConditions> pull_conditions(http::Request const& request) {
  PullConditions conditions;
  auto const min_version = request.query_number("min_version", UINT64_MAX);
  if (!min_version) return min_version.error();
  conditions.min_version = *min_version;
  auto const clock = parameters::number_field(request.fields, "Chorus-Clock");
  if (!clock) return clock.error();
  conditions.clock = *clock;
  return conditions;
}

std::optional<Problem> check_body(http::Request const& request, http::Body const& body, std::uint64_t bytes) {
  if (auto problem = check_octets(request.fields)) return problem;
  if (auto problem = require_length(body, "of " + std::to_string(bytes))) return problem;
  return check_length(body, bytes);
}

awaitable<Checked<std::shared_ptr<tensors::Block>>> PushReader::read_block(http::Body& body, std::uint64_t bytes) {
  if (auto problem = check_length(body, bytes)) co_return std::move(*problem);
  auto block = co_await receive_prepared(body, bytes, pool_, helper_);
  if (block && !body.length())
    if (auto problem = co_await body.expect_end()) co_return std::move(*problem);
  co_return block;
}

Checked<std::uint64_t> PushReader::bytes_of_rows(parameters::Push const& push, std::uint64_t most, PushTarget target) {
  auto const each = sizeof(std::uint64_t) + target.row_elements * element_bytes(push.dtype);
  if (push.rows > most / each)
    return Problem(ProblemCode::length_mismatch, "Chorus-Rows is " + std::to_string(push.rows) +
                                                     ", and the body has at most " + std::to_string(most) +
                                                     " bytes: a row has " + std::to_string(each));
  return push.rows * each;
}

awaitable<Checked<PushReader::Rows>> PushReader::checked_rows(std::shared_ptr<tensors::Block const> block,
                                                              std::uint64_t count, std::uint64_t row_bytes,
                                                              parameters::RowRange range) {
  constexpr std::uint64_t inline_rows = 65536;
  auto const check = [block, count, row_bytes, range] {
    return parameters::check_rows(block->bytes(), count, row_bytes, range);
  };
  if (count <= inline_rows) co_return check();
  co_return co_await helper_.compute(check);
}

awaitable<Checked<parameters::Push>> PushReader::read(http::Request const& request, http::Body& body,
                                                      parameters::PushKind kind, PushTarget target) {
  if (auto problem = check_octets(request.fields)) co_return std::move(*problem);
  auto push = parameters::read_push(request.fields, kind, target.dtype);
  if (!push) co_return push.error();
  auto const compression = single_field(request.fields, "Chorus-Compression");
  if (!compression) co_return compression.error();
  if (*compression) co_return co_await read_compressed(std::move(*push), body, std::string(**compression), target);
  auto bytes = target.elements * element_bytes(push->dtype);
  if (kind == parameters::PushKind::rows) {
    auto const of_rows = bytes_of_rows(*push, most_bytes(body), target);
    if (!of_rows) co_return of_rows.error();
    bytes = *of_rows;
  }
  auto block = co_await read_block(body, bytes);
  if (!block) co_return block.error();
  push->data = std::move(*block);
  co_return std::move(*push);
}

awaitable<Checked<parameters::Push>> PushReader::read_compressed(parameters::Push push, http::Body& body,
                                                                 std::string name, PushTarget target) {
  auto const compression = parameters::parse_compression(name);
  if (!compression)
    co_return Problem(
        ProblemCode::bad_request,
        "Chorus-Compression: " + unknown_name("compression", name, chorus::names_of(parameters::all_compressions)));
  if (push.kind != parameters::PushKind::gradient || element_bytes(target.dtype) > 4 ||
      (target.dtype != Dtype::f32 && target.dtype != Dtype::f16 && target.dtype != Dtype::bf16))
    co_return Problem(ProblemCode::unsupported,
                      "Chorus-Compression is for gradients of f32, f16 and bf16 parameters, of all elements");
  if (auto problem = require_length(body, name + " does not have the same one for all values"))
    co_return std::move(*problem);
  auto const length = *body.length();
  if (auto const most = parameters::encoded_bytes_max(*compression, target.elements); length > most)
    co_return Problem(ProblemCode::length_mismatch, "the body has " + std::to_string(length) + " bytes; " + name +
                                                        " has at most " + std::to_string(most) + " here");
  auto const encoded = co_await read_block(body, length);
  if (!encoded) co_return encoded.error();
  auto decoded = co_await acquire_prepared(pool_, helper_, target.elements * sizeof(float));
  if (!decoded) co_return to_problem(decoded.error());
  auto const block = *decoded;
  auto const decode = [compression = *compression, from = *encoded, block] {
    auto const elements = block->size_bytes() / sizeof(float);
    auto const status =
        parameters::decode(compression, from->bytes(), {reinterpret_cast<float*>(block->data()), elements});
    return status ? std::string() : status.error().detail;
  };
  constexpr std::uint64_t inline_elements = 65536;
  auto wrong = std::string();
  if (target.elements <= inline_elements)
    wrong = decode();
  else
    wrong = co_await helper_.compute(decode);
  if (!wrong.empty()) co_return Problem(ProblemCode::invalid_field, "the compressed gradient: " + wrong);
  push.dtype = Dtype::f32;
  push.data = block;
  co_return push;
}

}  // namespace chorus::service
