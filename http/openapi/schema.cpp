#include "http/openapi/schema.hpp"

#include <boost/json/array.hpp>

#include "http/json/codec.hpp"
#include "http/json/problem_text.hpp"

namespace chorus::http::openapi {
namespace {

namespace json = boost::json;
using codec::Shape;
using codec::TypeCodec;

// The struct of a problem on the wire has another name than "Problem".
TypeCodec const& on_the_wire(TypeCodec const& type) {
  return type.shape == Shape::problem ? problem_text_codec() : type;
}

std::string_view name_of(TypeCodec const& object) {
  return &object == &problem_text_codec() ? std::string_view("Problem") : object.name;
}

json::object reference(TypeCodec const& object) {
  return {{"$ref", "#/components/schemas/" + std::string(name_of(object))}};
}

json::object schema_of(TypeCodec const& type);

// An absent field is left out; an absent element of a list is null.
json::object element_schema(TypeCodec const& element) {
  auto schema = schema_of(element);
  if (element.shape != Shape::optional) return schema;
  return {{"anyOf", json::array{std::move(schema), json::object{{"type", "null"}}}}};
}

json::object schema_of(TypeCodec const& type) {
  switch (type.shape) {
    case Shape::boolean:
      return {{"type", "boolean"}};
    case Shape::integer:
      return {{"type", "integer"}, {"minimum", type.integer_min}, {"maximum", type.integer_max}};
    case Shape::real:
      return {{"type", "number"}};
    case Shape::text:
      return {{"type", "string"}};
    case Shape::optional:
      return schema_of(*type.element);
    case Shape::list:
      return {{"type", "array"}, {"items", element_schema(*type.element)}};
    case Shape::object:
    case Shape::problem:
      break;
  }
  auto object = reference(on_the_wire(type));
  if (!type.may_be_text) return object;
  return {{"anyOf", json::array{json::object{{"type", "string"}}, std::move(object)}}};
}

json::object object_schema(TypeCodec const& object, bool is_requested) {
  json::object properties;
  json::array required;
  for (std::size_t i = 0; i < object.fields_count; ++i) {
    auto const& field = object.fields[i];
    properties[field.name] = schema_of(*field.type);
    if (field.required || (!is_requested && field.type->shape != Shape::optional))
      required.push_back(json::string(field.name));
  }
  json::object schema{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

}  // namespace

void Schemas::collect(TypeCodec const& given, Use use) {
  auto const& type = on_the_wire(given);
  if (type.element != nullptr) return collect(*type.element, use);
  if (type.shape != Shape::object) return;
  auto const name = name_of(type);
  auto const is_new = objects_.emplace(name, &type).second;
  auto const is_newly_requested = use == Use::request && requested_.insert(name).second;
  if (!is_new && !is_newly_requested) return;
  for (std::size_t i = 0; i < type.fields_count; ++i) collect(*type.fields[i].type, use);
}

json::object Schemas::refer(TypeCodec const& message, Use use) {
  collect(message, use);
  return reference(on_the_wire(message));
}

json::object Schemas::all() const {
  json::object schemas;
  for (auto const& [name, object] : objects_) schemas[name] = object_schema(*object, requested_.contains(name));
  return schemas;
}

}  // namespace chorus::http::openapi
