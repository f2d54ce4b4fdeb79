// Text tables: columns as wide as their widest cell, two spaces apart, numbers to the right.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace chorus::cli {

enum class Align : bool { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell per column; an empty cell is shown as "-".
  void add(std::vector<std::string> cells);

  // Prints titles and rows, without trailing spaces. Cells are not truncated: a long last column makes a long line.
  void print(std::ostream& out) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace chorus::cli
