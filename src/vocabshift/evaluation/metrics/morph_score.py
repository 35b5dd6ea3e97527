"""Do tokens end where morphemes end? MorphScore and its kin.

Owns the definitions. Words are encoded one by one. Sources: Arnett & Bergen 2025, "Why do language
models perform worse for morphologically complex languages?" (MorphScore: one border a word, words
without a token border left out); the Indic study, section 4.3.1 (share of correct segments).
Knows nothing of where the words come from.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vocabshift.errors import CorpusError
from vocabshift.evaluation.lines.placing import FlatSpans, flat_spans
from vocabshift.evaluation.metrics.metric import Better, Metric, Terms, ratio_rows
from vocabshift.results import Result, Results
from vocabshift.text.spec import Local, parse_spec
from vocabshift.tokenizer.engine import Engine

WORD_COLUMNS = ("full_word", "word", "wordform")
PART_COLUMNS = ("pt1", "rest")
SEGMENTS_COLUMN = "segments"


@dataclass(frozen=True)
class Morphemes:
    """A word and the parts that it is said to be made of."""

    word: str
    parts: tuple[str, ...]  # none of them empty; a word of one morpheme has one

    @cached_property  # every tokenizer asks for it
    def spells_the_word(self) -> bool:
        """Whether the parts in their order are the word; a row where they are not is damaged."""
        return "".join(self.parts) == self.word

    @cached_property
    def borders(self) -> frozenset[int]:
        """Where one part ends and the next begins, in bytes of the word's UTF-8."""
        ends = accumulate(len(part.encode()) for part in self.parts)
        return frozenset(ends) - {len(self.word.encode())}


def read_morphemes(path: str | Path) -> list[Morphemes]:
    """Rows of a CSV file (UTF-8) with a header, in order.

    The word stands in a column `full_word`, `word` or `wordform`; its parts in `pt1` and `rest`
    (MorphScore's two parts; an empty one is none), or in `segments`, with spaces between any
    number of them. Other columns are passed over. Parts are read as they are: whether they spell
    their word is `Morphemes.spells_the_word`. Raises CorpusError with the file, and the line where
    it is one, for a file that cannot be read, lacks a column, or has no row; for a row without a
    word or without parts.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(_rows(csv.DictReader(stream, strict=True), path))
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path}: not UTF-8 at byte offset {error.start}") from error
    except csv.Error as error:
        raise CorpusError(f"{path}: no CSV file ({error})") from error
    if not rows:
        raise CorpusError(f"{path}: no row with a word; a header and at least one row are needed")
    return rows


def read_morpheme_specs(specs: Iterable[str]) -> dict[str, list[Morphemes]]:
    """{language: rows} of `[lang=]FILE.csv` specs; without a language, the name of the file.

    Files of one language are put together. Errors are those of `read_morphemes`, and ValueError
    for a spec that names no file.
    """
    words: dict[str, list[Morphemes]] = {}
    for text in specs:
        spec = parse_spec(text)
        if not isinstance(spec.place, Local) or spec.place.column is not None or spec.weight != 1:
            raise ValueError(f"{text!r} is no [lang=]FILE.csv of words with their morphemes")
        path = Path(spec.place.place)
        words.setdefault(spec.language or path.stem, []).extend(read_morphemes(path))
    return words


def _rows(reader: csv.DictReader[str], path: Path) -> Iterator[Morphemes]:
    columns = reader.fieldnames or ()
    word_column = next((name for name in WORD_COLUMNS if name in columns), None)
    has_parts = all(name in columns for name in PART_COLUMNS)
    if word_column is None or not (has_parts or SEGMENTS_COLUMN in columns):
        raise CorpusError(
            f"{path}: has the columns {', '.join(map(repr, columns)) or 'none'}; a column of words "
            f"({', '.join(WORD_COLUMNS)}) is needed, and pt1 and rest, or segments"
        )
    for row in reader:
        word = (row[word_column] or "").strip()
        if has_parts:
            cells = [(row[name] or "").strip() for name in PART_COLUMNS]
        else:
            cells = (row[SEGMENTS_COLUMN] or "").split()
        parts = [cell for cell in cells if cell]
        if not word or not parts:
            raise CorpusError(f"{path}: line {reader.line_num} has no word, or no parts of it")
        yield Morphemes(word, tuple(parts))


def _metric(name: str, label: str, note: str, better: Better = "higher") -> Metric:
    return Metric(
        name,
        "morphemes",
        label,
        note,
        better,
        needs=frozenset({"morphemes"}),
        is_compared=True,
    )


METRICS = (
    _metric("morph_score", "MorphScore", "token borders that are morpheme borders"),
    _metric(
        "morph_score_as_published", "MorphScore, as published", "as the authors' program counts"
    ),
    _metric(
        "morph_segment_score",
        "MorphScore, segments",
        "share of morphemes of cut words that are cut out exactly",
    ),
    _metric(
        "morph_border_precision",
        "morpheme precision",
        "share of cuts in words that lie between morphemes",
    ),
    _metric(
        "morph_border_recall", "morpheme recall", "share of morpheme borders where a token ends"
    ),
    _metric("morph_border_f1", "morpheme F1", "of the two"),
    _metric(
        "morph_single_token_rate", "words in one token", "share of words with morphemes", "neither"
    ),
)
"""See `morph_score`."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """One word as it is cut."""

    morphemes: Morphemes
    borders: frozenset[int]  # of tokens inside the word, in bytes of it
    decoded: tuple[str, ...]  # its tokens, each decoded by itself

    @property
    def hits(self) -> int:
        """Borders of morphemes where a token ends."""
        return len(self.borders & self.morphemes.borders)

    @property
    def is_scored(self) -> bool:
        """Whether it says something: has a border to find, and a token border."""
        row = self.morphemes
        return row.spells_the_word and bool(row.borders) and bool(self.borders)

    @property
    def correct_segments(self) -> float:
        """Share of the morphemes that token borders cut out exactly."""
        edges = sorted({0, *self.morphemes.borders, len(self.morphemes.word.encode())})
        cuts = self.borders | {edges[0], edges[-1]}
        found = [
            begin in cuts and end in cuts and not any(begin < cut < end for cut in cuts)
            for begin, end in pairwise(edges)
        ]
        return sum(found) / len(found)

    @property
    def is_published_hit(self) -> bool:
        """The authors' test: one place splits the decoded tokens into the two parts."""
        parts = self.morphemes.parts
        if len(parts) != 2 or "".join(self.decoded) != "".join(parts):
            return False
        ends = accumulate(map(len, self.decoded[:-1]))
        return sum(end == len(parts[0]) for end in ends) == 1


def morph_score(
    engines: Mapping[str, Engine],
    words: Mapping[str, Sequence[Morphemes]],
    *,
    leading_space: bool = False,
    threads: int = 1,
) -> Results:
    """METRICS for each engine and language, with intervals over words.

    `words`: {language: rows of `read_morphemes`}. Words are encoded as they are (the authors'
    program does), or with a `leading_space`, as they stand inside of a text; a token border between
    the space and the word is none of the word's.

    `morph_score`: of the words with a token border, the share that has one at every morpheme
    border. With two parts, MorphScore's definition. Words of one morpheme say nothing, and rows
    whose parts do not spell the word (a third of the published Gujarati set) have no border to
    find: both are left out.
    `morph_score_as_published`: what the authors' program prints where words have two parts at most
    and no leading space; no row elsewhere. It decodes tokens one by one, so that a word in which a
    token cuts a character is a miss, and so is every row that is left out above, unless it is one
    token.
    `morph_segment_score`: of the same words as morph_score, the mean share of morphemes that are
    cut out exactly, at both ends, with no token border inside ("correct segments" of the Indic
    study, which says nothing of words in one token).
    `morph_border_precision`, `_recall`, `_f1`: token borders inside of words against morpheme
    borders, summed over all words that their parts spell, those in one token included.
    `morph_single_token_rate`: of these words, those in one token: what morph_score leaves out.
    """
    rows: list[Result] = []
    for language, of_language in words.items():
        if not of_language:
            raise CorpusError(f"no word of {language}; leave it out or give it words")
        rows += ratio_rows(
            language,
            {
                name: morph_terms(engine, of_language, leading_space=leading_space, threads=threads)
                for name, engine in engines.items()
            },
        )
    return Results(rows)


def morph_terms(
    engine: Engine, words: Sequence[Morphemes], *, leading_space: bool = False, threads: int = 1
) -> dict[str, Terms]:
    """Numerators and denominators of each metric, (n_words,) each, of one tokenizer."""
    cuts = _cuts(engine, words, leading_space, threads)

    def counted(values: Iterable[float]) -> npt.NDArray[np.float64]:
        return np.fromiter(values, dtype=np.float64, count=len(cuts))

    scored = counted(cut.is_scored for cut in cuts)
    spelled = counted(cut.morphemes.spells_the_word for cut in cuts)
    hits = counted(cut.hits for cut in cuts) * spelled
    gold = counted(len(cut.morphemes.borders) for cut in cuts) * spelled
    cut_places = counted(len(cut.borders) for cut in cuts) * spelled
    terms: dict[str, Terms] = {
        "morph_score": (scored * (hits == gold), scored),
        "morph_segment_score": (
            counted(cut.is_scored and cut.correct_segments for cut in cuts),
            scored,
        ),
        "morph_border_precision": (hits, cut_places),
        "morph_border_recall": (hits, gold),
        "morph_border_f1": (2 * hits, cut_places + gold),
        "morph_single_token_rate": (spelled * (cut_places == 0), spelled),
    }
    if not leading_space and all(len(cut.morphemes.parts) <= 2 for cut in cuts):
        several = counted(len(cut.decoded) > 1 for cut in cuts)
        published = counted(cut.is_published_hit for cut in cuts)
        terms["morph_score_as_published"] = (published * several, several)
    return terms


def _cuts(
    engine: Engine, words: Sequence[Morphemes], leading_space: bool, threads: int
) -> list[_Cut]:
    space = " " if leading_space else ""
    texts = [space + row.word for row in words]
    try:
        spans = flat_spans(engine, texts, threads=threads)
    except UnicodeEncodeError as error:
        raise CorpusError(f"a word holds half a surrogate pair: {error}") from None
    used = np.unique(spans.ids)
    alone = engine.decode_batch(used, np.arange(len(used) + 1))
    text_of = dict(zip(used.tolist(), alone, strict=True))
    decoded = [text_of[token_id] for token_id in spans.ids.tolist()]
    bounds = pairwise(spans.offsets.tolist())
    return [
        _Cut(row, of_word, tuple(decoded[start:end]))
        for row, of_word, (start, end) in zip(
            words, _borders(words, spans, len(space)), bounds, strict=True
        )
    ]


def _borders(words: Sequence[Morphemes], spans: FlatSpans, begin: int) -> Iterator[frozenset[int]]:
    """Where tokens begin or end inside of each word, which begins at byte `begin` of what was
    encoded, in bytes of the word."""
    sizes = np.array([len(row.word.encode()) for row in words])
    starts, ends = (np.clip(at - begin, 0, sizes[spans.line]) for at in (spans.starts, spans.ends))
    in_word = ends > starts
    counts = spans.per_line(in_word).tolist()
    begins, stops = starts[in_word].tolist(), ends[in_word].tolist()
    for size, (first, last) in zip(
        sizes.tolist(), pairwise(accumulate(counts, initial=0)), strict=True
    ):
        yield frozenset({*begins[first:last], *stops[first:last]} - {0, size})
