#include "http/server/response_head.hpp"

#include <boost/beast/http/status.hpp>

#include "http/wire/header_text.hpp"

namespace chorus::http {
namespace {

void append_status_line(std::string& head, unsigned status) {
  auto const reason = boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
  head += "HTTP/1.1 ";
  head += std::to_string(status);
  head += ' ';
  head += std::string_view(reason.data(), reason.size());
  head += "\r\n";
}

}  // namespace

bool has_no_body(unsigned status) { return status / 100 == 1 || status == 204 || status == 304; }

std::span<std::byte const> content_of(Response const& response) {
  if (!response.payload.bytes.empty()) return response.payload.bytes;
  return std::as_bytes(std::span(response.body));
}

bool is_open_ended(Response const& response) { return response.stream && !response.stream_length; }

void write_head(std::string& head, Response const& response, std::string_view date, bool old_version, bool keep_alive) {
  head.clear();
  append_status_line(head, response.status);
  for (auto const& [name, value] : response.fields) append_field(head, name, value);
  if (is_open_ended(response)) {
    if (!old_version) append_field(head, "Transfer-Encoding", "chunked");
    if (!keep_alive) append_field(head, "Connection", "close");
  } else if (response.status != 101) {
    auto const content = response.stream_length.value_or(content_of(response).size());
    auto const bytes = response.head_length.value_or(content);
    if (!has_no_body(response.status)) append_field(head, "Content-Length", std::to_string(bytes));
    if (!has_no_body(response.status) && !response.fields.find("Content-Type") && bytes > 0)
      append_field(head, "Content-Type", "application/octet-stream");
    if (!keep_alive)
      append_field(head, "Connection", "close");
    else if (old_version)
      append_field(head, "Connection", "keep-alive");
  }
  append_field(head, "Date", date);
  append_field(head, "Server", "chorus");
  head += "\r\n";
}

}  // namespace chorus::http
