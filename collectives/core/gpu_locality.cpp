#include "collectives/core/gpu_locality.hpp"

namespace chorus {
namespace {

// In `form` an 'h' stands for a lower-case hexadecimal digit, and every other character for itself.
bool has_form(std::string_view text, std::string_view form) {
  if (text.size() != form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    auto const c = text[i];
    bool const is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (form[i] == 'h' ? !is_digit : c != form[i]) return false;
  }
  return true;
}

}  // namespace

bool is_gpu_uuid(std::string_view text) { return has_form(text, "GPU-hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh"); }

bool is_pci_address(std::string_view text) {
  constexpr std::string_view widest = "hhhhhhhh:hh:hh.h";
  return text.size() <= widest.size() && text.size() + 4 >= widest.size() &&
         has_form(text, widest.substr(widest.size() - text.size()));
}

}  // namespace chorus
