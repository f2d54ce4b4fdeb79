#include "http/api/parameters/parameters.hpp"
#include "http/openapi/operation.hpp"

namespace chorus::http::openapi {
namespace {

using enum Method;
using enum ProblemCode;

constexpr Field timeout{"timeout_ms", Type::integer, "30000 unless given, 600000 at most"};

std::vector<Field> where() {
  return {{"shard", Type::integer, "only this one, at its owner; all of them unless given"}, timeout};
}

std::vector<Field> piece() {
  return {{"offset", Type::integer, "with a shard: the body is a piece of its push that begins at this byte"},
          {"of", Type::integer, "with an offset: the bytes of the whole push"}};
}

std::vector<Field> pulled() {
  return {{"Parameter-Version", Type::integer, "how often the values have changed; of several shards the lowest", true},
          {"Parameter-Epoch", Type::integer, "of the placement", true},
          {"Parameter-Unconfirmed", Type::boolean,
           "of a pull: an owner's lease at the coordinator is over, and somebody else may have newer values"}};
}

std::vector<Field> tagged() {
  auto fields = pulled();
  fields.push_back({"ETag", Type::text, "epoch.version, of several shards joined", true});
  return fields;
}

std::vector<Field> push_fields() {
  return {{"Chorus-Client", Type::text, "who pushes"},
          {"Chorus-Sequence", Type::integer, "of this client's pushes, from 0: one is applied once"},
          {"Chorus-Clock", Type::integer, "of this client's pushes, where staleness is bounded"},
          {"Chorus-Incarnation", Type::text, "16 hexadecimal digits: a client that begins anew draws another one"},
          {"Tensor-Dtype", Type::text, "of the gradient, where it is not the parameter's"},
          {"Chorus-Gradient-Norm", Type::text, "of the whole gradient, where this is a part of it"},
          {"Chorus-Compression", Type::text, "f16, bf16, top_k, two_bit, int8"}};
}

Field rows_field() { return {"Chorus-Rows", Type::integer, "how many rows", true}; }

// length_mismatch: the parameter was deleted and made anew with another size.
Operation& can_fail(Operation& operation) {
  return operation.fails_with(
      {unknown_parameter, misdirected, parameter_lost, deadline_exceeded, length_mismatch, unsupported});
}

Operation& can_fail_to_push(Operation& push) {
  return can_fail(push).fails_with(
      {epoch_fenced, out_of_order, mismatch, non_finite, digest_mismatch, unsupported_media_type, invalid_field});
}

}  // namespace

void add_parameter_data_operations(Table& table) {
  table.add(get, "/v1/parameters", Access::read, "The shards that this worker has")
      .paged()
      .gives<api::ShardStatusList>(200, "A page of them.");
  table.add(get, "/v1/parameters/{name}", Access::read, "A parameter, as the coordinator told this worker")
      .asks({timeout})
      .gives<api::Parameter>(200, "It.")
      .fails_with({unknown_parameter, parameter_lost});
  auto part = tagged();
  part.push_back({"Content-Range", Type::text, "which part", true});
  auto& pull =
      table.add(get, "/v1/parameters/{name}/value", Access::read, "Pull: the values, little-endian and row-major");
  pull.asks(where())
      .asks({{"min_version", Type::integer, "wait for it"},
             {"hold", Type::text,
              "by this reader, of a shard: its version is kept for pulls of parts of it with If-Match"},
             {"release", Type::text, "with If-Match: this reader lets go of the version that was kept"}})
      .reads_headers({{"Range", Type::text, "bytes=a-b"},
                      {"If-Range", Type::text, "a tag: all of them, where they are not those with this tag any more"},
                      {"If-None-Match", Type::text, "304 if it has one of these tags"},
                      {"Chorus-Clock", Type::integer, "wait for what a reader at this clock is to see"}})
      .gives(200, "All of them.", {{octets_media}}, tagged())
      .gives(206, "The range.", {{octets_media}}, part)
      .gives_nothing(304, "They have not changed.", tagged())
      .fails_with({range_not_satisfiable, precondition_failed});
  can_fail(pull);

  auto acknowledged = tagged();
  acknowledged.push_back({"Chorus-Next-Sequence", Type::integer, "of this client", true});
  acknowledged.push_back({"Chorus-Duplicate", Type::boolean, "it had been applied before", true});
  can_fail_to_push(table.add(put, "/v1/parameters/{name}/value", Access::submit, "Set the values")
                       .takes_octets()
                       .asks(where())
                       .asks(piece())
                       .reads_headers(push_fields())
                       .gives(202, "The piece is kept until the rest of the push has come.", {{json_media}})
                       .gives<api::PushAnswer>(200, "They are set.", acknowledged))
      .fails_with({length_required});
  can_fail_to_push(table.add(post, "/v1/parameters/{name}/gradient", Access::submit, "Push a gradient")
                       .takes_octets()
                       .asks(where())
                       .asks(piece())
                       .reads_headers(push_fields())
                       .gives(202, "The piece is kept until the rest of the push has come.", {{json_media}})
                       .gives<api::PushAnswer>(200, "It is applied.", acknowledged))
      .fails_with({length_required});
  can_fail_to_push(
      table.add(post, "/v1/parameters/{name}/push_pull", Access::submit, "Push a gradient and pull the values after it")
          .takes_octets()
          .asks(where())
          .reads_headers(push_fields())
          .gives(200, "The values.", {{octets_media}}, acknowledged))
      .fails_with({length_required});
  auto& rows = table.add(post, "/v1/parameters/{name}/rows", Access::read,
                         "Pull rows: the body has their numbers, 8 bytes each");
  rows.takes_octets()
      .asks(where())
      .asks({{"min_version", Type::integer, "wait for it"}})
      .reads_headers({rows_field(), {"Chorus-Clock", Type::integer, "wait for what a reader at this clock is to see"}})
      .gives(200, "The rows.", {{octets_media}}, pulled())
      .fails_with({unsupported_media_type, length_required, invalid_field});
  can_fail(rows);
  can_fail_to_push(table
                       .add(post, "/v1/parameters/{name}/rows/gradient", Access::submit,
                            "Push the gradients of rows: their numbers, then their gradients")
                       .takes_octets()
                       .asks(where())
                       .asks(piece())
                       .reads_headers({rows_field()})
                       .reads_headers(push_fields())
                       .gives(202, "The piece is kept until the rest of the push has come.", {{json_media}})
                       .gives<api::PushAnswer>(200, "They are applied.", acknowledged))
      .fails_with({length_required, rows_exhausted});
}

}  // namespace chorus::http::openapi
