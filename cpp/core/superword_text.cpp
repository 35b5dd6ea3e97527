#include "core/superword_text.h"

#include <algorithm>

#include "core/filled.h"

namespace vocabshift {

namespace {

constexpr std::size_t kPiecesAtOnce = 1024;  // to encode and then to take apart
constexpr Count kMostTimes = 0xFFFFFFFFu;    // a piece with a larger count is repeated

}  // namespace

SuperwordText::SuperwordText(const Encoder& encoder, Vocabulary vocabulary,
                             PreTokenizer pre_tokenizer, Options options)
    : encoder_(encoder),
      vocabulary_(std::move(vocabulary)),
      pre_tokenizer_(std::move(pre_tokenizer)),
      options_(std::move(options)) {
  options_.threads = std::max<std::size_t>(options_.threads, 1);
  if (options_.sentences && options_.counted) {
    throw std::invalid_argument("sentences of counted pieces are not known");
  }
}

const std::vector<SuperwordText::Block>& SuperwordText::encode(const Documents& documents,
                                                               const Count* counts, Count& tokens) {
  if (options_.counted != (counts != nullptr)) throw std::logic_error("counts are all or nothing");
  const std::size_t threads = options_.threads;
  while (scratches_.size() < threads) {
    scratches_.push_back(std::make_unique<Encoder::Scratch>(encoder_));
  }
  const std::vector<std::size_t> borders = balanced_shards(documents, threads);
  blocks_.resize(threads);
  std::vector<Count> of_thread(threads);
  parallel_for(threads, [&](std::size_t shard) {
    blocks_[shard].clear();
    encode_block(documents, borders[shard], borders[shard + 1], counts, *scratches_[shard],
                 blocks_[shard], of_thread[shard]);
  });
  for (const Count count : of_thread) tokens += count;
  return blocks_;
}

void SuperwordText::encode_block(const Documents& documents, std::size_t begin, std::size_t end,
                                 const Count* counts, Encoder::Scratch& scratch, Block& block,
                                 Count& tokens) const {
  const char* const readable_end = documents.text.data() + documents.text.size();
  std::vector<TokenId> ids;       // of several documents: the encoder likes to look ahead
  std::vector<std::size_t> ends;  // of their pieces in ids
  std::vector<std::pair<std::size_t, std::size_t>> places;  // of the pieces: document, offset
  std::vector<SentenceWeights::Sentence> sentences;
  std::size_t sentences_of = documents.count;
  scratch.note_piece_ends(&ends);
  const auto drain = [&] {
    encoder_.flush(scratch, ids);
    for (std::size_t i = 0, from = 0; i < ends.size(); from = ends[i++]) {
      const auto [document, offset] = places[i];
      const std::span<const TokenId> piece(ids.data() + from, ends[i] - from);
      tokens += piece.size() * (counts ? counts[document] : 1);
      if (piece.size() < 2) continue;
      if (options_.sentences) {
        if (sentences_of != document) options_.sentences->split(documents[document], sentences);
        sentences_of = document;
        add_sentences(piece, offset, sentences, block);
      } else {
        add_piece(piece, counts ? counts[document] : 1, block);
      }
    }
    ids.clear();
    ends.clear();
    places.clear();
  };
  for (std::size_t i = begin; i < end; ++i) {
    const std::string_view document = documents[i];
    pre_tokenizer_.split(document, [&](std::string_view piece) {
      places.emplace_back(i, piece.data() - document.data());
      encoder_.encode_piece(piece, readable_end, scratch, ids);
    });
    if (places.size() >= kPiecesAtOnce) drain();
  }
  drain();
  scratch.note_piece_ends(nullptr);
}

void SuperwordText::add_piece(std::span<const TokenId> piece, Count times, Block& block) const {
  do {
    append_in_parts(block, piece);
    block.push_back(kNoToken);
    if (has_factors()) block.push_back(static_cast<TokenId>(std::min(times, kMostTimes)));
    times -= std::min(times, kMostTimes);
  } while (times > 0);
}

// Ends a piece of the block at every sentence border. A token that reaches over one holds a
// terminal, or a part of one and more: it never merges, so it stands alone.
void SuperwordText::add_sentences(std::span<const TokenId> piece, std::size_t offset,
                                  const std::vector<SentenceWeights::Sentence>& sentences,
                                  Block& block) const {
  auto sentence = std::partition_point(sentences.begin(), sentences.end(),
                                       [&](const auto& s) { return s.end <= offset; });
  const std::size_t begin = block.size();
  std::size_t from = begin;  // of the piece under way
  std::size_t at = offset;
  const auto end_piece = [&] {
    if (block.size() < from + 2) {
      block.resize(from);
    } else {
      block.push_back(kNoToken);
      block.push_back(sentence->factor);
    }
    from = block.size();
  };
  for (const TokenId id : piece) {
    may_stop(4);
    const std::size_t end = at + vocabulary_[id].size();
    if (sentence->end < end) {  // the token reaches over the border
      end_piece();
      while (sentence->end < end) ++sentence;
    } else {
      block.push_back(id);
    }
    at = end;
    if (sentence->end == at) {
      end_piece();
      ++sentence;
      if (sentence == sentences.end()) return;
    }
  }
  end_piece();
}

}  // namespace vocabshift
