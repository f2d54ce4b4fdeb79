// Converts the messages of http/api to JSON and back. Included only by the files that define messages.
//
// The templates below turn Boost.Describe's description of a struct into a constant table (TypeCodec). One reader and
// one writer, which are not templates, walk these tables. The reader receives the parser's events and stores each value
// in place. No document tree is built, so a hostile body costs no more memory than its own bytes.
//
// A message file describes its structs, names the required fields, and instantiates:
//   BOOST_DESCRIBE_STRUCT(LeaseRequest, (), (incarnation))
//   constexpr auto required(LeaseRequest const*) { return std::array{"incarnation"sv}; }
//   CHORUS_HTTP_MESSAGE(api::LeaseRequest)
// A struct for which may_be_text() is true may also be a string: see TypeCodec.
#pragma once

#include <algorithm>
#include <array>
#include <boost/describe/class.hpp>
#include <boost/describe/members.hpp>
#include <boost/mp11/list.hpp>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/json/json.hpp"
#include "http/json/message_table.hpp"

namespace chorus::http::codec {

enum class Shape : std::uint8_t { boolean, integer, real, text, optional, list, object, problem };

struct FieldCodec;

// Describes a type to the reader and the writer. Only the members that belong to its shape are set.
struct TypeCodec {
  Shape shape;
  std::uint64_t integer_max = 0;
  std::int64_t integer_min = 0;  // below 0: the type is signed, and the functions below pass its two's complement
  void (*store_integer)(void* integer, std::uint64_t value) = nullptr;
  std::uint64_t (*load_integer)(void const* integer) = nullptr;
  TypeCodec const* element = nullptr;       // list or optional: type of the elements; an optional has at most one
  void* (*add)(void* container) = nullptr;  // appends a default element; valid until the next one
  void (*clear)(void* container) = nullptr;
  std::size_t (*size)(void const* container) = nullptr;
  void const* (*at)(void const* container, std::size_t index) = nullptr;
  FieldCodec const* fields = nullptr;  // object: its fields
  std::size_t fields_count = 0;
  std::string_view name = {};  // object: name of the struct without namespaces
  // Object: a string in its place is the value of the first field, which is a text, and the others are absent. So it is
  // written if they are.
  bool may_be_text = false;
};

struct FieldCodec {
  std::string_view name;
  bool required;
  TypeCodec const* type;
  void* (*locate)(void* object);
};

inline constexpr std::size_t fields_max = 64;  // the reader notes the fields that it has seen in the bits of one word

template <class T>
struct CodecOf;
template <class T>
inline constexpr TypeCodec codec = CodecOf<T>::make();

constexpr std::array<std::string_view, 0> required(void const*) { return {}; }
constexpr bool may_be_text(void const*) { return false; }

// Returns "Group" for chorus::api::Group. GCC writes "[with T = chorus::api::Group; ...]", Clang writes
// "[T = chorus::api::Group]".
template <class T>
constexpr std::string_view unqualified_name() {
  std::string_view const function = __PRETTY_FUNCTION__;
  auto const begin = function.find("T = ") + 4;
  auto const name = function.substr(begin, function.find_first_of(";]", begin) - begin);
  return name.substr(name.rfind(':') + 1);
}

template <>
struct CodecOf<bool> {
  static constexpr TypeCodec make() { return {.shape = Shape::boolean}; }
};
template <>
struct CodecOf<double> {
  static constexpr TypeCodec make() { return {.shape = Shape::real}; }
};
template <>
struct CodecOf<std::string> {
  static constexpr TypeCodec make() { return {.shape = Shape::text}; }
};
template <>
struct CodecOf<Problem> {
  static constexpr TypeCodec make() { return {.shape = Shape::problem}; }
};

template <std::unsigned_integral T>
struct CodecOf<T> {
  static void store(void* integer, std::uint64_t value) { *static_cast<T*>(integer) = static_cast<T>(value); }
  static std::uint64_t load(void const* integer) { return *static_cast<T const*>(integer); }
  static constexpr TypeCodec make() {
    return {.shape = Shape::integer,
            .integer_max = std::numeric_limits<T>::max(),
            .store_integer = &store,
            .load_integer = &load};
  }
};

template <std::signed_integral T>
struct CodecOf<T> {
  static void store(void* integer, std::uint64_t value) { *static_cast<T*>(integer) = static_cast<T>(value); }
  static std::uint64_t load(void const* integer) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(*static_cast<T const*>(integer)));
  }
  static constexpr TypeCodec make() {
    return {.shape = Shape::integer,
            .integer_max = static_cast<std::uint64_t>(std::numeric_limits<T>::max()),
            .integer_min = std::numeric_limits<T>::min(),
            .store_integer = &store,
            .load_integer = &load};
  }
};

template <class T>
struct CodecOf<std::optional<T>> {
  static void* add(void* container) { return &static_cast<std::optional<T>*>(container)->emplace(); }
  static void clear(void* container) { static_cast<std::optional<T>*>(container)->reset(); }
  static std::size_t size(void const* container) {
    return static_cast<std::optional<T> const*>(container)->has_value();
  }
  static void const* at(void const* container, std::size_t) {
    return &**static_cast<std::optional<T> const*>(container);
  }
  static constexpr TypeCodec make() {
    return {.shape = Shape::optional, .element = &codec<T>, .add = &add, .clear = &clear, .size = &size, .at = &at};
  }
};

template <class T>
struct CodecOf<std::vector<T>> {
  static void* add(void* container) { return &static_cast<std::vector<T>*>(container)->emplace_back(); }
  static void clear(void* container) { static_cast<std::vector<T>*>(container)->clear(); }
  static std::size_t size(void const* container) { return static_cast<std::vector<T> const*>(container)->size(); }
  static void const* at(void const* container, std::size_t index) {
    return &(*static_cast<std::vector<T> const*>(container))[index];
  }
  static constexpr TypeCodec make() {
    return {.shape = Shape::list, .element = &codec<T>, .add = &add, .clear = &clear, .size = &size, .at = &at};
  }
};

// Finds may_be_text() in the namespace of the struct.
template <class T>
constexpr bool may_be_text_of(T const* type) {
  return may_be_text(type);
}

template <class T>
requires boost::describe::has_describe_members<T>::value struct CodecOf<T> {
  using Members = boost::describe::describe_members<T, boost::describe::mod_public>;

  template <class Member>
  static void* locate(void* object) {
    return &(static_cast<T*>(object)->*Member::pointer);
  }
  template <class Member>
  static constexpr FieldCodec field() {
    using Value = std::remove_cvref_t<decltype(std::declval<T&>().*Member::pointer)>;
    constexpr auto names = required(static_cast<T const*>(nullptr));
    return {Member::name, std::find(names.begin(), names.end(), std::string_view(Member::name)) != names.end(),
            &codec<Value>, &locate<Member>};
  }
  template <template <class...> class List, class... Member>
  static constexpr auto make_fields(List<Member...>) {
    return std::array<FieldCodec, sizeof...(Member)>{field<Member>()...};
  }
  static constexpr auto fields = make_fields(Members());
  static_assert(fields.size() <= fields_max);
  static_assert(std::count_if(fields.begin(), fields.end(), [](FieldCodec const& f) { return f.required; }) ==
                    static_cast<std::ptrdiff_t>(required(static_cast<T const*>(nullptr)).size()),
                "required() names a field that the struct does not have");

  static constexpr TypeCodec make() {
    return {.shape = Shape::object,
            .fields = fields.data(),
            .fields_count = fields.size(),
            .name = unqualified_name<T>(),
            .may_be_text = codec::may_be_text_of(static_cast<T const*>(nullptr))};
  }
};

// The reader and the writer. `message` points to a value of the codec's type.
[[nodiscard]] std::optional<Problem> read(TypeCodec const& type, void* message, std::string_view body,
                                          UnknownFields unknown, std::size_t limit_bytes);
void write(TypeCodec const& type, void const* message, std::string& out);

inline constexpr std::size_t usual_bytes = 1024;  // memory that encode() reserves for a message

}  // namespace chorus::http::codec

namespace chorus::http {

template <class Message>
Checked<Message> decode(std::string_view body, UnknownFields unknown) {
  Message message;
  auto const limit_bytes = unknown == UnknownFields::refuse ? json_limit_bytes : json_answer_limit_bytes;
  auto problem = codec::read(codec::codec<Message>, &message, body, unknown, limit_bytes);
  if (problem) return std::move(*problem);
  return message;
}

template <class Message>
std::string encode(Message const& message) {
  std::string out;
  out.reserve(codec::usual_bytes);
  codec::write(codec::codec<Message>, &message, out);
  return out;
}

template <class Message>
codec::TypeCodec const& table_of() {
  return codec::codec<Message>;
}

}  // namespace chorus::http

#define CHORUS_HTTP_MESSAGE(M)                                                                                  \
  template ::chorus::http::Checked<M> chorus::http::decode<M>(std::string_view, ::chorus::http::UnknownFields); \
  template std::string chorus::http::encode<M>(M const&);                                                       \
  template ::chorus::http::codec::TypeCodec const& chorus::http::table_of<M>();
