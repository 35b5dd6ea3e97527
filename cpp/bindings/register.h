// The register functions, one per file beside this one.
#pragma once

#include <pybind11/pybind11.h>

namespace vocabshift::bindings {

namespace py = pybind11;

void register_text(py::module_& m);
void register_counting(py::module_& m);
void register_training(py::module_& m);
void register_superwords(py::module_& m);
void register_encode(py::module_& m);
void register_models(py::module_& m);
void register_pieces(py::module_& m);
void register_boundless(py::module_& m);
void register_picky(py::module_& m);
void register_extension(py::module_& m);
void register_merge_stack(py::module_& m);

}  // namespace vocabshift::bindings
