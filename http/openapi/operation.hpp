// The operations of the services: one entry per method, pattern and service, hand-written in operations_*.cpp. The
// schemas of their messages come from the tables that read and write messages.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "http/json/message_table.hpp"
#include "http/json/problem.hpp"
#include "http/message/access.hpp"
#include "http/message/message.hpp"
#include "http/openapi/document.hpp"

namespace chorus::http::openapi {

[[nodiscard]] std::string_view name(Service service);

enum class Type : std::uint8_t { text, integer, boolean };

// A query parameter or a header field.
struct Field {
  std::string_view name;
  Type type = Type::text;
  std::string_view meaning;
  bool required = false;
};

inline constexpr std::string_view json_media = "application/json";
inline constexpr std::string_view octets_media = "application/octet-stream";
inline constexpr std::string_view text_media = "text/plain";

// A body: a message, other JSON, or bytes that the document does not describe.
struct Payload {
  std::string_view media;
  codec::TypeCodec const* message = nullptr;
};

struct Answer {
  unsigned status = 200;
  std::string_view meaning;
  std::vector<Payload> payloads;  // alternatives; none: no body
  std::vector<Field> headers;     // required ones are in every such answer
};

struct Operation {
  Service service;
  Method method;
  std::string_view path;  // the router's pattern
  Access access;
  std::string_view summary;
  std::vector<Payload> requests;
  bool body_required = true;
  std::vector<Field> query;
  std::vector<Field> headers;
  std::vector<Answer> answers;
  std::vector<ProblemCode> problems;  // its own; the document adds those of all operations

  template <class Message>
  Operation& takes() {
    requests.push_back({json_media, &table_of<Message>()});
    return *this;
  }
  Operation& takes_octets() {
    requests.push_back({octets_media});
    return *this;
  }
  Operation& body_may_be_absent() {
    body_required = false;
    return *this;
  }
  template <class Message>
  Operation& gives(unsigned status, std::string_view meaning, std::vector<Field> fields = {}) {
    answers.push_back({status, meaning, {{json_media, &table_of<Message>()}}, std::move(fields)});
    return *this;
  }
  Operation& gives(unsigned status, std::string_view meaning, std::vector<Payload> payloads,
                   std::vector<Field> fields = {}) {
    answers.push_back({status, meaning, std::move(payloads), std::move(fields)});
    return *this;
  }
  Operation& gives_nothing(unsigned status, std::string_view meaning, std::vector<Field> fields = {}) {
    return gives(status, meaning, {}, std::move(fields));
  }
  Operation& asks(std::vector<Field> parameters) {
    query.insert(query.end(), parameters.begin(), parameters.end());
    return *this;
  }
  Operation& reads_headers(std::vector<Field> fields) {
    headers.insert(headers.end(), fields.begin(), fields.end());
    return *this;
  }
  Operation& paged() {
    return asks({{"limit", Type::integer, "items of a page, 1 to 1000; 100 unless given"},
                 {"cursor", Type::text, "the next_cursor of the page before"}});
  }
  Operation& fails_with(std::initializer_list<ProblemCode> codes) {
    problems.insert(problems.end(), codes);
    return *this;
  }
};

// Collects the operations of one service.
class Table {
 public:
  explicit Table(Service service) : service_(service) {}
  // Returns the new operation; the reference is valid until the next add().
  Operation& add(Method method, std::string_view path, Access access, std::string_view summary) {
    return operations_.emplace_back(Operation{service_, method, path, access, summary, {}, true, {}, {}, {}, {}});
  }
  [[nodiscard]] std::vector<Operation> take() && { return std::move(operations_); }

 private:
  Service service_;
  std::vector<Operation> operations_;
};

void add_common_operations(Table& table);
void add_parameter_data_operations(Table& table);  // of workers
void add_member_operations(Table& table);          // of workers, for members and the coordinator

[[nodiscard]] std::vector<Operation> coordinator_operations();
[[nodiscard]] std::vector<Operation> worker_operations();

}  // namespace chorus::http::openapi
