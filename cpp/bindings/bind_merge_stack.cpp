#include "bindings/arrays.h"
#include "bindings/calls.h"
#include "core/merge_stack.h"

namespace vocabshift::bindings {

void register_merge_stack(py::module_& m) {
  py::class_<MergeStack>(m, "MergeStack", "A merge list in which every token stays in reach.")
      .def(py::init<std::size_t>(), py::arg("max_tokens"))
      .def(
          "push",
          [](MergeStack& self, const py::bytes& token) {
            const Stoppable stoppable(signal_check());
            return self.push(static_cast<std::string_view>(token));
          },
          py::arg("token"),
          "Into how many tokens the merges so far cut it: 1, known; 2, taken now; more, left out.")
      .def_property_readonly(
          "parts",
          [](const MergeStack& self) {
            py::list parts;
            for (const TokenId id : self.parts()) {
              const std::string_view bytes = self.vocabulary()[id];
              parts.append(py::bytes(bytes.data(), bytes.size()));
            }
            return parts;
          },
          "The tokens that the last push was cut into.")
      .def_property_readonly(
          "size", [](const MergeStack& self) { return self.vocabulary().size(); },
          "Tokens so far, the 256 bytes included.")
      .def_property_readonly(
          "tokens", [](const MergeStack& self) { return list_of(self.vocabulary()); },
          "Bytes of every token, by id.")
      .def_property_readonly(
          "merges", [](const MergeStack& self) { return rows_of(self.merges()); },
          "(n_merges, 3) uint32: left id, right id, product id.");
}

}  // namespace vocabshift::bindings
