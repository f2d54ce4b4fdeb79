#include "server/coordinator/text/log_fields.hpp"

#include "http/message/trace_context.hpp"

namespace chorus::coordinator {

std::vector<logging::Field> fields_of(api::Collective const& view) {
  auto const trace = http::parse_traceparent(view.traceparent.value_or(""));
  return {{"collective", view.id},
          {"run", view.run},
          {"group", view.request.group},
          {"epoch", view.epoch},
          {"trace_id", trace ? trace->trace_id : ""}};
}

}  // namespace chorus::coordinator
