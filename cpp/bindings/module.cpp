// The module itself: one register_* call per file beside this one.
#include "bindings/register.h"

PYBIND11_MODULE(_core, m) {
  m.doc() = "The C++ core of vocabshift: text, training and encoding. Use it through vocabshift.";
  vocabshift::bindings::register_text(m);
  vocabshift::bindings::register_counting(m);
  vocabshift::bindings::register_models(m);  // before what takes an encoder
  vocabshift::bindings::register_encode(m);
  vocabshift::bindings::register_pieces(m);  // and before the rule that takes one of pieces
  vocabshift::bindings::register_training(m);
  vocabshift::bindings::register_superwords(m);  // after the rules of merging
  vocabshift::bindings::register_extension(m);
  vocabshift::bindings::register_boundless(m);
  vocabshift::bindings::register_picky(m);
  vocabshift::bindings::register_merge_stack(m);
}
