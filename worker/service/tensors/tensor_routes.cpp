#include "worker/service/tensors/tensor_routes.hpp"

#include "http/json/json.hpp"
#include "http/message/range.hpp"
#include "http/routing/paging.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/service/requests/single_field.hpp"
#include "worker/service/tensors/digest.hpp"
#include "worker/service/tensors/entity_tag.hpp"
#include "worker/service/tensors/gpu_transfer.hpp"
#include "worker/service/tensors/tensor_description.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;

// A text that sorts after all names before those with this prefix, and before these.
std::string just_before(std::string_view prefix) {
  std::string text(prefix);
  if (text.empty()) return text;
  --text.back();
  return text + '\x7f';
}

// If-Range names the representation of which the client has a part; for any other the whole is sent.
bool range_applies(http::Request const& request, std::string_view etag) {
  auto const condition = request.fields.find("If-Range");
  return request.method == http::Method::get && (!condition || *condition == etag);
}

// 200 or 206 with the bytes, or 416; tensors on a GPU are streamed.
awaitable<http::Response> content(http::Request const& request, tensors::Tensor tensor, std::string etag,
                                  tensors::Pool& pool, Helper& helper) {
  http::Response response(200);
  auto bytes = tensor.data->bytes();
  auto const range = single_field(request.fields, "Range");
  if (!range) co_return range.error();
  if (*range && !http::is_in_other_unit(**range) && range_applies(request, etag)) {
    auto const part = http::parse_range(**range, bytes.size());
    if (!part) {
      response = part.error();
      if (part.error().code == http::ProblemCode::range_not_satisfiable)
        response.fields.set("Content-Range", http::content_range_of_none(bytes.size()));
      co_return response;
    }
    response.status = 206;
    response.fields.set("Content-Range", http::content_range(*part, bytes.size()));
    bytes = bytes.subspan(part->first, part->length);
  }
  response.fields.set("Content-Type", "application/octet-stream");
  if (request.method == http::Method::head) {
    response.head_length = bytes.size();
  } else if (tensor.data->gpu() == nullptr) {
    response.payload = {tensor.data, bytes};
  } else {
    auto stream = co_await stream_from_gpu(tensor.data, bytes, pool, helper);
    if (!stream) co_return stream.error();
    response.stream = std::move(*stream);
    response.stream_length = bytes.size();
  }
  co_return response;
}

}  // namespace

void TensorRoutes::add_to(http::Router& router) {
  router.add(http::Method::get, "/v1/tensors", http::Access::read,
             [this](http::Request const& request, http::Body&) { return list(request); });
  router.add(http::Method::get, "/v1/tensors/{name...}", http::Access::read,
             [this](http::Request const& request, http::Body&) { return get(request); });
  router.add(http::Method::delete_, "/v1/tensors/{name...}", http::Access::submit,
             [this](http::Request const& request, http::Body&) { return erase(request); });
}

awaitable<http::Response> TensorRoutes::list(http::Request const& request) {
  auto const page = http::page_of(request);
  if (!page) co_return page.error();
  auto const cursor = request.query_value("cursor");
  if (cursor && !tensors::is_valid_name(*cursor))
    co_return http::Problem(http::ProblemCode::bad_request, "cursor is not one that a list gave");
  auto const prefix = request.query_value("prefix").value_or("");

  api::TensorList list;
  for (auto const& tensor : store_.list(std::max(page->after, just_before(prefix)), page->limit + 1)) {
    if (!tensor.name.starts_with(prefix)) break;
    list.items.push_back(to_info(tensor));
  }
  http::cut(list, *page);
  co_return http::Response::json(200, http::encode(list));
}

awaitable<http::Response> TensorRoutes::get(http::Request const& request) {
  auto const name = tensor_name(request);
  if (!name) co_return name.error();
  auto const tensor = store_.get(*name);
  if (!tensor) co_return to_problem(tensor.error());
  auto const etag = tag_of(*tensor, identity_);

  if (auto const* region = tensor->data->region())
    if (auto const why = region->damage())
      co_return http::Problem(http::ProblemCode::region_damaged, "region " + region->name() + ": " + *why);
  auto const match = find_tags(request.fields, "If-Match");
  if (!match) co_return match.error();
  if (*match && !(*match)->matches_strongly(etag))
    co_return http::Problem(http::ProblemCode::precondition_failed,
                            "If-Match does not allow it: the tensor is at version " + std::to_string(tensor->version));
  auto const none_match = find_tags(request.fields, "If-None-Match");
  if (!none_match) co_return none_match.error();
  if (*none_match && (*none_match)->matches_weakly(etag)) {
    http::Response unchanged(304);
    describe(*tensor, identity_, unchanged.fields);
    co_return unchanged;
  }

  auto response = co_await content(request, *tensor, etag, pool_, helper_);
  if (response.status >= 400) co_return response;
  describe(*tensor, identity_, response.fields);
  auto const wish = request.fields.find("Want-Repr-Digest");
  if (auto const algorithm = wish ? parse_wanted_digest(*wish) : std::nullopt) {
    auto const compute = [data = tensor->data, algorithm] { return digest_of(*data, *algorithm); };
    auto const digest = co_await helper_.compute(compute);
    if (!digest) co_return to_problem(digest.error());
    response.fields.set("Repr-Digest", to_field(*digest));
  }
  co_return response;
}

awaitable<http::Response> TensorRoutes::erase(http::Request const& request) {
  auto const name = tensor_name(request);
  if (!name) co_return name.error();
  if (auto const known = store_.get(*name); !known) co_return to_problem(known.error());
  auto const expected = expected_version(request.fields, store_, *name, identity_);
  if (!expected) co_return expected.error();
  if (auto const erased = store_.erase(*name, *expected); !erased) co_return to_condition_problem(erased.error());
  co_return http::Response(204);
}

}  // namespace chorus::service
