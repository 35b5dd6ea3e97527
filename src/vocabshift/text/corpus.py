"""Corpus: labelled, weighted text that can be read again and again in constant memory.

Owns which sources make up a corpus, and the language and weight of each. `selection` chooses among
their documents; `spec`, `files` and `readers` find and decode the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from vocabshift.errors import CorpusError
from vocabshift.text.documents import Documents, TextErrors
from vocabshift.text.files import find
from vocabshift.text.readers import (
    DocumentUnit,
    FileSource,
    HubSource,
    RemoteSource,
    Source,
    StandardInputSource,
    TextsSource,
    check_errors,
    check_unit,
)
from vocabshift.text.selection import (
    BudgetSample,
    LanguageBudget,
    Part,
    RomanWordLimit,
    is_written_in_roman,
)
from vocabshift.text.spec import HubDataset, Local, Remote, check_label, check_weight, parse_spec

Paths = str | Path | Iterable[str | Path]


class Corpus:
    """Text by language, made by `from_files`, `from_specs` or `from_texts`.

    Paths, suffixes, labels and weights are checked when the corpus is made; the content of a file
    is checked when it is read. Both raise ValueError or a CorpusError that names the file.
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts = tuple(parts)
        if not self._parts:
            raise CorpusError("a corpus of nothing; name at least one file, data set or text")
        if sum(isinstance(part.source, StandardInputSource) for part in self._parts) > 1:
            raise ValueError("standard input (-) is named more than once; it can be read only once")

    @classmethod
    def from_files(
        cls,
        files: Mapping[str, Paths],
        *,
        documents: DocumentUnit = "line",
        errors: TextErrors = "strict",
        column: str | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Corpus:
        """Corpus of {language: path, or a list of paths}; a path may be a folder or a glob.

        Paths are taken literally, except for `~` and globs. `documents="file"` makes every text
        file one document, its line ends included. `errors="replace"` puts U+FFFD in the place of
        bytes that are not UTF-8, which otherwise are a CorpusError. `column` names the text column
        of .jsonl, .json and .parquet files (default: `text`). `weights` default to 1.
        """
        if not isinstance(files, Mapping):
            raise TypeError(
                f"files is {type(files).__name__}; give {{language: path}}, or use from_specs"
            )
        check_unit(documents)
        check_errors(errors)
        parts = [
            Part(FileSource(str(path), find(path), documents, column, errors), language, weight)
            for language, weight in _weighted(files, weights)
            for path in _as_list(files[language])
        ]
        return cls(parts)

    @classmethod
    def from_specs(
        cls,
        specs: Iterable[str],
        *,
        documents: DocumentUnit = "line",
        errors: TextErrors = "strict",
    ) -> Corpus:
        """Corpus of SPECs, as on the command line (`vocabshift.text.spec` has the grammar).

        Without `lang=` the language is None; it is never guessed from file or folder names.
        `documents` and `errors` as in `from_files`.
        """
        if isinstance(specs, str):
            raise TypeError("specs is a str; give a list of SPECs")
        check_unit(documents)
        check_errors(errors)
        parts = []
        for text in specs:
            spec = parse_spec(text)
            source: Source
            if isinstance(spec.place, Local):
                place, column = spec.place.place, spec.place.column
                source = FileSource(place, find(place), documents, column, errors)
            elif isinstance(spec.place, HubDataset):
                source = HubSource(spec.place)
            elif isinstance(spec.place, Remote):
                source = RemoteSource(spec.place.uri, documents, spec.place.column, errors)
            else:
                source = StandardInputSource(documents, errors)
            parts.append(Part(source, spec.language, spec.weight))
        return cls(parts)

    @classmethod
    def from_texts(
        cls,
        texts: Mapping[str, Iterable[str]] | Iterable[str],
        *,
        weights: Mapping[str, float] | None = None,
    ) -> Corpus:
        """Corpus of strings, one document each: {language: strings}, or strings without labels.

        An iterator can be read only once, so it is read into memory here.
        """
        if not isinstance(texts, Mapping):
            if weights is not None:
                raise ValueError("weights need languages; give texts as {language: strings}")
            return cls([Part(_texts_source("texts", texts))])
        return cls(
            Part(_texts_source(f"texts of {language}", texts[language]), language, weight)
            for language, weight in _weighted(texts, weights)
        )

    def batches(self, *, threads: int = 1) -> Iterator[Documents]:
        """All non-empty documents, in blocks of about 8 MB, each of one language.

        Each call starts from the beginning. Raises CorpusError at the end if there was no document.
        """
        has_text = False
        for part in self._parts:
            for documents in part.read(threads):
                has_text = True
                yield documents
        if not has_text:
            names = ", ".join(part.name for part in self._parts)
            raise CorpusError(f"the corpus holds no text: {names}; name files that are not empty")

    def texts(self) -> Iterator[tuple[str | None, str]]:
        """(language, document) pairs; weights are ignored."""
        for documents in self.batches():
            for text in documents.texts():
                yield documents.language, text

    def require_text(self) -> None:
        """Raise CorpusError if there is no document; reads no further than the first."""
        next(self.batches())

    @property
    def parts(self) -> tuple[Part, ...]:
        """The sources in order, each with its label and weight."""
        return self._parts

    @property
    def languages(self) -> list[str]:
        """Labels in the order given; unlabelled parts are skipped."""
        labels = (part.language for part in self._parts)
        return list(dict.fromkeys(label for label in labels if label is not None))

    @property
    def paths(self) -> list[Path]:
        """Local files that the corpus is read from."""
        sources = (part.source for part in self._parts)
        return [
            file.path
            for source in sources
            if isinstance(source, FileSource)
            for file in source.files
        ]

    @property
    def n_bytes_hint(self) -> int | None:
        """Bytes on disk if every source is plain text, else None. For progress bars."""
        hints = [part.n_bytes_hint for part in self._parts]
        return None if None in hints else sum(cast("list[int]", hints))

    def select(self, languages: str | Iterable[str]) -> Corpus:
        """The parts in these languages, in their order; ValueError for a label not present."""
        wanted = [languages] if isinstance(languages, str) else list(languages)
        unknown = [label for label in wanted if label not in self.languages]
        if unknown or not wanted:
            what = f"no {', '.join(map(repr, unknown))} in" if unknown else "no language chosen of"
            have = ", ".join(self.languages) or "none; label files as lang=PATH"
            raise ValueError(f"{what} the corpus; its languages: {have}")
        return Corpus(part for part in self._parts if part.language in wanted)

    def limit_roman_words(self, most: int) -> Corpus:
        """Drop lines with more than `most` words in Roman script, as in the Indic study.

        Affects only languages that `text/languages.py` knows to be written in another script; the
        rest are unchanged. ValueError if the corpus has no such language.
        """
        if most < 0:
            raise ValueError(f"most is {most} Roman words a line; give 0 or more")
        concerned = [is_written_in_roman(part.language) is False for part in self._parts]
        if not any(concerned):
            have = ", ".join(self.languages) or "none"
            raise ValueError(
                "no language of the corpus is known to be written in a script other than Latin; "
                f"its languages: {have}; label files by their codes, such as hi=PATH"
            )
        limit = RomanWordLimit(most)
        return Corpus(
            part.choosing(limit) if is_concerned else part
            for part, is_concerned in zip(self._parts, concerned, strict=True)
        )

    def limit_bytes(
        self, n_bytes: int | Mapping[str, int] | Mapping[str | None, int], *, seed: int = 0
    ) -> Corpus:
        """At most `n_bytes` of text of each language, or of those named; weights do not matter.

        Documents are drawn at random from all sources of a language together and keep their order.
        The draw depends on `seed` and on the text of that language only. It takes one more pass
        over that text. ValueError for a label not present or a budget below 1 byte.
        """
        limits: dict[str | None, int] = {}
        if isinstance(n_bytes, Mapping):
            limits.update(n_bytes)
        else:
            limits = dict.fromkeys((part.language for part in self._parts), n_bytes)
        budgets = {}
        for label, limit in limits.items():
            sources = [part for part in self._parts if part.language == label]
            if not sources:
                have = ", ".join(self.languages) or "none; label files as lang=PATH"
                raise ValueError(f"no {label!r} in the corpus; its languages: {have}")
            if limit < 1:
                raise ValueError(f"{limit} bytes of a language are no text; give 1 or more")
            budgets[label] = LanguageBudget(label, limit, seed, sources)
        places: Counter[str | None] = Counter()
        parts = []
        for part in self._parts:
            budget = budgets.get(part.language)
            parts.append(
                part.choosing(BudgetSample(budget, places[part.language])) if budget else part
            )
            places[part.language] += 1
        return Corpus(parts)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{'' if part.language is None else part.language + '='}{part.name}"
            + ("" if part.weight == 1 else f"@{part.weight:g}")
            for part in self._parts
        )
        return f"Corpus({shown})"


def _weighted(
    of_language: Mapping[str, object], weights: Mapping[str, float] | None
) -> Iterator[tuple[str, float]]:
    weights = weights or {}
    for label in weights:
        if label not in of_language:
            raise ValueError(f"a weight for {label!r}, which the corpus does not have")
    for language in of_language:
        yield check_label(language), check_weight(weights.get(language, 1.0), language)


def _as_list(paths: Paths) -> list[str | Path]:
    return [paths] if isinstance(paths, str | Path) else list(paths)


def _texts_source(name: str, texts: Iterable[str]) -> TextsSource:
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise TypeError(
            f"{name}: {type(texts).__name__} given; give an iterable of str, such as a list"
        )
    return TextsSource(name, list(texts) if isinstance(texts, Iterator) else texts)
