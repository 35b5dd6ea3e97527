#include "json/model_json.h"

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "core/platform.h"
#include "core/utf8.h"

namespace vocabshift {

namespace {

// Bytes that end a run of plain characters in a string: quotes, backslashes, control characters.
constexpr auto kEndsRun = [] {
  std::array<bool, 256> ends{};
  for (std::size_t byte = 0; byte < 0x20; ++byte) ends[byte] = true;
  ends['"'] = ends['\\'] = true;
  return ends;
}();

// A place in JSON text. Every function returns false where the text is not plainly what it reads.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : begin_(text.data()), at_(begin_) {
    end_ = begin_ + text.size();
    if (text.starts_with("\xEF\xBB\xBF")) at_ += 3;
  }

  std::size_t place() const { return static_cast<std::size_t>(at_ - begin_); }
  char next() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    return at_ < end_ ? *at_ : '\0';
  }
  bool take(char expected) {
    if (next() != expected) return false;
    ++at_;
    return true;
  }
  // Calls entry() for each entry of a list or object that ends in `last`; its "[" or "{" is taken.
  template <class F>
  bool entries(char last, F&& entry) {
    if (take(last)) return true;
    do {
      if (!entry()) return false;
    } while (take(','));
    return take(last);
  }

  // A string's content: of the text itself, or, where it holds escapes, in `room`.
  bool string(std::string& room, std::string_view& content) {
    if (!take('"')) return false;
    const char* const from = at_;
    skip_run();
    if (at_ == end_) return false;
    if (*at_ == '"') {
      content = {from, static_cast<std::size_t>(at_++ - from)};
      return true;
    }
    room.assign(from, at_);
    while (at_ < end_ && *at_ == '\\') {
      if (!escape(room)) return false;
      const char* const run = at_;
      skip_run();
      room.append(run, at_);
    }
    content = room;
    return at_ < end_ && *at_++ == '"';
  }

  // A key and the colon after it.
  bool key(std::string& room, std::string_view& name) { return string(room, name) && take(':'); }

  // A whole number of up to nine digits.
  bool number(std::uint32_t& value) {
    next();
    const char* const from = at_;
    value = 0;
    while (at_ < end_ && at_ < from + 10 && *at_ >= '0' && *at_ <= '9') {
      value = value * 10 + static_cast<std::uint32_t>(*at_++ - '0');
    }
    const std::ptrdiff_t digits = at_ - from;
    if (digits == 0 || digits > 9 || (*from == '0' && digits > 1)) return false;
    const char after = next();
    return after == ',' || after == '}';
  }

  // Any value, whose inside is not looked at: only strings and brackets are looked for.
  bool skip() {
    std::size_t depth = 0;
    if (next() == '\0') return false;
    do {
      const char byte = next();
      if (at_ == end_) return false;
      if (byte == '"') {
        if (!skip_string()) return false;
        continue;
      }
      if (byte == '{' || byte == '[') ++depth;
      if (byte == '}' || byte == ']') {
        if (depth == 0) return false;
        --depth;
      }
      ++at_;
    } while (depth > 0 || !at_value_end());
    return true;
  }

 private:
  bool at_value_end() {
    const char byte = next();
    return byte == ',' || byte == '}' || byte == ']' || at_ == end_;
  }
  void skip_run() {
#if VOCABSHIFT_SSE2
    for (; end_ - at_ >= 16; at_ += 16) {
      const __m128i run = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at_));
      const __m128i is_control = _mm_cmpeq_epi8(_mm_min_epu8(run, _mm_set1_epi8(0x1F)), run);
      const __m128i is_quote = _mm_cmpeq_epi8(run, _mm_set1_epi8('"'));
      const __m128i is_escape = _mm_cmpeq_epi8(run, _mm_set1_epi8('\\'));
      const int ends =
          _mm_movemask_epi8(_mm_or_si128(is_control, _mm_or_si128(is_quote, is_escape)));
      if (ends) {
        at_ += std::countr_zero(static_cast<unsigned>(ends));
        return;
      }
    }
#endif
    while (at_ < end_ && !kEndsRun[static_cast<unsigned char>(*at_)]) ++at_;
  }
  bool skip_string() {
    for (++at_; at_ < end_; ++at_) {
      if (*at_ == '\\') {
        ++at_;
      } else if (*at_ == '"') {
        ++at_;
        return true;
      }
    }
    return false;
  }
  bool hex4(char32_t& value) {
    if (end_ - at_ < 4) return false;
    value = 0;
    for (int i = 0; i < 4; ++i) {
      const char digit = *at_++;
      const char lower = static_cast<char>(digit | 0x20);
      if (digit >= '0' && digit <= '9') {
        value = value << 4 | static_cast<char32_t>(digit - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        value = value << 4 | static_cast<char32_t>(lower - 'a' + 10);
      } else {
        return false;
      }
    }
    return true;
  }
  bool escape(std::string& room) {
    static constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (end_ - at_ < 2) return false;
    const char name = at_[1];
    at_ += 2;
    if (const std::size_t place = kNames.find(name); place != std::string_view::npos) {
      room.push_back(kMeant[place]);
      return true;
    }
    char32_t character, second;
    if (name != 'u' || !hex4(character)) return false;
    if (character >= 0xD800 && character < 0xE000) {
      if (character >= 0xDC00 || end_ - at_ < 6 || *at_++ != '\\' || *at_++ != 'u') return false;
      if (!hex4(second) || second < 0xDC00 || second >= 0xE000) return false;
      character = 0x10000 + ((character - 0xD800) << 10) + (second - 0xDC00);
    }
    append_utf8(character, room);
    return true;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
};

// A string in quotes, as Python's json writes it with ensure_ascii=False.
void append_string(std::string_view text, std::string& out) {
  static constexpr std::string_view kNames = "\"\\bfnrt", kMeant = "\"\\\b\f\n\r\t";
  out.push_back('"');
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    while (at < text.size() && !kEndsRun[static_cast<unsigned char>(text[at])]) ++at;
    out.append(text, from, at - from);
    if (at == text.size()) break;
    const char byte = text[at++];
    out.push_back('\\');
    if (const std::size_t place = kMeant.find(byte); place != std::string_view::npos) {
      out.push_back(kNames[place]);
    } else {
      out += byte < 0x10 ? "u000" : "u001";
      out.push_back("0123456789abcdef"[byte & 15]);
    }
  }
  out.push_back('"');
}

bool read_vocab(Cursor& at, ModelStrings& strings) {
  std::string room;
  return at.take('{') && at.entries('}', [&] {
    std::string_view token;
    std::uint32_t id;
    if (!at.key(room, token) || !at.number(id)) return false;
    strings.add_token(token, id);
    return true;
  });
}

// Merges as pairs, or as "a b" (the older form); not both.
bool read_merges(Cursor& at, ModelStrings& strings) {
  std::string rooms[2];
  std::string_view parts[2];
  if (!at.take('[')) return false;
  const bool as_pairs = at.next() == '[';
  return at.entries(']', [&] {
    if (as_pairs) {
      if (!at.take('[') || !at.string(rooms[0], parts[0]) || !at.take(',') ||
          !at.string(rooms[1], parts[1]) || !at.take(']')) {
        return false;
      }
    } else {
      std::string_view line;
      if (!at.string(rooms[0], line) || line.starts_with("#version")) return false;
      const std::size_t space = line.find(' ');
      if (space == std::string_view::npos) return false;
      parts[0] = line.substr(0, space);
      parts[1] = line.substr(space + 1);
      if (parts[1].find(' ') != std::string_view::npos) return false;
    }
    strings.add_merge(parts[0], parts[1]);
    return true;
  });
}

bool read_model(Cursor& at, ModelJson& model) {
  bool has_vocab = false, has_merges = false;
  const auto read = [&](bool& is_there, Span& span, auto&& reader) {
    if (std::exchange(is_there, true)) return false;
    at.next();
    span.begin = at.place();
    const bool is_read = reader(at, model.strings);
    span.end = at.place();
    return is_read;
  };
  const auto entry = [&] {
    std::string room;
    std::string_view name;
    if (!at.key(room, name)) return false;
    if (name == "vocab") return read(has_vocab, model.vocab, read_vocab);
    if (name == "merges") return has_vocab && read(has_merges, model.merges, read_merges);
    return at.skip();
  };
  return at.take('{') && at.entries('}', entry) && has_merges && model.strings.size() > 0;
}

}  // namespace

std::optional<ModelJson> read_model_json(std::string_view text, TokenId max_id) {
  ModelJson model;
  Cursor at(text);
  bool has_model = false;
  const bool is_read = at.take('{') && at.entries('}', [&] {
    std::string room;
    std::string_view name;
    if (!at.key(room, name)) return false;
    if (name != "model") return at.skip();
    return !std::exchange(has_model, true) && read_model(at, model);
  });
  if (!is_read || !has_model || !model.strings.finish(max_id)) return std::nullopt;
  // Every string of a merge is one of the vocabulary.
  const Span vocab = model.vocab;
  if (first_invalid_utf8(text.substr(vocab.begin, vocab.end - vocab.begin)) != kAllValid) {
    return std::nullopt;
  }
  return model;
}

std::string vocab_json(const ModelStrings& strings) {
  std::string out = "{";
  for (const ModelStrings::Index i : strings.by_id()) {
    if (out.size() > 1) out.push_back(',');
    append_string(strings[i], out);
    out.push_back(':');
    out += std::to_string(strings.id(i));
  }
  out.push_back('}');
  return out;
}

std::string merges_json(const ModelStrings& strings) {
  std::string out = "[";
  for (const ModelStrings::Merge& merge : strings.merges()) {
    if (out.size() > 1) out.push_back(',');
    out.push_back('[');
    append_string(strings[merge.left], out);
    out.push_back(',');
    append_string(strings[merge.right], out);
    out.push_back(']');
  }
  out.push_back(']');
  return out;
}

}  // namespace vocabshift
