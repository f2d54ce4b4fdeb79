#include "library/operations.hpp"

#include <string>

namespace chorus::library {

Result<Arguments> to_arguments(Form form, chorus_const_tensor_t const* input, chorus_tensor_t const* output,
                               chorus_collective_options_t const* options) {
  bool const in_place = form.has_in_place && input == nullptr;
  if (input == nullptr && !form.has_in_place && !form.may_lack_input)
    return Error(WorkerErrc::bad_argument, "input is NULL: this operation has no form in place");
  if (output == nullptr && (in_place || !form.may_lack_output))
    return Error(WorkerErrc::bad_argument, std::string(form.output_name) + " is NULL");
  auto const from = to_view(input, "input");
  if (from.has_error()) return from.error();
  auto const to = to_view(output, form.output_name);
  if (to.has_error()) return to.error();
  auto how = to_options(options);
  if (how.has_error()) return how.error();
  return Arguments{*from, *to, in_place, std::move(*how)};
}

Result<Lists> to_lists(chorus_tensor_t const* tensors, std::size_t count, chorus_collective_options_t const* options) {
  auto views = to_views(tensors, count);
  if (views.has_error()) return views.error();
  auto how = to_options(options);
  if (how.has_error()) return how.error();
  return Lists{{}, std::move(*views), true, std::move(*how)};
}

Result<Lists> to_lists(chorus_const_tensor_t const* inputs, chorus_tensor_t const* outputs, std::size_t count,
                       chorus_collective_options_t const* options) {
  bool const in_place = inputs == nullptr;
  auto from = to_views(inputs, in_place ? 0 : count, "input");
  if (from.has_error()) return from.error();
  auto to = to_views(outputs, count, "output");
  if (to.has_error()) return to.error();
  auto how = to_options(options);
  if (how.has_error()) return how.error();
  return Lists{std::move(*from), std::move(*to), in_place, std::move(*how)};
}

chorus_status_t tell_end(chorus_error_t* error, JoinedGroup const& group, Status const& status) {
  if (status.has_value()) return CHORUS_OK;
  auto const& why = status.error();
  if (to_status(why.code) == CHORUS_BAD_ARGUMENT) return tell(error, why);
  return tell(error, why, group.culprits());
}

}  // namespace chorus::library
