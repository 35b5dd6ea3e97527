#include "core/language_choice.h"

#include <stdexcept>
#include <utility>

#include "core/platform.h"

namespace vocabshift {

LanguageChoice::LanguageChoice(std::vector<Count> tokens, std::vector<Count> lengths,
                               ParityWindow window)
    : tokens_(std::move(tokens)),
      lengths_(std::move(lengths)),
      window_(window),
      is_exhausted_(tokens_.size()),
      in_window_(tokens_.size()) {
  if (tokens_.empty() || tokens_.size() != lengths_.size()) {
    throw std::invalid_argument("every language needs the length of its text");
  }
  for (const Count length : lengths_) {
    if (length == 0) throw std::invalid_argument("a language has no text to measure");
  }
}

bool LanguageChoice::is_worse(std::size_t language, std::size_t than) const {
  return multiply(tokens_[language], lengths_[than]) > multiply(tokens_[than], lengths_[language]);
}

// In floating point as the authors' code has it: a share may equal the limit.
bool LanguageChoice::may_be_next(std::size_t language) const {
  if (window_.size == 0) return true;
  return static_cast<double>(in_window_[language]) / static_cast<double>(window_.size) <=
         window_.alpha / static_cast<double>(languages());
}

std::size_t LanguageChoice::next() const {
  std::size_t worst = kNone, worst_allowed = kNone;
  for (std::size_t language = 0; language < languages(); ++language) {
    if (is_exhausted_[language]) continue;
    if (worst == kNone || is_worse(language, worst)) worst = language;
    if (!may_be_next(language)) continue;
    if (worst_allowed == kNone || is_worse(language, worst_allowed)) worst_allowed = language;
  }
  return worst_allowed == kNone ? worst : worst_allowed;
}

void LanguageChoice::served(std::size_t language) {
  if (window_.size == 0) return;
  last_.push_back(language);
  ++in_window_[language];
  if (last_.size() <= window_.size) return;
  --in_window_[last_.front()];
  last_.pop_front();
}

void LanguageChoice::exhausted(std::size_t language) {
  is_exhausted_[language] = true;
  served(language);
}

}  // namespace vocabshift
