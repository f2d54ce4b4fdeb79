#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <memory>

#include "collectives/core/nearest_name.hpp"
#include "http/json/codec.hpp"
#include "http/json/json_text.hpp"
#include "http/json/problem_text.hpp"

namespace chorus::http::codec {
namespace {

namespace json = boost::json;
using json::error_code;
using json::string_view;

constexpr std::size_t errors_max = 16;
constexpr std::size_t quoted_bytes = 40;

std::string expectation(TypeCodec const& type) {
  switch (type.shape) {
    case Shape::boolean:
      return "true or false";
    case Shape::integer:
      return "an integer from " + std::to_string(type.integer_min) + " to " + std::to_string(type.integer_max);
    case Shape::real:
      return "a number";
    case Shape::text:
      return "a string";
    case Shape::optional:
      return expectation(*type.element);
    case Shape::list:
      return "an array";
    case Shape::object:
      if (type.may_be_text) return "a string or an object";
      [[fallthrough]];
    case Shape::problem:
      return "an object";
  }
  return "";
}

std::string quoted(std::string_view text) {
  std::string out;
  append_quoted(out, text.substr(0, quoted_bytes));
  if (text.size() > quoted_bytes) out += "...";
  return out;
}

// Receives the parser's events. A callback that returns false ends the parse; `duplicate_` then says why.
class Reader {
 public:
  // Limits of the parser itself; the body's size is limited before it starts.
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = 4096;
  static constexpr std::size_t max_string_size = std::size_t(-1);

  Reader(TypeCodec const& type, void* message, UnknownFields unknown) : root_{&type, message}, unknown_(unknown) {}

  [[nodiscard]] std::optional<FieldError> const& duplicate() const { return duplicate_; }
  [[nodiscard]] std::vector<FieldError> take_errors() { return std::move(errors_); }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return begin(Shape::object); }
  bool on_array_begin(error_code&) { return begin(Shape::list); }
  bool on_object_end(std::size_t, error_code&) { return end(); }
  bool on_array_end(std::size_t, error_code&) { return end(); }
  bool on_key_part(string_view part, std::size_t, error_code&) { return collect(part); }
  bool on_key(string_view part, std::size_t, error_code&) {
    bool const goes_on = skipped_depth_ > 0 || key(whole(part));
    text_.clear();
    return goes_on;
  }
  bool on_string_part(string_view part, std::size_t, error_code&) { return collect(part); }
  bool on_string(string_view part, std::size_t, error_code&) {
    return scalar([&](Slot slot) { store_text(slot, whole(part)); });
  }
  bool on_number_part(string_view part, error_code&) { return collect(part); }
  bool on_int64(std::int64_t value, string_view part, error_code&) {
    return scalar([&](Slot slot) { store_integer(slot, value >= 0, static_cast<std::uint64_t>(value), whole(part)); });
  }
  bool on_uint64(std::uint64_t value, string_view part, error_code&) {
    return scalar([&](Slot slot) { store_integer(slot, true, value, whole(part)); });
  }
  bool on_double(double value, string_view part, error_code&) {
    return scalar([&](Slot slot) { store_real(slot, value, whole(part)); });
  }
  bool on_bool(bool value, error_code&) {
    return scalar([&](Slot slot) {
      if (slot.type->shape == Shape::boolean)
        *static_cast<bool*>(slot.value) = value;
      else
        wrong(slot, value ? "true" : "false");
    });
  }
  bool on_null(error_code&) {
    return scalar(
        [&](Slot slot) {
          if (!slot.absent) wrong(slot, "null");
        },
        true);
  }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

 private:
  // Destination of the next value.
  struct Slot {
    TypeCodec const* type;
    void* value;
    bool absent = false;  // a null that makes an optional empty
  };
  // An open object or array.
  struct Frame {
    TypeCodec const* type;
    void* value;
    std::uint64_t seen = 0;             // bit per field of an object
    FieldCodec const* field = nullptr;  // current one; null: the key is unknown
    std::string_view key;               // of the current field
    std::size_t index = 0;       // of the current element of an array, or where the search for the next field starts
    Problem* problem = nullptr;  // receives `text` at the end
    std::unique_ptr<ProblemText> text;
  };

  bool collect(string_view part) {
    if (skipped_depth_ == 0) text_.append(part.data(), part.size());
    return true;
  }

  // Returns the whole text that ends with this part. Mostly the part is all of it, and nothing is copied.
  std::string_view whole(string_view part) {
    if (text_.empty()) return {part.data(), part.size()};
    text_.append(part.data(), part.size());
    return text_;
  }

  // Empty: the next value belongs to an unknown field.
  std::optional<Slot> next_slot(bool null) {
    Slot slot = root_;
    if (!frames_.empty()) {
      auto& top = frames_.back();
      if (top.type->shape == Shape::list) {
        slot = {top.type->element, top.type->add(top.value)};
      } else {
        if (top.field == nullptr) return std::nullopt;
        slot = {top.field->type, top.field->locate(top.value)};
      }
    }
    while (slot.type->shape == Shape::optional) {
      if (null) {
        slot.type->clear(slot.value);
        slot.absent = true;
        return slot;
      }
      slot = {slot.type->element, slot.type->add(slot.value)};
    }
    return slot;
  }

  template <class Store>
  bool scalar(Store store, bool null = false) {
    if (skipped_depth_ == 0) {
      if (auto const slot = next_slot(null)) store(*slot);
      value_ended();
    }
    text_.clear();
    return true;
  }

  void value_ended() {
    if (!frames_.empty() && frames_.back().type->shape == Shape::list) ++frames_.back().index;
  }

  bool begin(Shape shape) {
    if (skipped_depth_ > 0) return ++skipped_depth_, true;
    auto const slot = next_slot(false);
    auto const fits =
        slot && (slot->type->shape == shape || (shape == Shape::object && slot->type->shape == Shape::problem));
    if (!fits) {
      if (slot) wrong(*slot, shape == Shape::object ? "an object" : "an array");
      skipped_depth_ = 1;
      return true;
    }
    if (shape == Shape::list) slot->type->clear(slot->value);
    Frame frame{slot->type, slot->value};
    if (slot->type->shape == Shape::problem) {
      frame.problem = static_cast<Problem*>(slot->value);
      frame.text = std::make_unique<ProblemText>();
      frame.type = &problem_text_codec();
      frame.value = frame.text.get();
    }
    frames_.push_back(std::move(frame));
    return true;
  }

  bool end() {
    if (skipped_depth_ > 0) {
      if (--skipped_depth_ == 0) value_ended();
      return true;
    }
    auto& frame = frames_.back();
    for (std::size_t i = 0; i < frame.type->fields_count; ++i) {
      auto const& field = frame.type->fields[i];
      if (!field.required || (frame.seen >> i & 1) != 0) continue;
      frame.field = nullptr;
      frame.key = field.name;
      error("missing; expected " + expectation(*field.type));
    }
    if (frame.problem != nullptr) *frame.problem = from_text(std::move(*frame.text));
    frames_.pop_back();
    value_ended();
    return true;
  }

  // The search starts at the field after the last one, because senders mostly write the fields in the order of the
  // table.
  bool key(std::string_view name) {
    auto& frame = frames_.back();
    frame.field = nullptr;
    auto const fields = frame.type->fields_count;
    for (std::size_t k = 0; k < fields; ++k) {
      auto const i = (frame.index + k) % fields;
      auto const& field = frame.type->fields[i];
      if (field.name != name) continue;
      frame.index = i + 1;
      frame.field = &field;
      frame.key = field.name;
      if ((frame.seen >> i & 1) != 0) {
        duplicate_ = FieldError{pointer(), "the key is repeated"};
        return false;
      }
      frame.seen |= std::uint64_t(1) << i;
      return true;
    }
    // A problem may carry members of a later release.
    if (unknown_ == UnknownFields::refuse && frame.problem == nullptr && errors_.size() < errors_max) {
      frame.key = name;
      std::vector<std::string_view> known;
      for (std::size_t i = 0; i < frame.type->fields_count; ++i) known.push_back(frame.type->fields[i].name);
      auto const meant = nearest_name(name, known);
      error("unknown field" + (meant.empty() ? "" : "; did you mean " + quoted(meant) + "?"));
    }
    return true;
  }

  void store_text(Slot slot, std::string_view text) {
    if (slot.type->may_be_text) {
      auto const& first = slot.type->fields[0];
      slot = {first.type, first.locate(slot.value)};
    }
    if (slot.type->shape == Shape::text)
      *static_cast<std::string*>(slot.value) = text;
    else
      wrong(slot, quoted(text));
  }

  void store_integer(Slot slot, bool positive, std::uint64_t value, std::string_view written) {
    auto const fits =
        positive ? value <= slot.type->integer_max : static_cast<std::int64_t>(value) >= slot.type->integer_min;
    if (slot.type->shape == Shape::integer && fits)
      slot.type->store_integer(slot.value, value);
    else if (slot.type->shape == Shape::real)
      store_real(slot, positive ? static_cast<double>(value) : static_cast<double>(static_cast<std::int64_t>(value)),
                 written);
    else
      wrong(slot, written);
  }

  // The parser's own conversion may be wrong in the last place.
  void store_real(Slot slot, double approximate, std::string_view written) {
    double exact = 0;
    auto const [end, error] = std::from_chars(written.data(), written.data() + written.size(), exact);
    auto const value = error == std::errc() ? exact : approximate;
    if (slot.type->shape == Shape::real && std::isfinite(value))
      *static_cast<double*>(slot.value) = value;
    else
      wrong(slot, written);
  }

  void wrong(Slot slot, std::string_view found) {
    error("expected " + expectation(*slot.type) + ", found " + std::string(found.substr(0, 2 * quoted_bytes)));
  }

  void error(std::string detail) {
    if (errors_.size() < errors_max) errors_.push_back({pointer(), std::move(detail)});
  }

  [[nodiscard]] std::string pointer() const {
    std::string text;
    for (auto const& frame : frames_) {
      text += '/';
      if (frame.type->shape == Shape::list) {
        text += std::to_string(frame.index);
        continue;
      }
      for (char c : frame.key.substr(0, 2 * quoted_bytes))
        text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    }
    return text;
  }

  Slot root_;
  UnknownFields unknown_;
  std::vector<Frame> frames_;
  std::size_t skipped_depth_ = 0;  // open objects and arrays inside a skipped value
  std::string text_;               // of the key, string or number being parsed, without its last part
  std::vector<FieldError> errors_;
  std::optional<FieldError> duplicate_;
};

}  // namespace

std::optional<Problem> read(TypeCodec const& type, void* message, std::string_view body, UnknownFields unknown,
                            std::size_t limit_bytes) {
  if (body.size() > limit_bytes)
    return Problem(ProblemCode::payload_too_large, "the JSON body has " + std::to_string(body.size()) +
                                                       " bytes, at most " + std::to_string(limit_bytes) + " are read");
  json::parse_options options;
  options.max_depth = json_limit_depth;
  json::basic_parser<Reader> parser(options, type, message, unknown);
  error_code ec;
  auto const consumed = parser.write_some(false, body.data(), body.size(), ec);
  if (auto const& duplicate = parser.handler().duplicate()) {
    Problem problem(ProblemCode::malformed_json, "the key at " + duplicate->pointer + " is repeated");
    problem.errors.push_back(*duplicate);
    return problem;
  }
  auto const where = " at byte " + std::to_string(consumed);
  if (ec == json::error::too_deep)
    return Problem(ProblemCode::malformed_json,
                   "nested deeper than " + std::to_string(json_limit_depth) + " levels" + where);
  if (ec) return Problem(ProblemCode::malformed_json, "not JSON" + where + ": " + ec.message());
  if (consumed != body.size()) return Problem(ProblemCode::malformed_json, "not JSON" + where + ": text after the end");
  auto errors = parser.handler().take_errors();
  if (errors.empty()) return std::nullopt;
  auto const& first = errors.front();
  Problem problem(ProblemCode::invalid_field,
                  (first.pointer.empty() ? "the body" : first.pointer) + ": " + first.detail);
  problem.errors = std::move(errors);
  return problem;
}

}  // namespace chorus::http::codec
