// The collectives as the C interface calls them: arguments in one form, and how each operation is run and begun.
#pragma once

#include <utility>

#include "library/arguments.hpp"
#include "library/border.hpp"

namespace chorus::library {

struct Arguments {
  ConstTensorView input;
  TensorView output;
  bool in_place = false;  // `output` is the tensor
  CollectiveOptions options;
};

// What an operation's input and output may lack.
struct Form {
  char const* output_name = "output";
  bool has_in_place = false;     // an input of NULL says so
  bool may_lack_input = false;   // on ranks other than the root
  bool may_lack_output = false;  // likewise, unless in place
};

[[nodiscard]] Result<Arguments> to_arguments(Form form, chorus_const_tensor_t const* input,
                                             chorus_tensor_t const* output, chorus_collective_options_t const* options);

// Tells how a call of `group` has ended, with the ranks that it blames.
chorus_status_t tell_end(chorus_error_t* error, JoinedGroup const& group, Status const& status);

struct AllReduce {
  static constexpr Form form{.has_in_place = true};
  static Status run(JoinedGroup& group, Arguments const& a) {
    return a.in_place ? group.all_reduce(a.output, a.options) : group.all_reduce(a.input, a.output, a.options);
  }
  static Handle begin(JoinedGroup& group, Arguments&& a) {
    return a.in_place ? group.all_reduce_async(a.output, std::move(a.options))
                      : group.all_reduce_async(a.input, a.output, std::move(a.options));
  }
};
struct Reduce {
  static constexpr Form form{.has_in_place = true, .may_lack_output = true};
  static Status run(JoinedGroup& group, Arguments const& a) {
    return a.in_place ? group.reduce(a.output, a.options) : group.reduce(a.input, a.output, a.options);
  }
  static Handle begin(JoinedGroup& group, Arguments&& a) {
    return a.in_place ? group.reduce_async(a.output, std::move(a.options))
                      : group.reduce_async(a.input, a.output, std::move(a.options));
  }
};
// Operations with templates take Arguments, or Lists.
struct Broadcast {
  static constexpr Form form{.output_name = "tensor", .may_lack_input = true};
  template <class Given>
  static Status run(JoinedGroup& group, Given const& a) {
    return group.broadcast(a.output, a.options);
  }
  template <class Given>
  static Handle begin(JoinedGroup& group, Given a) {
    return group.broadcast_async(a.output, std::move(a.options));
  }
};
struct AllGather {
  static constexpr Form form{.has_in_place = true};
  template <class Given>
  static Status run(JoinedGroup& group, Given const& a) {
    return a.in_place ? group.all_gather(a.output, a.options) : group.all_gather(a.input, a.output, a.options);
  }
  template <class Given>
  static Handle begin(JoinedGroup& group, Given a) {
    return a.in_place ? group.all_gather_async(a.output, std::move(a.options))
                      : group.all_gather_async(a.input, a.output, std::move(a.options));
  }
};
struct ReduceScatter {
  static constexpr Form form{.has_in_place = true};
  template <class Given>
  static Status run(JoinedGroup& group, Given const& a) {
    return a.in_place ? group.reduce_scatter(a.output, a.options) : group.reduce_scatter(a.input, a.output, a.options);
  }
  template <class Given>
  static Handle begin(JoinedGroup& group, Given a) {
    return a.in_place ? group.reduce_scatter_async(a.output, std::move(a.options))
                      : group.reduce_scatter_async(a.input, a.output, std::move(a.options));
  }
};
struct Gather {
  static constexpr Form form{.may_lack_output = true};
  static Status run(JoinedGroup& group, Arguments const& a) { return group.gather(a.input, a.output, a.options); }
  static Handle begin(JoinedGroup& group, Arguments&& a) {
    return group.gather_async(a.input, a.output, std::move(a.options));
  }
};
struct Scatter {
  static constexpr Form form{.may_lack_input = true};
  static Status run(JoinedGroup& group, Arguments const& a) { return group.scatter(a.input, a.output, a.options); }
  static Handle begin(JoinedGroup& group, Arguments&& a) {
    return group.scatter_async(a.input, a.output, std::move(a.options));
  }
};
struct AllToAll {
  static constexpr Form form{.has_in_place = true};
  template <class Given>
  static Status run(JoinedGroup& group, Given const& a) {
    return a.in_place ? group.all_to_all(a.output, a.options) : group.all_to_all(a.input, a.output, a.options);
  }
  template <class Given>
  static Handle begin(JoinedGroup& group, Given a) {
    return a.in_place ? group.all_to_all_async(a.output, std::move(a.options))
                      : group.all_to_all_async(a.input, a.output, std::move(a.options));
  }
};
struct Barrier {
  static constexpr Form form{.may_lack_input = true, .may_lack_output = true};
  static Status run(JoinedGroup& group, Arguments const& a) { return group.barrier(a.options); }
  static Handle begin(JoinedGroup& group, Arguments&& a) { return group.barrier_async(std::move(a.options)); }
};

// The same of lists of tensors. Those of operations without blocks are in place.
struct Lists {
  std::vector<ConstTensorView> input;
  std::vector<TensorView> output;
  bool in_place = true;
  CollectiveOptions options;
};

[[nodiscard]] Result<Lists> to_lists(chorus_tensor_t const* tensors, std::size_t count,
                                     chorus_collective_options_t const* options);
// In place if `inputs` is null.
[[nodiscard]] Result<Lists> to_lists(chorus_const_tensor_t const* inputs, chorus_tensor_t const* outputs,
                                     std::size_t count, chorus_collective_options_t const* options);

struct AllReduceList {
  static Status run(JoinedGroup& group, Lists const& l) { return group.all_reduce(l.output, l.options); }
  static Handle begin(JoinedGroup& group, Lists&& l) { return group.all_reduce_async(l.output, std::move(l.options)); }
};
struct ReduceList {
  static Status run(JoinedGroup& group, Lists const& l) { return group.reduce(l.output, l.options); }
  static Handle begin(JoinedGroup& group, Lists&& l) { return group.reduce_async(l.output, std::move(l.options)); }
};

}  // namespace chorus::library
