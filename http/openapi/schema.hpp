// JSON Schema (2020-12) of messages, made from the tables that read and write them.
#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "http/json/message_table.hpp"

namespace chorus::http::openapi {

// Collects the messages of a document and all structs that they contain. A value of one thread.
class Schemas {
 public:
  // A request may leave out fields with defaults; an answer has every field that is not optional. A struct of both has
  // the schema of requests.
  enum class Use : bool { answer, request };

  // Returns a reference to the schema: {"$ref":"#/components/schemas/Group"}.
  boost::json::object refer(codec::TypeCodec const& message, Use use);
  // Returns all schemas by name. Call it after the last refer().
  [[nodiscard]] boost::json::object all() const;

 private:
  void collect(codec::TypeCodec const& type, Use use);

  std::map<std::string_view, codec::TypeCodec const*> objects_;
  std::set<std::string_view> requested_;
};

}  // namespace chorus::http::openapi
