// The whole way from a document to ids: added tokens, the simple normalizers, pre-tokenizer, model.
// Normalizers and pre-tokenizers that only a library knows are applied by the caller, who then
// comes in further down (encode_normalized, Encoder::encode_piece).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/added_tokens.h"
#include "core/big_memory.h"
#include "core/encode.h"
#include "core/pre_tokenize.h"
#include "core/threads.h"

namespace vocabshift {

// Documents as the encoder asks for them; each is asked for once, by any thread.
class DocumentSource {
 public:
  virtual ~DocumentSource() = default;
  virtual std::size_t count() const = 0;
  virtual std::size_t size(std::size_t i) const = 0;  // in bytes, about
  // UTF-8, in memory of the source or in `room`; valid until the next call with that room.
  virtual std::string_view get(std::size_t i, std::string& room) const = 0;
};

class ViewDocuments : public DocumentSource {
 public:
  explicit ViewDocuments(const std::vector<std::string_view>& views) : views_(views) {}
  std::size_t count() const override { return views_.size(); }
  std::size_t size(std::size_t i) const override { return views_[i].size(); }
  std::string_view get(std::size_t i, std::string&) const override { return views_[i]; }

 private:
  const std::vector<std::string_view>& views_;
};

// The pre-tokenizer Metaspace of `tokenizers`, without its cuts.
struct Metaspace {
  enum class Prepend { kNever, kFirst, kAlways };  // kFirst: at the beginning of the text alone
  std::string space;                               // what a space becomes
  Prepend prepend = Prepend::kAlways;              // where the part does not begin with it
};

class TextEncoder {
 public:
  struct Options {
    std::vector<AddedToken> raw_tokens;         // found in the text as it is
    std::vector<AddedToken> normalized_tokens;  // found after normalization
    std::string prepend;                        // normalizer Prepend; "" for none
    std::string space_becomes;                  // normalizer Replace(" "); "" for none
    bool to_nfc = false;                        // normalizer NFC
    std::optional<Metaspace> metaspace;         // before pre_tokenizer
    std::optional<PreTokenizer> pre_tokenizer;  // none: only encode_piece may be used
  };

  TextEncoder(std::shared_ptr<const Encoder> encoder, const Options& options);

  // Appends the ids of a document. False, and nothing is appended, where it has a character that
  // the core cannot bring into normal form (to_nfc): its caller must.
  bool encode(std::string_view text, Encoder::Scratch& scratch, std::vector<TokenId>& out) const;
  // The same for a part between added tokens that is normalized already; `is_first`: the text
  // begins with it.
  void encode_normalized(std::string_view text, bool is_first, Encoder::Scratch& scratch,
                         std::vector<TokenId>& out) const;

  // Flat ids of many documents and where each begins (count + 1 offsets); the same for any number
  // of threads. They take parts of the documents in turn.
  struct Batch {
    BigVector<TokenId> ids;
    std::vector<std::int64_t> offsets;
    std::vector<std::int64_t> left;  // documents left to the caller, ascending; they have no ids
  };
  Batch encode_batch(const DocumentSource& documents, std::size_t threads);

  const Encoder& encoder() const { return *encoder_; }
  const AddedTokens& raw_tokens() const { return raw_tokens_; }
  const AddedTokens& normalized_tokens() const { return normalized_tokens_; }
  Encoder::Scratch& scratch(std::size_t thread);

 private:
  std::shared_ptr<const Encoder> encoder_;
  AddedTokens raw_tokens_, normalized_tokens_;
  std::string prepend_, space_becomes_;
  bool to_nfc_;
  std::optional<Metaspace> metaspace_;
  std::optional<PreTokenizer> pre_tokenizer_;
  std::vector<std::unique_ptr<Encoder::Scratch>> scratches_;  // caches live as long as the encoder
};

}  // namespace vocabshift
