#include "server/ui/assets.hpp"

#include <algorithm>

#include "server/ui/embedded.hpp"

namespace chorus::ui {
namespace {

using boost::asio::awaitable;
using http::Problem;
using http::ProblemCode;
using http::Request;
using http::Response;

char const* content_type(std::string_view name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/html; charset=utf-8";
}

awaitable<Response> asset(Request const& request, http::Body&) {
  auto const files = embedded_files();
  auto const& name = request.parameter("name");
  auto const file = std::ranges::find(files, std::string_view(name), &EmbeddedFile::name);
  if (file == files.end()) co_return Problem(ProblemCode::not_found, "the status page has no file of this name");
  auto const etag = "\"" + std::string(file->sha256.substr(0, 32)) + "\"";
  auto const known = request.fields.find("If-None-Match");
  Response response(known && known->find(etag) != std::string_view::npos ? 304 : 200);
  response.fields.set("ETag", etag);
  response.fields.set("Cache-Control", "no-cache");
  set_security(response.fields);
  if (response.status == 200) {
    response.fields.set("Content-Type", content_type(name));
    response.payload.bytes = std::as_bytes(file->bytes);  // constants: nobody has to keep them
  }
  co_return response;
}

}  // namespace

void add_assets(http::Router& router) { router.add(http::Method::get, "/ui/{name}", http::Access::open, asset); }

void set_security(http::Fields& fields) {
  fields.set("Content-Security-Policy",
             "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  fields.set("X-Content-Type-Options", "nosniff");
  fields.set("Referrer-Policy", "no-referrer");
}

}  // namespace chorus::ui
