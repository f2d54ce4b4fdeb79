// Reads line by line and word by word. The first failure is kept, and the reading ends after its line.
#include <algorithm>
#include <charconv>
#include <concepts>
#include <optional>

#include "collectives/core/errc.hpp"
#include "collectives/plan/text/text.hpp"

namespace chorus::plan {
namespace {

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// Reader of one line. After a failure every function returns a harmless value, and the line counts as done.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) { skip_blanks(); }

  [[nodiscard]] bool done() const { return rest_.empty(); }
  [[nodiscard]] std::string_view peek() const { return rest_.substr(0, rest_.find(' ')); }
  [[nodiscard]] std::string const& failure() const { return failure_; }

  void require(bool condition, std::string_view otherwise) {
    if (condition || !failure_.empty()) return;
    failure_ = otherwise;
    rest_ = {};
  }

  std::string_view word() {
    auto const word = peek();
    require(!word.empty(), "the line ends too early");
    rest_.remove_prefix(word.size());
    skip_blanks();
    return word;
  }

  bool accept(std::string_view expected) {
    if (peek() != expected) return false;
    word();
    return true;
  }

  void expect(std::string_view expected) {
    auto const found = peek();
    if (!accept(expected)) require(false, "expected " + quoted(expected) + ", found " + quoted(found));
  }

  // Parses all of `text` as digits.
  template <std::unsigned_integral T = std::uint32_t>
  T number_in(std::string_view text, int base = 10) {
    T value{};
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    bool const whole = error == std::errc{} && end == text.data() + text.size();
    require(whole, quoted(text) + " is not a number that fits here");
    return whole ? value : T{};
  }

  template <std::unsigned_integral T = std::uint32_t>
  T number(int base = 10) {
    return number_in<T>(word(), base);
  }

  // Reads a word such as "ranks=8".
  std::uint32_t value_of(std::string_view key) {
    auto text = word();
    bool const fits = text.starts_with(key) && text.substr(key.size()).starts_with('=');
    require(fits, "expected '" + std::string(key) + "=', found " + quoted(text));
    return fits ? number_in(text.substr(key.size() + 1)) : 0;
  }

  // Reads a word such as "shape=2,4"; returns an empty list, and reads nothing, if another key follows.
  std::vector<std::uint32_t> list_of(std::string_view key) {
    std::vector<std::uint32_t> list;
    if (!peek().starts_with(key) || !peek().substr(key.size()).starts_with('=')) return list;
    auto text = word();
    for (text.remove_prefix(key.size() + 1); !text.empty();) {
      auto const part = text.substr(0, text.find(','));
      list.push_back(number_in(part));
      text.remove_prefix(std::min(part.size() + 1, text.size()));
    }
    return list;
  }

  template <class Enum>
  Enum one_of(std::string_view text, std::size_t count, std::string_view kind) {
    for (std::size_t i = 0; i < count; ++i)
      if (name(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
    require(false, quoted(text) + " is not " + std::string(kind));
    return Enum{};
  }

  // Reads a word such as "output[2]", "output[0:4]" or "output[0:4:2]".
  Slice slice() {
    auto const text = word();
    auto const open = std::min(text.find('['), text.size());
    auto const buffer = one_of<Buffer>(text.substr(0, open), 3, "a slice such as output[2]");
    bool const closed = text.size() > open && text.back() == ']';
    require(closed, quoted(text) + " is not a slice such as output[2]");
    auto inside = closed ? text.substr(open + 1, text.size() - open - 2) : std::string_view{};
    auto const next = [&] {
      auto const part = inside.substr(0, inside.find(':'));
      inside.remove_prefix(std::min(part.size() + 1, inside.size()));
      return number_in(part);
    };
    auto slice = Slice{buffer, next()};
    if (!inside.empty()) slice.count = next();
    if (!inside.empty()) slice.stride = next();
    require(inside.empty() && slice.count > 0 && slice.stride > 0,
            quoted(text) + " is not a slice such as output[0:4:2]");
    if (slice.count == 1) slice.stride = 1;
    return slice;
  }

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  std::string_view rest_;
  std::string failure_;
};

class Parser {
 public:
  // Reads one line. Returns the failure, or an empty text.
  std::string read(std::string_view text_line) {
    Line line(text_line);
    if (line.done()) return {};
    if (lines_ == 0) {
      read_spec(line);
    } else if (lines_ == 1) {
      read_rank(line);
    } else if (line.accept("channel")) {
      read_channel(line);
    } else if (line.accept("round")) {
      read_round(line);
    } else {
      read_instruction(line);
    }
    line.require(line.done(), "unexpected " + quoted(line.peek()));
    ++lines_;
    return line.failure();
  }

  [[nodiscard]] bool has_rank() const { return lines_ >= 2; }

  Program finish() {
    program_.round_begin.push_back(size());
    return std::move(program_);
  }

 private:
  void read_spec(Line& line) {
    line.expect("plan");
    auto& spec = program_.spec;
    auto const op = parse_op(line.word());
    line.require(op.has_value(), "this is not an operation");
    spec.op = op.value_or(Op::all_reduce);
    spec.algorithm = line.word();
    spec.ranks = line.value_of("ranks");
    spec.root = line.value_of("root");
    spec.arity = line.value_of("arity");
    spec.in_place = line.accept("in_place");
    if (!spec.in_place) line.expect("out_of_place");
    spec.shape = line.list_of("shape");
    spec.by_position = line.list_of("by_position");
    if (auto const status = check(spec); status.has_error()) line.require(false, status.error().detail);
  }

  void read_rank(Line& line) {
    line.expect("rank");
    program_.rank = line.number();
    line.expect("chunks");
    program_.chunks = line.number();
    line.expect("scratch");
    program_.scratch_chunks = line.number();
    if (line.accept("coded_from")) program_.coded_from = line.number();
    program_.rooted = line.accept("rooted");
    program_.equal_chunks = line.accept("equal");
    program_.adds_one_by_one = line.accept("one_by_one");
    line.require(program_.rank < program_.spec.ranks, "there is no such rank");
    line.require(program_.chunks > 0, "there is at least one chunk");
    line.require(!has_blocks(program_.spec.op) || program_.chunks % program_.spec.ranks == 0,
                 "there are as many chunks for every rank");
    if (!line.failure().empty()) return;
    auto const held = memory(program_.spec, program_.rank, program_.chunks);
    program_.input = held.input;
    program_.output = held.output;
  }

  void read_channel(Line& line) {
    line.require(program_.round_begin.empty(), "channels stand before the rounds");
    Channel channel;
    channel.peer = read_peer(line);
    line.require(program_.channels.empty() || program_.channels.back().peer < channel.peer,
                 "channels are sorted by peer");
    line.expect("sends");
    channel.sends = line.number();
    channel.send_digest = line.number<std::uint64_t>(16);
    line.expect("receives");
    channel.receives = line.number();
    channel.receive_digest = line.number<std::uint64_t>(16);
    program_.channels.push_back(channel);
  }

  void read_round(Line& line) {
    line.require(line.number() == program_.round_begin.size(), "rounds are numbered from 0");
    program_.round_begin.push_back(size());
  }

  void read_instruction(Line& line) {
    line.require(!program_.round_begin.empty(), "expected 'channel' or 'round', found " + quoted(line.peek()));
    line.require(line.number() == size(), "instructions are numbered from 0");
    Instruction instruction;
    instruction.op = line.one_of<Opcode>(line.word(), 5, "an opcode");
    read_slices(line, instruction);
    if (instruction.op == Opcode::send || instruction.receives()) {
      line.expect(instruction.op == Opcode::send ? "to" : "from");
      instruction.peer = read_peer(line);
      line.expect("message");
      instruction.message = line.number();
    }
    if (line.accept("lane")) instruction.lane = line.number<std::uint16_t>();
    if (line.accept("wide_operand")) instruction.flags |= wide_operand_flag;
    if (line.accept("wide_result")) instruction.flags |= wide_result_flag;
    if (line.accept("partial_operand")) instruction.flags |= partial_operand_flag;
    if (line.accept("partial_other")) instruction.flags |= partial_other_flag;
    if (line.accept("final")) instruction.flags |= final_flag;
    if (line.accept("after")) read_dependencies(line);
    program_.instructions.push_back(instruction);
    program_.dependency_begin.push_back(static_cast<std::uint32_t>(program_.dependencies.size()));
  }

  void read_slices(Line& line, Instruction& instruction) {
    std::optional<Slice> src, dst;
    if (instruction.reads_src()) src = line.slice();
    if (instruction.writes_dst()) {
      line.expect("into");
      dst = line.slice();
    }
    auto const& shape = src ? *src : *dst;
    line.require(!dst || (dst->count == shape.count && dst->stride == shape.stride),
                 "both slices of an instruction have one shape");
    instruction.chunks = shape.count;
    instruction.stride = shape.stride;
    if (src) {
      instruction.src = src->buffer;
      instruction.src_chunk = src->chunk;
    }
    if (dst) {
      instruction.dst = dst->buffer;
      instruction.dst_chunk = dst->chunk;
    }
    line.require((!src || in_bounds(program_, src->buffer, src->chunk, instruction)) &&
                     (!dst || in_bounds(program_, dst->buffer, dst->chunk, instruction)),
                 "a slice lies outside its buffer");
  }

  void read_dependencies(Line& line) {
    do {
      auto word = line.word();
      auto const segmentwise = word.ends_with('~');
      if (segmentwise) word.remove_suffix(1);
      auto const instruction = line.number_in(word);
      line.require(instruction < size(), "an instruction waits only for earlier ones");
      program_.dependencies.push_back({instruction, segmentwise});
    } while (!line.done());
  }

  Rank read_peer(Line& line) const {
    auto const peer = line.number();
    line.require(peer < program_.spec.ranks && peer != program_.rank, "the peer is not another rank");
    return peer;
  }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(program_.instructions.size()); }

  Program program_{.round_begin = {}, .dependency_begin = {0}};
  std::size_t lines_ = 0;  // number of lines that are not empty
};

}  // namespace

Result<Program> parse_text(std::string_view text) {
  Parser parser;
  auto number = std::size_t{1};
  auto const malformed = [&](std::string const& why) {
    return Error(PlanErrc::malformed_text, "line " + std::to_string(number) + ": " + why);
  };
  for (; !text.empty(); ++number) {
    auto const line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (auto const failure = parser.read(line); !failure.empty()) return malformed(failure);
  }
  if (!parser.has_rank()) return malformed("the text ends before the rank");
  return parser.finish();
}

}  // namespace chorus::plan
