// JSON Schema (2020-12) of messages, from the tables that read and write them.
#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "http/json/message_table.hpp"

namespace chorus::http::openapi {

// Collects the messages of a document and everything that they contain.
class Schemas {
 public:
  // What is asked for may leave out what has a default; in an answer everything is there that is not optional. What
  // travels both ways is as in requests.
  enum class Use : bool { answer, request };

  // {"$ref":"#/components/schemas/Group"}
  boost::json::object refer(codec::TypeCodec const& message, Use use);
  // By name. Call after the last refer().
  [[nodiscard]] boost::json::object all() const;

 private:
  void collect(codec::TypeCodec const& type, Use use);

  std::map<std::string_view, codec::TypeCodec const*> objects_;
  std::set<std::string_view> requested_;
};

}  // namespace chorus::http::openapi
