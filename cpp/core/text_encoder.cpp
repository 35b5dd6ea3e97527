#include "core/text_encoder.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>

#include "core/big_memory.h"
#include "core/nfc.h"

namespace vocabshift {

TextEncoder::TextEncoder(std::shared_ptr<const Encoder> encoder, const Options& options)
    : encoder_(std::move(encoder)),
      raw_tokens_(options.raw_tokens),
      normalized_tokens_(options.normalized_tokens),
      prepend_(options.prepend),
      space_becomes_(options.space_becomes),
      to_nfc_(options.to_nfc),
      metaspace_(options.metaspace),
      pre_tokenizer_(options.pre_tokenizer) {}

Encoder::Scratch& TextEncoder::scratch(std::size_t thread) {
  while (scratches_.size() <= thread) {
    scratches_.push_back(std::make_unique<Encoder::Scratch>(*encoder_));
  }
  return *scratches_[thread];
}

namespace {

// Appends `text` with every space as `space_becomes`.
void append_respaced(std::string_view text, std::string_view space_becomes, std::string& out) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    out.append(text, at, space - at);
    if (space < text.size()) out += space_becomes;
    at = space + 1;
  }
}

}  // namespace

void TextEncoder::encode_normalized(std::string_view text, bool is_first, Encoder::Scratch& scratch,
                                    std::vector<TokenId>& out) const {
  if (!pre_tokenizer_) throw std::logic_error("this encoder has no pre-tokenizer of its own");
  std::string respaced;
  const auto encode_part = [&](std::string_view part) {
    if (metaspace_) {
      using Prepend = Metaspace::Prepend;
      const bool begins_text = is_first && part.data() == text.data();
      respaced.clear();
      if (metaspace_->prepend == Prepend::kAlways ||
          (metaspace_->prepend == Prepend::kFirst && begins_text)) {
        if (part[0] != ' ' && !part.starts_with(metaspace_->space)) respaced = metaspace_->space;
      }
      append_respaced(part, metaspace_->space, respaced);
      part = respaced;
    }
    const char* const end = part.data() + part.size();
    pre_tokenizer_->split(
        part, [&](std::string_view piece) { encoder_->encode_piece(piece, end, scratch, out); });
    encoder_->flush(scratch, out);
  };
  if (text.empty()) return;
  if (normalized_tokens_.empty()) return encode_part(text);
  normalized_tokens_.split(text, encode_part,
                           [&](TokenId id, std::string_view) { out.push_back(id); });
}

bool TextEncoder::encode(std::string_view text, Encoder::Scratch& scratch,
                         std::vector<TokenId>& out) const {
  const std::size_t before = out.size();
  bool is_known = true;
  std::string room;
  const auto encode_part = [&](std::string_view part) {
    const bool is_first = part.data() == text.data();
    if (to_nfc_) {
      const std::optional<std::string_view> normal = to_nfc(part, room);
      if (!normal) is_known = false;
      if (!is_known) return;
      part = *normal;
    }
    if (prepend_.empty() && space_becomes_.empty()) {
      return encode_normalized(part, is_first, scratch, out);
    }
    std::string normalized = prepend_;
    append_respaced(part, space_becomes_.empty() ? " " : space_becomes_, normalized);
    encode_normalized(normalized, is_first, scratch, out);
  };
  if (raw_tokens_.empty()) {
    if (!text.empty()) encode_part(text);
  } else {
    raw_tokens_.split(text, encode_part, [&](TokenId id, std::string_view) { out.push_back(id); });
  }
  if (!is_known) out.resize(before);
  return is_known;
}

namespace {

// Parts of a batch, handed out in order, and their ids, which go to their place as soon as those of
// all parts before them have: no more than a few parts are ever waiting, in memory that is used
// again.
class BatchParts {
 public:
  BatchParts(const DocumentSource& documents, TextEncoder::Batch& batch)
      : documents_(documents), batch_(batch) {
    batch_.offsets.assign(documents.count() + 1, 0);
  }

  struct Part {
    std::size_t number;
    std::size_t begin, end;  // documents; none: nothing is left
    std::vector<TokenId> ids;
    std::vector<std::int64_t> left;
  };

  void next(Part& part) {
    const std::lock_guard<std::mutex> lock(mutex_);
    part.number = handed_out_++;
    part.begin = next_document_;
    for (std::size_t bytes = 0; bytes < kPartBytes && next_document_ < documents_.count();) {
      bytes += documents_.size(next_document_++);
    }
    part.end = next_document_;
  }

  // With the exception under way. No more parts are handed out; those before it are under way, so
  // that the first failure is the same for any number of threads.
  void fail(const Part& part) {
    const std::lock_guard<std::mutex> lock(mutex_);
    next_document_ = documents_.count();
    if (failure_ && failed_ < part.number) return;
    failed_ = part.number;
    failure_ = std::current_exception();
  }
  void rethrow_first() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  // Offsets of the part's documents are within it, as yet.
  void finish(Part& part) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (part.number != placed_) {
      waiting_.emplace(part.number, std::move(part));
      return;
    }
    place(part);
    for (auto next = waiting_.begin(); next != waiting_.end() && next->first == placed_;
         next = waiting_.erase(next)) {
      place(next->second);
    }
  }

 private:
  static constexpr std::size_t kPartBytes = std::size_t{1} << 18;

  void place(Part& part) {
    const auto before = static_cast<std::int64_t>(batch_.ids.size());
    for (std::size_t i = part.begin; i < part.end; ++i) batch_.offsets[i + 1] += before;
    const std::size_t size = batch_.ids.size() + part.ids.size();
    if (size > batch_.ids.capacity()) batch_.ids.reserve(size + size / 2);
    batch_.ids.resize(size);  // not cleared
    std::copy(part.ids.begin(), part.ids.end(), batch_.ids.end() - std::ssize(part.ids));
    batch_.left.insert(batch_.left.end(), part.left.begin(), part.left.end());
    ++placed_;
  }

  const DocumentSource& documents_;
  TextEncoder::Batch& batch_;
  std::mutex mutex_;
  std::size_t next_document_ = 0, handed_out_ = 0, placed_ = 0;
  std::map<std::size_t, Part> waiting_;  // by number
  std::exception_ptr failure_;
  std::size_t failed_ = 0;  // part
};

}  // namespace

TextEncoder::Batch TextEncoder::encode_batch(const DocumentSource& documents, std::size_t threads) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < documents.count(); ++i) total += documents.size(i);
  threads = std::max<std::size_t>(1, std::min(threads, total / 4096 + 1));
  scratch(threads - 1);  // makes them all: threads may not
  Batch batch;
  batch.ids.reserve(total / 2);  // a guess: what is not touched costs nothing
  BatchParts parts(documents, batch);
  parallel_for(threads, [&](std::size_t thread) {
    BatchParts::Part part;
    std::string room;
    for (parts.next(part); part.begin < part.end; parts.next(part)) {
      part.ids.clear();
      part.left.clear();
      try {
        for (std::size_t i = part.begin; i < part.end; ++i) {
          const std::string_view text = documents.get(i, room);
          if (!encode(text, *scratches_[thread], part.ids)) {
            part.left.push_back(static_cast<std::int64_t>(i));
          }
          batch.offsets[i + 1] = static_cast<std::int64_t>(part.ids.size());
        }
      } catch (const StoppedElsewhere&) {
        throw;
      } catch (...) {
        return parts.fail(part);
      }
      parts.finish(part);
    }
  });
  parts.rethrow_first();
  return batch;
}

}  // namespace vocabshift
