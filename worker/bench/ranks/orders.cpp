#include "worker/bench/ranks/orders.hpp"

#include "worker/bench/ranks/options.hpp"

namespace chorus::bench {
namespace {

Error bad_order(std::istringstream const& words) {
  return {std::make_error_code(std::errc::invalid_argument), "malformed order: " + words.str()};
}

std::string to_word(plan::Shape const& shape) {
  std::string word;
  for (auto const extent : shape) word += (word.empty() ? "" : ",") + std::to_string(extent);
  return word.empty() ? "-" : word;
}

}  // namespace

Task make_task(Op op, Dtype dtype, std::uint64_t bytes, std::uint32_t ranks, plan::Rank root) {
  if (op == Op::barrier) return {op, Dtype::u8, ranks, 0, {}};
  Task task{op, dtype, bytes / element_bytes(dtype), is_rooted(op) ? root : 0, {}};
  if (has_blocks(op)) task.elements = (task.elements + ranks - 1) / ranks * ranks;
  return task;
}

std::string to_words(Task const& task) {
  return std::string(name(task.op)) + ' ' + std::string(name(task.dtype)) + ' ' + std::to_string(task.elements) + ' ' +
         std::to_string(task.root) + ' ' + (task.compression ? std::string(name(*task.compression)) : "-");
}

Result<Task> read_task(std::istringstream& words) {
  std::string op, dtype, compression;
  Task task;
  words >> op >> dtype >> task.elements >> task.root >> compression;
  auto const parsed_op = parse_op(op);
  auto const parsed_dtype = parse_dtype(dtype);
  if (words.fail() || !parsed_op || !parsed_dtype) return bad_order(words);
  task.op = *parsed_op;
  task.dtype = *parsed_dtype;
  task.compression = parse_wire_format(compression);
  return task;
}

std::string to_words(plan::Spec const& spec) {
  return spec.algorithm + ' ' + std::to_string(spec.root) + ' ' + std::to_string(spec.arity) + ' ' +
         to_word(spec.shape);
}

Result<plan::Spec> read_spec(std::istringstream& words, Op op, std::uint32_t ranks) {
  plan::Spec spec{.op = op, .algorithm = {}, .ranks = ranks};
  std::string shape;
  words >> spec.algorithm >> spec.root >> spec.arity >> shape;
  if (words.fail()) return bad_order(words);
  if (shape == "-") return spec;
  auto parsed = parse_shape(shape);
  if (parsed.has_error()) return bad_order(words);
  spec.shape = std::move(*parsed);
  return spec;
}

}  // namespace chorus::bench
