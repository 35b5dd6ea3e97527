"""The tasks that papers evaluate models by: languages, examples, metric, and where files may lie.

Owns the names that `--tasks` takes and what each means in lm-eval. Prompts are in `tasks/*.yaml` or
in lm-eval itself; the papers' scores are in `report/published_scores.jsonl`. Imports nothing heavy,
so that `--list` is fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vocabshift.results import UNLABELLED

IST = "IST"  # 2511.03237, section 4.2, 4.6 and appendix B
BORDERS = ("heal", "split", "lm-eval")
"""How an answer is scored if a token spans the border to its context; the first is the default."""

CONTINUED = "continued BPE"  # section 5.2 and appendix D


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The paths of a task's files below `--data`; "{}" is replaced by the language."""

    builder: str  # of `datasets`: "json" or "csv"
    files: Mapping[str, str]  # by split
    options: Mapping[str, Any] = field(default_factory=dict)  # of the builder
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the task's config
    languages: tuple[str, ...] = ()  # that only files have


@dataclass(frozen=True, slots=True)
class TaskFamily:
    """One benchmark in all its languages."""

    name: str
    about: str
    tasks: Mapping[str, str]  # language label -> name in lm-eval
    shots: int  # examples before a question
    metric: str  # the one that the papers report, as lm-eval names it
    papers: tuple[str, ...] = ()
    local: LocalFiles | None = None


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """One task to run: a family in a language, or any task of lm-eval (family None)."""

    name: str  # first part of the metric in Results
    language: str
    task: str  # in lm-eval
    shots: int | None  # None: as the task says
    family: TaskFamily | None = None

    @property
    def label(self) -> str:
        """As `--tasks` takes it."""
        return self.name if self.family is None else f"{self.name}:{self.language}"


_MAJOR = ("bn", "gu", "hi", "kn", "ml", "mr", "or", "pa", "ta", "te")
_SIB = (
    *("as", "bn", "de", "en", "et", "gu", "hi", "kn", "ks_Arab", "ks_Deva", "mai", "ml", "mni"),
    *("mr", "ne", "or", "pa", "sa", "sat", "sd", "ta", "te", "ur"),
)
_BELEBELE = dict(
    code.split("=")
    for code in [
        "as=asm_Beng",
        "bn=ben_Beng",
        "de=deu_Latn",
        "en=eng_Latn",
        "et=est_Latn",
        "gu=guj_Gujr",
        "hi=hin_Deva",
        "kn=kan_Knda",
        "ml=mal_Mlym",
        "mr=mar_Deva",
        "ne=npi_Deva",
        "or=ory_Orya",
        "pa=pan_Guru",
        "sd=snd_Arab",
        "ta=tam_Taml",
        "te=tel_Telu",
        "ur=urd_Arab",
    ]
)
_XCOPA = ("et", "ta", "ht", "id", "it", "qu", "sw", "th", "tr", "vi", "zh")
_TSV = {"sep": "\t", "quoting": 3}  # no quotes: a sentence may begin with one
_FROM_TEST = {"fewshot_split": "test", "validation_split": None}


def _own(name: str, languages: Sequence[str]) -> dict[str, str]:
    return {language: f"{name}_{language}" for language in languages}


_FAMILIES = (
    TaskFamily(
        "sib200",
        "topic of a sentence, 7 topics",
        _own("sib200", _SIB),
        *(5, "acc", (CONTINUED,)),
        LocalFiles(
            "csv",
            {
                "train": "sib200/{}/train.tsv",
                "validation": "sib200/{}/dev.tsv",
                "test": "sib200/{}/test.tsv",
            },
            _TSV,
        ),
    ),
    TaskFamily(
        "xcopa",
        "which of two is the cause or effect",
        _own("xcopa", _XCOPA),
        *(5, "acc", (CONTINUED,)),
        LocalFiles(
            "json", {"validation": "xcopa/{0}/val.{0}.jsonl", "test": "xcopa/{0}/test.{0}.jsonl"}
        ),
    ),
    TaskFamily(
        "belebele",
        "questions on a passage, 4 choices",
        {label: f"belebele_{code}" for label, code in _BELEBELE.items()},
        *(5, "acc", (CONTINUED,)),
    ),
    TaskFamily(
        "winogrande",
        "who is meant, 2 choices",
        {"en": "winogrande", "et": "winogrande_et"},
        *(0, "acc", (IST, CONTINUED)),
    ),
    TaskFamily(
        "flores",
        "translation of single sentences",
        _own(
            "flores",
            [f"{a}-{b}" for other in ("et", *_MAJOR) for a, b in (("en", other), (other, "en"))],
        ),
        *(5, "chrf", (CONTINUED,)),
        LocalFiles("flores", {}),
    ),
    TaskFamily(
        "indic_copa",
        "xcopa for India",
        _own("indic_copa", ("as", *_MAJOR, "ne", "sa", "ur")),
        *(0, "acc", (IST,)),
    ),
    TaskFamily(
        "indic_sentiment",
        "is a review positive",
        _own("indic_sentiment", ("as", *_MAJOR, "ur")),
        *(0, "acc", (IST,)),
    ),
    TaskFamily(
        "indic_xnli",
        "does it follow, 3 choices",
        _own("indic_xnli", ("as", *_MAJOR)),
        *(0, "acc", (IST,)),
    ),
    TaskFamily(
        "indic_paraphrase",
        "do two sentences mean the same",
        _own("indic_paraphrase", ("as", *(code for code in _MAJOR if code != "ta"))),
        *(0, "acc", (IST,)),
    ),
    TaskFamily("milu", "Indian exam questions", _own("milu", (*_MAJOR, "en")), *(0, "acc", (IST,))),
    TaskFamily(
        "arc_challenge_indic",
        "science questions, translated",
        _own("arc_challenge_indic", _MAJOR),
        *(25, "acc", (IST,)),
    ),
    TaskFamily(
        "triviaqa_indic",
        "trivia questions, translated, 4 choices",
        _own("triviaqa_indic", _MAJOR),
        *(5, "acc", (IST,)),
    ),
    TaskFamily(
        "mmlu_indic",
        "exam questions, translated",
        _own("mmlu_indic", ("en", *_MAJOR)),
        *(5, "acc", ()),
        LocalFiles(
            "json",
            {"test": "indic-mmlu-mila/{}.jsonl"},
            changes=_FROM_TEST,
            languages=(*("as", "brx", "doi", "kok", "ks", "mai", "mni", "ne", "sa", "sat", "sd"),),
        ),
    ),
    TaskFamily("mmlu", "exam questions, 57 subjects", {"en": "mmlu"}, 5, "acc", (IST,)),
    TaskFamily(
        "gsm8k",
        "school mathematics, answered in words",
        {"en": "gsm8k"},
        *(5, "exact_match", (IST,)),
        LocalFiles("json", {"train": "gsm8k/train.jsonl", "test": "gsm8k/test.jsonl"}),
    ),
    TaskFamily(
        "mgsm",
        "school mathematics, answered with a number",
        _own("mgsm", ("bn", "de", "en", "te")),
        *(5, "exact_match", ()),
        LocalFiles(
            "csv", {"test": "mgsm/mgsm_{}.tsv"}, {**_TSV, "names": ["question", "answer_number"]}
        ),
    ),
    TaskFamily("hellaswag", "how does it go on", {"en": "hellaswag"}, 10, "acc", (IST,)),
    TaskFamily("arc_easy", "easy science questions", {"en": "arc_easy"}, 25, "acc", (IST,)),
    TaskFamily("arc_challenge", "science questions", {"en": "arc_challenge"}, 25, "acc", (IST,)),
    TaskFamily("drop", "reading and counting", {"en": "drop"}, 0, "f1", (IST,)),
    TaskFamily("triviaqa", "trivia questions", {"en": "triviaqa"}, 5, "exact_match", (IST,)),
    TaskFamily("commonsense_qa", "everyday sense", {"en": "commonsense_qa"}, 0, "acc", (IST,)),
    TaskFamily("openbookqa", "elementary science", {"en": "openbookqa"}, 0, "acc", (IST,)),
)

FAMILIES: Mapping[str, TaskFamily] = {family.name: family for family in _FAMILIES}

SUITES: Mapping[str, tuple[str, ...]] = {
    "ist-8": (
        *("hellaswag", "commonsense_qa", "openbookqa", "winogrande:en", "gsm8k", "arc_easy"),
        *("arc_challenge", "mmlu", "drop", "indic_copa", "indic_sentiment", "indic_xnli"),
        *("indic_paraphrase", "milu", "arc_challenge_indic", "triviaqa_indic"),
    ),
    "ist-11": (
        *("winogrande:en", "gsm8k", "arc_challenge", "mmlu"),
        *("indic_copa", "indic_sentiment", "indic_xnli", "indic_paraphrase"),
    ),
    "continued-bpe-5": (
        *("flores:en-et,et-en", "winogrande:et,en", "belebele:et,en", "sib200:et,en", "xcopa:et"),
    ),
}
"""The tasks of a paper's table."""


def requests_of(specs: Sequence[str], shots: int | None = None) -> list[TaskRequest]:
    """The tasks that `--tasks` names, each once, in order.

    A spec is a family ("sib200": all its languages), a family with languages ("sib200:hi,ta"), a
    suite ("ist-8"), or the name of any other task or group of lm-eval. `shots` replaces the
    papers' number of examples. ValueError for a language that a family lacks.
    """
    found: dict[str, TaskRequest] = {}
    for spec in specs:
        for part in SUITES.get(spec, (spec,)):
            for request in _expand(part, shots):
                found.setdefault(request.label, request)
    return list(found.values())


def _expand(spec: str, shots: int | None) -> list[TaskRequest]:
    name, has_languages, languages = spec.partition(":")
    family = FAMILIES.get(name)
    if family is None:
        return [TaskRequest(spec, UNLABELLED, spec, shots)]
    known = dict(family.tasks)
    if family.local is not None:  # whether the files are there shows when they are read
        known |= _own(name, family.local.languages)
    chosen = languages.split(",") if has_languages else list(family.tasks)
    lacking = [language for language in chosen if language not in known]
    if lacking:
        raise ValueError(
            f"{name} has no language {lacking[0]!r}; it has {', '.join(sorted(known))}"
        )
    n_shots = family.shots if shots is None else shots
    return [TaskRequest(name, label, known[label], n_shots, family) for label in chosen]
