#include "worker/parameters/serving/access/row_calls.hpp"

#include "worker/parameters/serving/access/push_fields.hpp"
#include "worker/parameters/shard/pushes/step.hpp"

namespace chorus::parameters {
namespace {

http::Call post(std::string url) {
  http::Call call;
  call.method = http::Method::post;
  call.url = std::move(url);
  call.fields.set("Content-Type", "application/octet-stream");
  return call;
}

}  // namespace

http::Call call_of_rows(Push const& push) {
  auto call = post("/rows/gradient?");
  write_push(push, call.fields);
  call.payload = push.data->bytes();
  return call;
}

http::Call call_of_rows(Push const& push, RowPart part) {
  auto call = call_of_rows(push);
  call.fields.set("Chorus-Rows", std::to_string(part.count));
  auto const numbers = push.data->bytes().first(push.rows * sizeof(std::uint64_t));
  auto const gradients = gradient_of(push).bytes;
  auto const row_bytes = push.rows == 0 ? 0 : gradients.size() / push.rows;
  call.payload = numbers.subspan(part.first * sizeof(std::uint64_t), part.count * sizeof(std::uint64_t));
  call.payload_rest = gradients.subspan(part.first * row_bytes, part.count * row_bytes);
  return call;
}

http::Call call_for_rows(std::span<std::uint64_t const> numbers, std::string const& query,
                         std::optional<std::uint64_t> clock) {
  auto call = post("/rows?" + query);
  if (clock) call.fields.set("Chorus-Clock", std::to_string(*clock));
  call.fields.set("Chorus-Rows", std::to_string(numbers.size()));
  call.payload = std::as_bytes(numbers);
  return call;
}

RowRange row_range_of(api::ParameterEndpoint const& owner, std::uint64_t width) {
  return {owner.elements[0] / width, owner.elements[1] / width};
}

}  // namespace chorus::parameters
