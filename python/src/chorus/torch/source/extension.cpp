// The Python module chorus_process_group.
#include <torch/csrc/utils/pybind.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "interpreter.hpp"
#include "process_group.hpp"

namespace chorus::process_group {
namespace {

// A Python object that stands behind a process group: `end()` is called when that has ended.
class Member {
 public:
  explicit Member(py::object member) : member_(member.release().ptr()) {}
  void end() const {
    if (Py_IsInitialized() == 0) return;
    py::gil_scoped_acquire const lock;
    auto const member = py::reinterpret_steal<py::object>(member_);
    try {
      member.attr("end")();
    } catch (py::error_already_set& error) { error.discard_as_unraisable("chorus.torch"); }
  }
  [[nodiscard]] py::object object() const { return py::reinterpret_borrow<py::object>(member_); }

 private:
  PyObject* member_;  // of this object until end()
};

class PythonProcessGroup final : public ProcessGroup {
 public:
  PythonProcessGroup(Store store, int rank, int size, std::unique_ptr<Membership> membership, Member member)
      : ProcessGroup(std::move(store), rank, size, std::move(membership)), member_(member) {}
  ~PythonProcessGroup() override {
    // Calls that are under way may need the interpreter to end.
    std::optional<py::gil_scoped_release> waiting;
    if (PyGILState_Check() != 0) waiting.emplace();
    if (finish()) member_.end();
  }
  [[nodiscard]] Member const& member() const { return member_; }

 private:
  Member const member_;
};

// A process group, in any epoch of the group where `epoch` is 0, and a function that waits for the end of its calls.
std::pair<c10::intrusive_ptr<Base>, py::cpp_function> make(Store store, int rank, int size, double timeout_s,
                                                           std::uintptr_t worker, std::string const& name,
                                                           std::uint32_t epoch, py::object member) {
  Member const owner(std::move(member));
  std::optional<py::gil_scoped_release> waiting(std::in_place);
  auto const timeout = std::chrono::milliseconds(std::llround(timeout_s * 1000));
  auto* const handle = reinterpret_cast<chorus_worker_t*>(worker);  // NOLINT: ctypes has it as a number
  auto membership = std::make_unique<Membership>(handle, name, epoch, rank, size, timeout);
  auto const drain = membership->drain();
  auto made = c10::make_intrusive<PythonProcessGroup>(std::move(store), rank, size, std::move(membership), owner);
  waiting.reset();
  return {made, py::cpp_function(drain, py::call_guard<py::gil_scoped_release>())};
}

// `member` of make(), or None for a process group of another backend.
py::object member_of(c10::intrusive_ptr<Base> const& group) {
  auto const* const own = dynamic_cast<PythonProcessGroup const*>(group.get());
  return own == nullptr ? py::none() : own->member().object();
}

}  // namespace
}  // namespace chorus::process_group

PYBIND11_MODULE(chorus_process_group, module) {
  module.def("make", &chorus::process_group::make);
  module.def("member_of", &chorus::process_group::member_of);
  module.def("begin_interpreter_end", &chorus::process_group::InterpreterEnd::begin);
}
