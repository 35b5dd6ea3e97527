"""Normalizers that can travel inside ``tokenizer.json``: by name, and as a function on text.

A name is one step ("nfc"), a step with its scripts ("fifth-case:Devanagari,Bengali"), or several
steps joined by "+", which run in that order ("nfc+fifth-case"); "indic-study" is short for several.
The default everywhere is None: the text is unchanged. `tokenizers` runs the steps, so that training
sees what the exported tokenizer will see (its Unicode tables differ from Python's).
`indic_spelling` defines the steps for the scripts of India, `arabic_spelling` for Arabic script.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vocabshift.text import arabic_spelling, indic_spelling
from vocabshift.text.indic_spelling import Replacement, Rule

Spec = dict[str, Any]

RULES: Mapping[str, Rule] = {**indic_spelling.RULES, **arabic_spelling.RULES}
SHORT = {
    "indic-study": "spaces+punctuation+no-joiners+nukta+vowel-signs+dandas+visarga"
    "+arabic-forms+arabic-letters+fifth-case"
}
"""Short name of several steps, and these."""

NORMALIZERS: Mapping[str, str] = {
    "nfc": "Unicode's canonical form, composed",
    "nfd": "Unicode's canonical form, decomposed",
    "nfkc": "Unicode's compatibility form, composed",
    "nfkd": "Unicode's compatibility form, decomposed",
    **{name: rule.summary for name, rule in RULES.items()},
    **{name: f"The kinds of change of the Indic study: {steps}." for name, steps in SHORT.items()},
}
"""Name of a step -> what it does, in one line. All of them leave ASCII text as it is but
"native-digits"."""

NAMES = tuple(NORMALIZERS)
FORMS = tuple(name for name in NAMES if name not in RULES and name not in SHORT)

NORMALIZER_HELP = (
    f"{', '.join(FORMS)}; for Indian scripts {', '.join(indic_spelling.RULES)} [:SCRIPT,…]; for "
    f"Arabic script {', '.join(arabic_spelling.RULES)}[:LANGUAGE,…]; {', '.join(SHORT)} "
    "(default: none)"
)
"""Help of a flag that takes a name."""

_INVERSE_FORMS = {"nfc": "nfd", "nfd": "nfc"}


def normalizer_spec(name: str | None) -> Spec | None:
    """The component of tokenizer.json for a name; None for None and "none".

    ValueError for an unknown step, or a script that the step does not support.
    """
    specs = _specs(name)
    if not specs:
        return None
    return specs[0] if len(specs) == 1 else {"type": "Sequence", "normalizers": specs}


def normalizer_function(name: str | None) -> Callable[[str], str] | None:
    """The normalizer of that name as a function, or None for no normalizer.

    Steps that need Unicode tables run as components of `tokenizers`; plain characters are replaced
    in Python, which is ten times as fast with the same result.
    """
    steps = [(component, _function(component)) for component in _components(name)]
    if not steps:
        return None
    leaves_ascii = not any(step.startswith("native-digits") for step in _steps(name))

    def apply(text: str) -> str:
        if leaves_ascii and text.isascii():
            return text
        characters: set[str] | None = None  # found where a replacement asks for them
        for component, run in steps:
            if isinstance(component, Replacement):
                characters = set(text) if characters is None else characters
                if characters.isdisjoint(component.any_of):
                    continue
            changed = run(text)
            if changed != text:
                text, characters = changed, None
        return text

    return apply


def inverse_name(name: str) -> str | None:
    """The normalizer that undoes what `name` changed, or None if there is none.

    Both normalizers unify two spellings. The inverse restores the other spelling everywhere, even
    where the text did not have it: apply(inverse(apply(text))) == apply(text) and
    inverse(apply(text)) == inverse(text). Digits of all scripts at once have no inverse.
    """
    inverses = []
    for step in reversed(_steps(name)):
        kind, _, scripts = step.partition(":")
        inverse = _INVERSE_FORMS.get(kind) or (RULES[kind].inverse if kind in RULES else None)
        is_open = inverse in ("native-digits", "ascii-digits") and (not scripts or "," in scripts)
        if inverse is None or is_open:
            return None
        inverses.append(f"{inverse}:{scripts}" if scripts else inverse)
    return "+".join(inverses)


def name_of(spec: Mapping[str, Any] | None) -> str | None:
    """The name of a component of tokenizer.json; "none" for no component, None if unknown.

    A step for several scripts, but not all, is returned as one step per script.
    """
    steps, rest = [], _flat(spec)
    while rest:
        for step, known in _known_steps():
            if rest[: len(known)] == known:
                steps.append(step)
                rest = rest[len(known) :]
                break
        else:
            return None
    return "+".join(steps) or "none"


def spec_function(spec: Mapping[str, Any] | None) -> Callable[[str], str] | None:
    """The function of a component of tokenizer.json; None if the component has no name."""
    name = name_of(spec)
    if name is None:
        return None
    return normalizer_function(name) or (lambda text: text)


def _flat(spec: Mapping[str, Any] | None) -> list[Any]:
    if spec is None:
        return []
    if spec.get("type") == "Sequence":
        return [step for inner in spec.get("normalizers", []) for step in _flat(inner)]
    return [spec]


def _steps(name: str | None) -> list[str]:
    names = [] if name is None or name == "none" else name.split("+")
    return [step for each in names for step in SHORT.get(each, each).split("+")]


def _specs(name: str | None) -> list[Spec]:
    return [component.spec for component in _components(name)]


@dataclass(frozen=True, slots=True)
class _Form:
    """A Unicode normalization form; it may change any non-ASCII text."""

    spec: Spec


def _components(name: str | None) -> list[Replacement | _Form]:
    return [component for step in _steps(name) for component in _step_components(step, name)]


def _step_components(step: str, name: str | None) -> Sequence[Replacement | _Form]:
    kind, colon, listed = step.partition(":")
    if kind in FORMS and not colon:
        return [_Form({"type": kind.upper()})]
    rule = RULES.get(kind)
    if rule is None or (colon and not rule.scripts):
        raise ValueError(
            f"no normalizer is named {step!r}; the names are none, {', '.join(NAMES)}, "
            'and several joined by "+", as in nfc+fifth-case'
        )
    scripts = tuple(listed.split(",")) if colon else rule.scripts
    unknown = [script for script in scripts if script not in rule.scripts]
    if unknown:
        raise ValueError(
            f"{kind} does not know {unknown[0]!r} (in {name!r}); it knows {', '.join(rule.scripts)}"
        )
    return rule.steps(scripts)


@functools.cache
def _known_steps() -> list[tuple[str, list[Spec]]]:
    """Every step with its components, longest first."""
    names = [*FORMS, *SHORT]
    for kind, rule in RULES.items():
        if kind != "native-digits":
            names.append(kind)
        # Languages that differ are no sum of steps, one of each.
        most = len(rule.scripts) if kind == "arabic-letters" else 2
        names += [
            f"{kind}:{','.join(some)}"
            for size in range(1, most)
            for some in itertools.combinations(rule.scripts, size)
        ]
    known = [(name, _specs(name)) for name in names]
    return sorted(known, key=lambda entry: -len(entry[1]))


def _function(component: Replacement | _Form) -> Callable[[str], str]:
    from tokenizers import Regex, normalizers

    if isinstance(component, _Form):
        return getattr(normalizers, component.spec["type"])().normalize_str  # type: ignore[no-any-return]
    pattern, content = component.pattern, component.content
    if not component.is_regex:
        return lambda text: text.replace(pattern, content)
    if "\\p" in pattern:  # depends on the Unicode tables of `tokenizers`
        return normalizers.Replace(Regex(pattern), content).normalize_str
    find = re.compile(pattern)
    return lambda text: find.sub(content, text)
