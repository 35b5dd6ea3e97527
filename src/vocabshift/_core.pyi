"""Types of the C++ core; held against the built module by tests/unit/test_core_stubs.py."""

import enum
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

_Buffer = bytes | bytearray | memoryview
_Progress = Callable[[int, int], None] | None
_Int64 = NDArray[np.int64]

def first_invalid_utf8(data: _Buffer, threads: int = 1) -> int: ...
def line_spans(data: _Buffer, threads: int = 1) -> tuple[_Int64, _Int64]: ...
def fingerprint(
    data: _Buffer,
    starts: _Int64 | None = None,
    ends: _Int64 | None = None,
    seed: int = 0,
    threads: int = 1,
) -> int: ...
def to_nfc(text: str) -> str | None: ...
def char_class(code_point: int) -> int: ...
def script(code_point: int) -> str: ...

class Pattern(enum.Enum):
    GPT2 = ...
    CL100K = ...
    CL100K_TIKTOKEN = ...
    CL100K_POSSESSIVE = ...
    QWEN2 = ...
    QWEN35 = ...
    O200K = ...
    KIMI = ...
    TEKKEN = ...
    DEEPSEEK = ...
    MATRA = ...
    INDIC = ...
    GPT2_REPAIRED = ...
    CL100K_REPAIRED = ...
    QWEN2_REPAIRED = ...
    QWEN35_REPAIRED = ...
    TEKKEN_REPAIRED = ...
    WALLS = ...
    INDIC_WALLS = ...
    DIGIT_TRIPLES = ...
    HAN = ...

class SentenceEnds:
    def __init__(self, terminals: str, period: bool) -> None: ...

class SyllableRules:
    def __init__(self, scripts: list[str], linkers: str, conjuncts: list[str]) -> None: ...

class JoinedWords:
    def __init__(self, words: Pattern) -> None: ...

class CharacterRuns:
    def __init__(
        self, class_bits: int, ranges: Sequence[tuple[int, int]], longest: int, cut: str
    ) -> None: ...

class ByteRuns:
    def __init__(self, bytes: bytes, length: int) -> None: ...

class Automaton:
    @staticmethod
    def compile(
        regex: str, behavior: str = "Isolated", invert: bool = False
    ) -> Automaton | None: ...

class PreTokenizer:
    def __init__(
        self,
        steps: Sequence[
            Pattern
            | SentenceEnds
            | SyllableRules
            | JoinedWords
            | CharacterRuns
            | Automaton
            | ByteRuns
        ],
    ) -> None: ...
    def split(self, text: str) -> list[str]: ...

class Stopped(enum.Enum):
    VOCAB_SIZE = ...
    MIN_FREQUENCY = ...
    NO_PAIR_LEFT = ...
    FLOOR = ...
    MEMORY = ...

class WordCounter:
    def __init__(
        self,
        pre_tokenizer: PreTokenizer,
        threads: int = 1,
        memory_bytes: int = 0,
        spill_folder: str = ".",
    ) -> None: ...
    def add(
        self,
        data: _Buffer,
        starts: _Int64,
        ends: _Int64,
        group: int = 0,
        is_checked: bool = False,
    ) -> None: ...
    def add_counted(
        self, data: _Buffer, ends: _Int64, counts: NDArray[np.uint64], group: int = 0
    ) -> None: ...
    def add_words(
        self, data: _Buffer, ends: _Int64, counts: NDArray[np.uint64], group: int = 0
    ) -> None: ...
    def split_words(self, inner: PreTokenizer) -> WordCounter: ...
    @property
    def group_count(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    def sorted_blocks(
        self,
        visit: Callable[[int, bytes, _Int64, NDArray[np.uint64]], None],
        block_bytes: int = ...,
    ) -> None: ...
    def size(self, group: int) -> int: ...
    def occurrences(self, group: int) -> int: ...
    def words(self, group: int) -> list[tuple[bytes, int]]: ...
    def joined_words(self, weights: list[int]) -> list[tuple[bytes, int, int]]: ...
    def save(self, path: str) -> None: ...
    @staticmethod
    def load(path: str, memory_bytes: int = 0, spill_folder: str = ".") -> WordCounter: ...

class Trained:
    @property
    def merges(self) -> NDArray[np.uint32]: ...
    @property
    def counts(self) -> NDArray[np.uint64]: ...
    @property
    def tokens(self) -> list[bytes]: ...
    @property
    def stopped(self) -> Stopped: ...
    @property
    def training_tokens(self) -> int: ...
    @property
    def peak_memory_bytes(self) -> int: ...
    @property
    def bound(self) -> int: ...
    @property
    def dropped_words(self) -> int: ...
    @property
    def dropped_occurrences(self) -> int: ...
    @property
    def dropped_below(self) -> int: ...
    @property
    def served(self) -> list[int]: ...
    @property
    def language_tokens(self) -> list[int]: ...
    @property
    def measured_tokens(self) -> list[int]: ...

class MergeRule:
    def __init__(
        self,
        *,
        max_token_bytes: int = 0,
        max_words: int = 0,
        forbidden: set[bytes] = ...,
        terminals: str = "",
        whole_characters: bool = False,
        whole_first: bool = False,
        conjoiners: str = "",
        pieces: PieceRule | None = None,
    ) -> None: ...
    def allows(self, product: bytes) -> bool: ...

class PieceRule:
    def __init__(
        self,
        *,
        max_characters: int = 16,
        split_by_script: bool = True,
        split_by_number: bool = True,
        split_digits: bool = True,
        split_by_space: bool = True,
        space_is_suffix: bool = False,
        space_runs: bool = True,
        digits: str = "",
        never: str = "",
    ) -> None: ...
    def allows(self, text: bytes) -> bool: ...
    def may_join(self, left: bytes, right: bytes) -> bool: ...

class TokenGroups:
    def __init__(self, rule: PieceRule, tokens: list[bytes], unmergeable: list[int]) -> None: ...
    def add_to(
        self, counter: WordCounter, ids: NDArray[np.int32], offsets: _Int64, group: int = 0
    ) -> int: ...
    def count(self, ids: NDArray[np.int32], offsets: _Int64, threads: int = 1) -> int: ...

def count_characters(
    data: _Buffer, starts: _Int64, ends: _Int64, threads: int = 1
) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]: ...
def split_tokens(
    tokens: list[bytes],
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]: ...

_Sequences = tuple[NDArray[np.int32] | _Int64, _Int64, _Int64]

def edit_distances(one: _Sequences, other: _Sequences) -> _Int64: ...

_Side = tuple[NDArray[np.int32], _Int64, _Int64, _Int64]

def place_tokens(
    lines: list[str],
    ids: NDArray[np.int32],
    offsets: _Int64,
    token_bytes: _Buffer | NDArray[np.uint8],
    token_bounds: _Int64,
) -> tuple[_Int64, _Int64, NDArray[np.int8]]: ...
def kept_tokens(
    before: _Side, after: _Side, words: _Int64, first: _Int64, n_text: NDArray[np.int32]
) -> tuple[_Int64, _Int64]: ...

class WordWeights:
    def __init__(
        self,
        of_group: list[int],
        *,
        unit: int = 1,
        target: int = 1,
        scripts: list[tuple[str, str]] = ...,
        smoothing: float = 0.0,
    ) -> None: ...

class SentenceWeights:
    def __init__(
        self, *, scripts: list[tuple[str, str]], terminals: str, unit: int, target: int
    ) -> None: ...
    def split(self, document: str) -> list[tuple[int, int]]: ...

class TieBreak(enum.Enum):
    IDS = ...
    BYTE_IMAGES = ...
    TEXTS = ...
    LAST_BYTE_IMAGES = ...

class Parity:
    def __init__(
        self,
        languages: int,
        of_group: list[int],
        parallel: WordCounter | None = None,
        of_parallel_group: list[int] = ...,
        *,
        window: int = 0,
        alpha: float = 2.0,
    ) -> None: ...

def train_bpe(
    counter: WordCounter,
    weights: WordWeights,
    vocab_size: int,
    min_frequency: int = 1,
    rule: MergeRule = ...,
    encoder: Encoder | None = None,
    tokens: list[bytes] = ...,
    memory_bytes: int = 0,
    threads: int = 1,
    chunks_per_thread: int = 4096,
    tie_break: TieBreak = ...,
    keep_words: bool = False,
    parity: Parity | None = None,
    progress: _Progress = None,
) -> Trained: ...

class Duplicates(enum.Enum):
    REUSE_ID = ...
    REUSE_UNHELD = ...

def continue_bpe(
    counter: WordCounter,
    weights: WordWeights,
    vocab_size: int,
    encoder: Encoder | None,
    tokens: list[bytes],
    held: list[int],
    *,
    min_frequency: int = 1,
    rule: MergeRule = ...,
    tie_break: TieBreak = ...,
    duplicates: Duplicates = ...,
    keep_words: bool = False,
    memory_bytes: int = 0,
    threads: int = 1,
    progress: _Progress = None,
) -> Trained: ...
def replay_merges(
    counter: WordCounter,
    encoder: Encoder | None,
    merges: NDArray[np.uint32],
    progress: _Progress = None,
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]: ...

class SuperwordStage:
    def __init__(
        self,
        encoder: Encoder,
        tokens: list[bytes],
        pre_tokenizer: PreTokenizer,
        threads: int = 1,
        *,
        file: str = "",
        sentences: SentenceWeights | None = None,
        counted: bool = False,
        resume: bool = False,
    ) -> None: ...
    def add(
        self,
        data: _Buffer,
        starts: _Int64,
        ends: _Int64,
        group: int = 0,
        counts: NDArray[np.uint64] | None = None,
    ) -> None: ...
    def finish(self) -> None: ...
    @property
    def tokens(self) -> int: ...
    def train(
        self,
        weights: list[int],
        vocab_size: int,
        min_frequency: int = 1,
        rule: MergeRule = ...,
        memory_bytes: int = 0,
        progress: _Progress = None,
    ) -> Trained: ...

class BorderPass:
    def __init__(
        self,
        encoder: Encoder,
        tokens: list[bytes],
        pre_tokenizer: PreTokenizer,
        weights: list[int],
        cells: int,
        threads: int = 1,
        sentences: SentenceWeights | None = None,
    ) -> None: ...
    def add(self, data: _Buffer, starts: _Int64, ends: _Int64, group: int = 0) -> None: ...
    @property
    def counts(self) -> NDArray[np.uint64]: ...

class RunPass:
    def __init__(
        self,
        encoder: Encoder,
        tokens: list[bytes],
        pre_tokenizer: PreTokenizer,
        is_frequent: bytes,
        rule: MergeRule,
        threads: int = 1,
        sentences: SentenceWeights | None = None,
    ) -> None: ...
    def add(
        self, data: _Buffer, starts: _Int64, ends: _Int64, counter: WordCounter, group: int = 0
    ) -> None: ...
    @property
    def tokens(self) -> int: ...

class CountedRuns:
    def __init__(self, tokens: list[bytes], groups: int, weighted: bool = False) -> None: ...
    def add(
        self, data: _Buffer, ends: _Int64, counts: NDArray[np.uint64], group: int = 0
    ) -> None: ...
    @property
    def memory_bytes(self) -> int: ...
    def train(
        self,
        weights: list[int],
        vocab_size: int,
        min_frequency: int = 1,
        rule: MergeRule = ...,
        *,
        bound: int,
        tokens: int,
        threads: int = 1,
        progress: _Progress = None,
    ) -> Trained: ...

def guess_bound(counts: NDArray[np.uint64], wanted: int) -> int: ...
def lower_bound(bound: int, found: int, wanted: int) -> int: ...

class AddedToken:
    def __init__(
        self,
        content: str,
        id: int,
        lstrip: bool = False,
        rstrip: bool = False,
        is_text: bool = False,
    ) -> None: ...

class Encoder:
    def __init__(
        self,
        tokens: list[bytes],
        ids: NDArray[np.uint32],
        merges: NDArray[np.uint32],
        *,
        byte_level: bool = True,
        ignore_merges: bool = False,
        byte_fallback: bool = False,
        unk: int | None = None,
        fuse_unk: bool = False,
        space: str = " ",
    ) -> None: ...
    def last_merges(self) -> NDArray[np.int64]: ...

def read_model(data: bytes, max_id: int) -> tuple[ModelStrings, bytes] | None: ...

class ModelStrings:
    @staticmethod
    def of(
        vocab: dict[str, int], merges: tuple[tuple[str, str], ...], max_id: int
    ) -> ModelStrings | None: ...
    @staticmethod
    def of_bytes(tokens: list[bytes], merges: NDArray[np.uint32]) -> ModelStrings: ...
    def __len__(self) -> int: ...
    @property
    def n_merges(self) -> int: ...
    @property
    def highest_id(self) -> int: ...
    def find(self, token: str) -> int | None: ...
    def vocab(self) -> dict[str, int]: ...
    def pairs(self, vocab: dict[str, int]) -> tuple[tuple[str, str], ...]: ...
    def extended(
        self,
        vocab: dict[str, int],
        merges: Sequence[tuple[str, str]],
        *,
        merges_first: bool,
        max_id: int,
    ) -> ModelStrings | None: ...
    def are_merges(self, pairs: Sequence[tuple[str, str]]) -> list[bool]: ...
    def names_by_id(self) -> list[str]: ...
    def bytes_by_id(self, byte_level: bool) -> list[bytes]: ...
    def parts_by_id(self) -> list[int]: ...
    def vocab_json(self) -> str: ...
    def merges_json(self) -> str: ...
    def compile(
        self,
        *,
        byte_level: bool,
        ignore_merges: bool = False,
        byte_fallback: bool = False,
        unk: int | None = None,
        fuse_unk: bool = False,
        space: str = " ",
    ) -> Encoder: ...

class Metaspace:
    def __init__(self, space: str, prepend: str) -> None: ...

class TextEncoder:
    def __init__(
        self,
        encoder: Encoder,
        *,
        raw_tokens: list[AddedToken] = ...,
        normalized_tokens: list[AddedToken] = ...,
        prepend: str = "",
        space_becomes: str = "",
        to_nfc: bool = False,
        metaspace: Metaspace | None = None,
        pre_tokenizer: PreTokenizer | None = None,
    ) -> None: ...
    def encode(self, text: str) -> NDArray[np.int32] | None: ...
    def encode_normalized(self, text: str, is_first: bool = True) -> NDArray[np.int32]: ...
    def encode_pieces(self, pieces: list[str]) -> NDArray[np.int32]: ...
    def encode_batch(
        self, texts: list[str], threads: int = 1
    ) -> tuple[NDArray[np.int32], _Int64, _Int64]: ...
    def encode_documents(
        self, data: _Buffer, starts: _Int64, ends: _Int64, threads: int = 1
    ) -> tuple[NDArray[np.int32], _Int64, _Int64]: ...
    def has_added(self, data: _Buffer) -> bool: ...
    def split_added(self, text: str, normalized: bool) -> list[tuple[str, int | None]]: ...

class BoundlessTrained:
    @property
    def merges(self) -> NDArray[np.uint32]: ...
    @property
    def counts(self) -> NDArray[np.uint64]: ...
    @property
    def is_supermerge(self) -> NDArray[np.bool_]: ...
    @property
    def tokens(self) -> list[bytes]: ...
    @property
    def stopped(self) -> Stopped: ...
    @property
    def peak_memory_bytes(self) -> int: ...

class BoundlessStage:
    def __init__(
        self,
        tokens: list[bytes],
        merges: NDArray[np.uint32],
        counts: NDArray[np.uint64],
        may_join: list[bool],
        pieces: PreTokenizer,
        words: PreTokenizer,
        weights: list[int],
        vocab_size: int,
        min_frequency: int = 1,
        expected_words: int = 0,
        threads: int = 1,
    ) -> None: ...
    def count_borders(
        self,
        data: _Buffer,
        starts: _Int64,
        ends: _Int64,
        group: int = 0,
        piece_ends: _Int64 | None = None,
        word_ends: _Int64 | None = None,
    ) -> None: ...
    def count_runs(
        self,
        data: _Buffer,
        starts: _Int64,
        ends: _Int64,
        group: int = 0,
        piece_ends: _Int64 | None = None,
        word_ends: _Int64 | None = None,
    ) -> None: ...
    @property
    def floor(self) -> int: ...
    def train(
        self,
        max_token_bytes: int = 0,
        max_words: int = 0,
        forbidden: set[bytes] = ...,
        progress: _Progress = None,
    ) -> BoundlessTrained: ...

class BoundlessSegmentation:
    def __init__(
        self,
        words: Encoder,
        exported: Encoder,
        supermerges: NDArray[np.uint32],
        may_join: list[bool],
        lengths: list[int],
        pieces: PreTokenizer,
        word_pattern: PreTokenizer,
        threads: int = 1,
    ) -> None: ...
    def add(
        self,
        data: _Buffer,
        starts: _Int64,
        ends: _Int64,
        piece_ends: _Int64 | None = None,
        word_ends: _Int64 | None = None,
    ) -> None: ...
    @property
    def boundless_tokens(self) -> int: ...
    @property
    def exported_tokens(self) -> int: ...
    @property
    def documents(self) -> int: ...
    @property
    def documents_differing(self) -> int: ...

class MergeStack:
    def __init__(self, max_tokens: int) -> None: ...
    def push(self, token: bytes) -> int: ...
    @property
    def parts(self) -> list[bytes]: ...
    @property
    def size(self) -> int: ...
    @property
    def tokens(self) -> list[bytes]: ...
    @property
    def merges(self) -> NDArray[np.uint32]: ...

def words_by_script(
    pre_tokenizer: PreTokenizer, data: _Buffer, starts: _Int64, ends: _Int64, threads: int = 1
) -> tuple[_Int64, _Int64, NDArray[np.uint8]]: ...
def script_names() -> list[str]: ...
def id_lists(ids: NDArray[np.int32], bounds: _Int64) -> list[list[int]]: ...
def count_tokens(
    encoder: Encoder,
    pre_tokenizer: PreTokenizer,
    data: _Buffer,
    starts: _Int64,
    ends: _Int64,
    threads: int = 1,
) -> int: ...

class PairScore:
    def __init__(self, is_high: list[bool], alpha: float, power: float) -> None: ...
    @property
    def languages(self) -> int: ...

class PickyComparison:
    @property
    def words(self) -> int: ...
    @property
    def words_differing(self) -> int: ...
    @property
    def replayed_tokens(self) -> int: ...
    @property
    def exported_tokens(self) -> int: ...
    @property
    def tokens_differing(self) -> int: ...

class PickyTrained:
    @property
    def events(self) -> NDArray[np.uint32]: ...
    @property
    def counts(self) -> NDArray[np.uint64]: ...
    @property
    def parts(self) -> list[list[int]]: ...
    @property
    def tokens(self) -> list[bytes]: ...
    @property
    def present(self) -> list[bool]: ...
    @property
    def stopped(self) -> Stopped: ...
    @property
    def replayed_tokens(self) -> int: ...
    @property
    def peak_memory_bytes(self) -> int: ...
    def compare(self, exported: Encoder, lengths: list[int]) -> PickyComparison: ...

def train_picky(
    counter: WordCounter,
    groups: list[tuple[int, int]],
    vocab_size: int,
    min_frequency: int = 1,
    rule: MergeRule = ...,
    *,
    threshold: float = 1.0,
    score: PairScore | None = None,
    progress: _Progress = None,
) -> PickyTrained: ...
