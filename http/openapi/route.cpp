#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <memory>

#include "collectives/core/assert.hpp"
#include "http/openapi/document.hpp"
#include "http/openapi/operation.hpp"

namespace chorus::http::openapi {
namespace {

using boost::asio::awaitable;

struct Served {
  std::string text;
  std::string etag;
};

std::string tag_of(std::string const& text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<unsigned char const*>(text.data()), text.size(), digest.data());
  std::string tag = "\"";
  for (std::size_t i = 0; i < digest.size() / 2; ++i) {
    tag += "0123456789abcdef"[digest[i] >> 4];
    tag += "0123456789abcdef"[digest[i] & 15];
  }
  return tag + '"';
}

awaitable<Response> answer(std::shared_ptr<Served const> served, bool is_known) {
  Response response(is_known ? 304 : 200);
  response.fields.set("ETag", served->etag);
  response.fields.set("Cache-Control", "no-cache");
  if (!is_known) {
    response.fields.set("Content-Type", "application/json");
    response.payload = {served, std::as_bytes(std::span(served->text))};
  }
  co_return response;
}

}  // namespace

void restrict_queries(Router& router, Service service) {
  auto const operations = service == Service::coordinator ? coordinator_operations() : worker_operations();
  for (auto const& entry : router.entries()) {
    auto const operation = std::ranges::find_if(operations, [&](Operation const& known) {
      return known.method == entry.method && known.path == entry.pattern;
    });
    CHORUS_ASSERT(operation != operations.end(), "every route is in the document");
    if (entry.access == Access::open || entry.access == Access::join) continue;
    std::vector<std::string> names;
    for (auto const& field : operation->query) names.emplace_back(field.name);
    router.restrict_query(entry.method, entry.pattern, std::move(names));
  }
}

void add_openapi(Router& router) {
  auto text = document();
  auto tag = tag_of(text);
  auto const served = std::make_shared<Served const>(Served{std::move(text), std::move(tag)});
  router.add(Method::get, "/openapi.json", Access::open, [served](Request const& request, Body&) {
    auto const known = request.fields.find("If-None-Match").value_or("");
    return answer(served, known == "*" || known.find(served->etag) != std::string_view::npos);
  });
}

}  // namespace chorus::http::openapi
