"""Indian scripts in Latin letters, by ISO 15919, for the clusters of the study's Table 14.

The nine scripts of the Unicode blocks that follow ISCII have the same letter at the same place of
each block, so one table serves all, with a few letters of a script's own. This is the strict form
of ISO 15919: e and o of languages without short ones are ē and ō, anusvara is ṁ, no vowel is
dropped at the end of a word, and a colon parts letters that could be read as one (a:i is अइ, ai is
ऐ). Tippi, for which the standard has a mark of its own, is ṁ too.

The standard has no Arabic script. Urdu's and Sindhi's letters become those that ISO 15919 writes
for the same sounds; short vowels are not written, so they are missing. Everything else stays.
"""

from __future__ import annotations

import unicodedata


def _at(first: int, names: str) -> dict[int, str]:
    """Names by place in a block, from a place on."""
    return dict(enumerate(names.split(), first))


def _of(letters: str, names: str) -> dict[str, str]:
    """Names by letter."""
    return dict(zip(letters, names.split(), strict=True))


_VOWELS = _at(0x05, "a ā i ī u ū r̥ l̥ ê e ē ai ô o ō au") | _at(0x60, "r̥̄ l̥̄")
_SIGNS = _at(0x3E, "ā i ī u ū r̥ r̥̄ ê e ē ai ô o ō au") | _at(0x62, "l̥ l̥̄")
_CONSONANTS = (
    _at(0x15, "k kh g gh ṅ c ch j jh ñ ṭ ṭh ḍ ḍh ṇ t th d dh n ṉ p ph b bh m")
    | _at(0x2F, "y r ṟ l ḷ ḻ v ś ṣ s h")
    | _at(0x58, "q k͟h ġ z ṛ ṛh f ẏ")
)
_MARKS = _at(0x00, "m̐ m̐ ṁ ḥ") | {0x3D: "’", 0x50: "ōṁ"} | _at(0x64, ". .. 0 1 2 3 4 5 6 7 8 9")
_NUKTA, _VIRAMA = 0x3C, 0x4D
_WITH_NUKTA = dict(  # in Gurmukhi alone: of l and s
    zip(
        ["k", "kh", "g", "j", "ḍ", "ḍh", "ph", "y", "n", "r", "ḷ", "l", "s"],
        ["q", "k͟h", "ġ", "z", "ṛ", "ṛh", "f", "ẏ", "ṉ", "ṟ", "ḻ", "ḷ", "ś"],
        strict=True,
    )
)
_OWN_CONSONANTS = _of("ৰৱೞୱॹॺॻॼॾॿ", "r v ḻ v ź ẏ g̈ j̈ d̈ b̈")
_OWN = _of("ৎஃॲੰൺൻർൽൾൿ", "t ḵ ê ṁ ṇ n r l ḷ k") | dict.fromkeys("ੲੳ", "")
_ADDAK = "ੱ"  # Gurmukhi: the consonant after it is double
_AU_MARK = "ൗ"  # Malayalam's au today
_JOINERS = "\u200c\u200d"

_ARABIC = (
    _of("اآبپتٹثجچحخدڈذرڑزژسشصض", "ā ā b p t ṭ s̱ j c h k͟h d ḍ ẕ r ṛ z ž s ś ṣ ż")
    | _of("طظعغفقکكگلمنںوہهھ", "t̤ z̤ ʿ ġ f q k k g l m n ṁ v h h h")
    | _of("یيىےئؤءۂةأإۃ", "ī ī ī ē ʾ ʾ ʾ h h ā i h")
    | _of("ٻڀٿٽٺڄڃڇڌڏڊڍڦڪڳڱڻٰ", "b̈ bh th ṭ ṭh j̈ ñ ch dh d̈ ḍ ḍh ph k g̈ ṅ ṇ ā")
    | _of("،؛؟۔َُِ", ", ; ? . a u i")
    | _of("٠١٢٣٤٥٦٧٨٩", "0 1 2 3 4 5 6 7 8 9")
    | _of("۰۱۲۳۴۵۶۷۸۹", "0 1 2 3 4 5 6 7 8 9")
)
_SINDHI = _ARABIC | {"ک": "kh"}  # ڪ is k


def transliterated(text: str, *, is_sindhi: bool = False) -> str:
    """`text` with the letters of the ten scripts in Latin ones; NFC.

    `is_sindhi`: Sindhi in Arabic script, where ک is another letter than in Urdu.
    """
    arabic = _SINDHI if is_sindhi else _ARABIC
    out: list[str] = []
    inherent = False  # whether the last letter is a consonant that may still have its a
    is_double = False
    for letter in unicodedata.normalize("NFC", text):
        if letter in _JOINERS:
            continue
        place = _place(letter)
        consonant = _OWN_CONSONANTS.get(letter) or _CONSONANTS.get(place)
        if consonant is not None:
            if inherent:
                out.append("a")
            elif consonant == "h" and out and out[-1] in _STOPS:
                out.append(":")  # क् and ह, not ख
            out += [consonant[0], consonant] if is_double else [consonant]
            inherent, is_double = True, False
        elif place == _NUKTA and inherent:
            out[-1] = _WITH_NUKTA.get(out[-1], out[-1])
        elif place in _SIGNS or letter == _AU_MARK:
            out.append(_SIGNS.get(place, "au"))
            inherent = False
        elif place == _VIRAMA:
            inherent = False
        else:
            out += ["a"] if inherent else []
            inherent, is_double = False, letter == _ADDAK
            if not is_double:
                out.append(_single(letter, place, arabic, after=out[-1] if out else ""))
    out += ["a"] if inherent else []
    return unicodedata.normalize("NFC", "".join(out))


_STOPS = frozenset(["k", "g", "c", "j", "ṭ", "ḍ", "t", "d", "p", "b"])


def _place(letter: str) -> int:
    """The place of a letter in its block, as ISCII has it; -1 for others."""
    return ord(letter) & 0x7F if 0x900 <= ord(letter) < 0xD80 else -1


def _single(letter: str, place: int, arabic: dict[str, str], *, after: str) -> str:
    """What a vowel, a mark, or a letter of another script becomes after what is written."""
    if letter in _OWN:
        return _OWN[letter]
    if place in _VOWELS:
        name = _VOWELS[place]
        return f":{name}" if after == "a" and name in ("i", "u") else name
    return _MARKS.get(place) or arabic.get(letter, letter)
