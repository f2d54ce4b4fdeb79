#include "worker/parameters/serving/access/push_fields.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "collectives/core/nearest_name.hpp"
#include "http/api/cluster/membership.hpp"

namespace chorus::parameters {
namespace {

using http::Problem;
using http::ProblemCode;

Problem malformed(std::string_view field, std::string_view found, std::string_view expected) {
  return {ProblemCode::bad_request,
          std::string(field) + " is '" + std::string(found.substr(0, 80)) + "', expected " + std::string(expected)};
}

http::Checked<std::optional<std::string_view>> single(http::Fields const& fields, std::string_view field) {
  if (fields.count(field) <= 1) return fields.find(field);
  return Problem(ProblemCode::bad_request, "the header field " + std::string(field) + " is given twice");
}

template <class Number>
bool parse(std::string_view text, Number& number) {
  auto const* const end = text.data() + text.size();
  auto const [stop, failure] = std::from_chars(text.data(), end, number);
  return failure == std::errc() && stop == end && !text.empty();
}

http::Checked<Client> read_client(http::Fields const& fields) {
  auto const name = single(fields, "Chorus-Client");
  if (!name) return name.error();
  if (!*name)
    return Problem(ProblemCode::bad_request,
                   "the header field Chorus-Client is missing: who pushes, under a name of "
                   "its own");
  if (!is_client_name(**name)) return malformed("Chorus-Client", **name, "1 to 64 letters, digits and ._-");
  Client client{std::string(**name), 0};
  auto const incarnation = single(fields, "Chorus-Incarnation");
  if (!incarnation) return incarnation.error();
  if (*incarnation) {
    auto const value = api::from_hex(**incarnation);
    if (!value) return malformed("Chorus-Incarnation", **incarnation, "16 hexadecimal digits");
    client.incarnation = *value;
  }
  return client;
}

http::Checked<Dtype> read_dtype(http::Fields const& fields, PushKind kind, Dtype dtype) {
  auto const text = single(fields, "Tensor-Dtype");
  if (!text) return text.error();
  if (!*text) return dtype;
  auto const given = parse_dtype(**text);
  if (!given)
    return Problem(ProblemCode::bad_request, "Tensor-Dtype: " + unknown_name("dtype", **text, names_of(all_dtypes)));
  auto const is_half = dtype == Dtype::f16 || dtype == Dtype::bf16;
  if (*given == dtype || (is_half && *given == Dtype::f32 && kind != PushKind::value)) return *given;
  Problem problem(ProblemCode::mismatch, "Tensor-Dtype is " + std::string(**text) + ", the parameter is of " +
                                             std::string(chorus::name(dtype)));
  problem.errors.push_back({"/dtype", problem.detail});
  return problem;
}

}  // namespace

http::Checked<std::optional<std::uint64_t>> number_field(http::Fields const& fields, std::string_view name) {
  auto const text = single(fields, name);
  if (!text) return text.error();
  if (!*text) return std::optional<std::uint64_t>();
  std::uint64_t number = 0;
  if (!parse(**text, number)) return malformed(name, **text, "a number from 0 to 18446744073709551615");
  return std::optional(number);
}

http::Checked<Push> read_push(http::Fields const& fields, PushKind kind, Dtype dtype) {
  Push push;
  push.kind = kind;
  if (kind != PushKind::clients) {
    auto client = read_client(fields);
    if (!client) return client.error();
    push.client = std::move(*client);
    auto const sequence = number_field(fields, "Chorus-Sequence");
    if (!sequence) return sequence.error();
    if (!*sequence)
      return Problem(ProblemCode::bad_request,
                     "the header field Chorus-Sequence is missing: from 0, one more with "
                     "each push of this client");
    push.sequence = **sequence;
  }
  auto const clock = number_field(fields, "Chorus-Clock");
  if (!clock) return clock.error();
  if (*clock && **clock == UINT64_MAX) return malformed("Chorus-Clock", "18446744073709551615", "a lower one");
  push.clock = *clock;
  auto const given = read_dtype(fields, kind, dtype);
  if (!given) return given.error();
  push.dtype = *given;
  if (kind == PushKind::rows) {
    auto const rows = number_field(fields, "Chorus-Rows");
    if (!rows) return rows.error();
    if (!*rows) return Problem(ProblemCode::bad_request, "the header field Chorus-Rows is missing: how many there are");
    push.rows = **rows;
  }
  auto const norm = single(fields, "Chorus-Gradient-Norm");
  if (!norm) return norm.error();
  if (*norm) {
    double value = 0;
    if (!parse(**norm, value) || !(value >= 0)) return malformed("Chorus-Gradient-Norm", **norm, "a number from 0 on");
    push.norm = value;
  }
  return push;
}

void write_push(Push const& push, http::Fields& fields) {
  if (push.kind != PushKind::clients) {
    fields.set("Chorus-Client", push.client.name);
    if (push.client.incarnation != 0) fields.set("Chorus-Incarnation", api::to_hex(push.client.incarnation));
    fields.set("Chorus-Sequence", std::to_string(push.sequence));
  }
  if (push.clock) fields.set("Chorus-Clock", std::to_string(*push.clock));
  fields.set("Tensor-Dtype", std::string(chorus::name(push.dtype)));
  if (push.kind == PushKind::rows) fields.set("Chorus-Rows", std::to_string(push.rows));
  if (push.norm) {
    // Receivers must not compute a norm of their own instead of one that is not finite.
    auto const norm = std::isfinite(*push.norm) ? *push.norm : std::numeric_limits<double>::infinity();
    char text[32];
    auto const [end, failure] = std::to_chars(std::begin(text), std::end(text), norm);
    if (failure == std::errc()) fields.set("Chorus-Gradient-Norm", std::string(text, end));
  }
}

http::Checked<Push> clients_push(std::string_view lines, Dtype dtype) {
  Push push;
  push.kind = PushKind::clients;
  push.dtype = dtype;
  for (std::size_t begin = 0; begin < lines.size();) {
    auto const end = std::min(lines.find('\n', begin), lines.size());
    auto const name = lines.substr(begin, end - begin);
    if (!is_client_name(name)) return malformed("a client", name, "1 to 64 letters, digits and ._-");
    push.clients.emplace_back(name);
    begin = end + 1;
  }
  return push;
}

std::string client_lines(std::vector<std::string> const& clients) {
  std::string lines;
  for (auto const& client : clients) lines += client + '\n';
  return lines;
}

std::optional<PushKind> parse_push_kind(std::string_view text) {
  auto const found = std::ranges::find(push_kind_names, text);
  if (found == std::end(push_kind_names)) return std::nullopt;
  return static_cast<PushKind>(found - std::begin(push_kind_names));
}

std::string_view name(PushKind kind) { return push_kind_names[static_cast<std::size_t>(kind)]; }

bool is_client_name(std::string_view name) {
  auto const fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, fits);
}

}  // namespace chorus::parameters
