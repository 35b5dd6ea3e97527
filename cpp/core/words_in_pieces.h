// Documents cut twice: into pieces (what superwords may not leave), and these into words.
//
// Cut by the core's scanners, or as the caller has cut them already where a pattern has no scanner.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "core/pre_tokenize.h"
#include "core/stop.h"
#include "core/threads.h"
#include "core/utf8.h"

namespace vocabshift {

// Cuts made by the caller, as offsets into the text of the documents, ascending: the end of every
// piece and of every word of all documents. Without any, the scanners cut.
struct GivenCuts {
  std::span<const std::int64_t> piece_ends;
  std::span<const std::int64_t> word_ends;
  bool empty() const { return piece_ends.empty(); }
};

class WordsInPieces {
 public:
  WordsInPieces(PreTokenizer pieces, PreTokenizer words, std::size_t threads)
      : pieces_(std::move(pieces)),
        words_(std::move(words)),
        threads_(threads == 0 ? 1 : threads) {}

  std::size_t threads() const { return threads_; }

  // Calls visit(thread, document, piece, word_ends) for every piece, in order within a document;
  // `word_ends` are offsets into the piece, the last one its size.
  template <class F>
  void for_each_piece(const Documents& documents, const GivenCuts& cuts, F&& visit) const {
    if (!cuts.empty()) return for_each_given(documents, cuts, visit);
    const std::vector<std::size_t> borders = balanced_shards(documents, threads_);
    parallel_for(threads_, [&](std::size_t shard) {
      std::vector<std::size_t> ends;
      for (std::size_t i = borders[shard]; i < borders[shard + 1]; ++i) {
        pieces_.split(documents[i], [&](std::string_view piece) {
          ends.clear();
          words_.split(piece, [&](std::string_view word) {
            may_stop(word.size());
            ends.push_back(static_cast<std::size_t>(word.data() - piece.data()) + word.size());
          });
          visit(shard, i, piece, std::span<const std::size_t>(ends));
        });
      }
    });
  }

 private:
  template <class F>
  static void for_each_given(const Documents& documents, const GivenCuts& cuts, F&& visit) {
    std::vector<std::size_t> ends;
    std::size_t next_piece = 0;
    std::size_t next_word = 0;
    for (std::size_t i = 0; i < documents.count; ++i) {
      for (std::int64_t start = documents.starts[i]; start < documents.ends[i];) {
        const std::int64_t end =
            take(documents, cuts.piece_ends, next_piece, start, documents.ends[i]);
        ends.clear();
        for (std::int64_t at = start; at < end;) {
          at = take(documents, cuts.word_ends, next_word, at, end);
          may_stop(1);
          ends.push_back(static_cast<std::size_t>(at - start));
        }
        const auto begin = static_cast<std::size_t>(start);
        visit(std::size_t{0}, i,
              documents.text.substr(begin, static_cast<std::size_t>(end - start)),
              std::span<const std::size_t>(ends));
        start = end;
      }
    }
  }

  // The next of `ends`, which must lie after `start`, no further than `limit` and between two
  // characters.
  static std::int64_t take(const Documents& documents, std::span<const std::int64_t> ends,
                           std::size_t& next, std::int64_t start, std::int64_t limit) {
    if (next == ends.size() || ends[next] <= start || ends[next] > limit ||
        (ends[next] < limit &&
         is_continuation_byte(documents.text[static_cast<std::size_t>(ends[next])]))) {
      throw std::invalid_argument("the cuts do not fit the documents");
    }
    return ends[next++];
  }

  PreTokenizer pieces_, words_;
  std::size_t threads_;
};

}  // namespace vocabshift
