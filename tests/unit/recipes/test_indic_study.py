"""The Indic study: tables from few figures."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import vocabshift as vs
from vocabshift.results import Result, Results

RECIPES = Path(__file__).resolve().parents[3] / "recipes"
Program = Callable[[str], ModuleType]


def test_tables_hold_the_figures(program: Program, tmp_path: Path) -> None:
    study_of = program("indic_study/tables.py").Study
    values = {"": (2.0, 3.0, 2.5, 4.0, 5.0, 2.0), "-n": (1.9, 2.8, 2.4, 3.9, 4.5, 2.0)}
    rows = [
        Result(f"{recipe}-2000{end}", f"l{i}", "fertility", value, 10)
        for recipe in ("bpe", "unigram")
        for end, of in values.items()
        for i, value in enumerate(of)
    ]
    rows.append(Result("bpe-2000", "unigram-2000", "pairwise_overlap", 0.5, 10))
    (tmp_path / "results.jsonl").write_text(Results(rows).to_jsonl(), encoding="utf-8")
    study = study_of(tmp_path, [2000], 2000, [])
    assert 50.0 == study.overlap("unigram-2000", "bpe-2000")
    means = {"2k NN": pytest.approx(18.5 / 6), "2k N": pytest.approx(17.5 / 6)}
    assert means == {name: own["BPE"] for name, own in study.table_1().items()}
    changed = {"Δ": pytest.approx(1 / 6), "%": pytest.approx(100 / 18.5)}
    assert changed == {name: study.table_2()[name]["BPE 2k"] for name in changed}
    # All five that differ are lower: exactly 2 / 2^5.
    expected = {"p": 0.0625, "lower": 5, "higher": 0}
    assert expected == {name: own["BPE 2k"] for name, own in study.table_3().items()}


def test_languages_that_do_not_differ_decide_nothing(program: Program) -> None:
    assert 1.0 == program("indic_study/tables.py").wilcoxon([1.0, 2.0], [1.0, 2.0])


def test_the_front_is_made_of_means_over_languages(program: Program) -> None:
    front = program("indic_study/front.py")
    figures = {"hi": (2.0, 30.0), "ta": (3.0, 50.0), "de": (1.5, 40.0)}
    results = Results(
        [
            Result("ist", language, metric, value, 10)
            for language, values in figures.items()
            for metric, value in zip(("fertility", "tokens_per_line"), values, strict=True)
        ]
    )
    rows = front.rows_of(results, "front-9")
    assert {"languages": 3, "of them Indian": 2} == rows[0]["values"]
    # Gini of 30, 40, 50: the mean difference of all pairs over twice the mean.
    assert 2.1667 == pytest.approx(rows[1]["values"]["fertility"], abs=1e-4)
    assert (4 * 10 + 2 * 20) / 9 / 80 == pytest.approx(rows[1]["values"]["Gini"])
    assert 2.5 == rows[1]["values"]["Indian: fertility"]
    made = {"table": "made", "row": "front-9", "size": "9 MB", "command": "f.sh", "machine": "a Z"}
    lines = front.tables([*rows, made])["front-9"].splitlines()
    assert "### 3 languages, 2 of them Indian" == lines[0]
    assert lines[2].startswith("|  | fertility | Gini | CV | Indian: fertility | Indian: Gini |")
    assert lines[4].startswith("| ist | 2.1667 | 0.1111 |")
    assert lines[4].endswith("| 1.50 |")
    assert "*9 MB, `f.sh` on a Z.*" == lines[-1]


def test_every_table_of_the_readme_is_written_by_the_program(program: Program) -> None:
    """The one table outside the markers is prose: what the paper found, and what was found here."""
    recipe = RECIPES / "indic_study"
    readme = (recipe / "README.md").read_text(encoding="utf-8")
    for name in program("data/record.py").tables_of(recipe):
        before, _, rest = readme.partition(f"<!-- {name} -->")
        readme = before + rest.partition(f"<!-- /{name} -->")[2]
    tables = re.findall(r"^\|.*\n\| ?---.*\n(?:\|.*\n)+", readme, flags=re.MULTILINE)
    assert ["| finding of the paper | here |"] == [table.splitlines()[0] for table in tables]


ISO = {
    "गांधीनगर चंद्रवदन कुम्भमेला": "gāṁdhīnagara caṁdravadana kumbhamēlā",
    "अइ ऐ क्ह ख कृष्ण ज्ञान दुःख अँधेरा": "a:i ai k:ha kha kr̥ṣṇa jñāna duḥkha am̐dhērā",
    "बढ़ ज़रा फ़ौज ग़म ऑफ़िस १९४७।": "baṛha zarā fauja ġama ôfisa 1947.",
    "বাংলা হয় অসমীয়া ৰাইজ উৎসব": "bāṁlā haẏa asamīẏā rāija utsaba",
    "ਪੱਕਾ ਸਿੰਘ ਸ਼ਹਿਰ": "pakkā siṁgha śahira",
    "ગુજરાતી ઓડિશા ଓଡ଼ିଆ": "gujarātī ōḍiśā ōṛiā",
    "தமிழ் எழுத்து ஏன் அஃது": "tamiḻ eḻuttu ēṉ aḵtu",
    "తెలుగు మేము కన్నడ": "telugu mēmu kannaḍa",
    "ಕನ್ನಡ ಒಂದು ಓದು": "kannaḍa oṁdu ōdu",
    "മലയാളം അവൻ പൗരൻ കൃഷ്ണൻ": "malayāḷaṁ avan pauran kr̥ṣṇan",
    "वर्\u200dग क्\u200cष": "varga kṣa",
    "اردو میں ۴۲ abc 3.5": "ārdv mīṁ 42 abc 3.5",
}


@pytest.mark.parametrize(("text", "expected"), ISO.items())
def test_iso_15919(program: Program, text: str, expected: str) -> None:
    """Words of every script; the first three are the paper's own (Figure 3)."""
    transliterated = program("indic_study/iso15919.py").transliterated
    assert unicodedata.normalize("NFC", expected) == transliterated(text)


def test_sindhi_has_letters_of_its_own(program: Program) -> None:
    transliterated = program("indic_study/iso15919.py").transliterated
    assert "kākhā" == transliterated("ڪاکا", is_sindhi=True)
    assert "kākā" == transliterated("ڪاکا")


@pytest.mark.parametrize("first", [0x900, 0x980, 0xA00, 0xA80, 0xB00, 0xB80, 0xC00, 0xC80, 0xD00])
def test_letters_are_those_of_their_unicode_names(program: Program, first: int) -> None:
    """Unicode's name of a consonant spells it without marks: TTHA is ṭha, NNNA is ṉa."""
    transliterated = program("indic_study/iso15919.py").transliterated
    for code in range(first + 0x15, first + 0x3A):
        name = unicodedata.name(chr(code), "").rpartition(" ")[2]
        if not name:
            continue
        bare = unicodedata.normalize("NFKD", transliterated(chr(code)))
        plain = "".join(letter for letter in bare if letter.isascii())
        spelled = {"NGA": "na", "NYA": "na", "CA": "ca", "CHA": "cha", "SHA": "sa", "SSA": "sa"}
        doubled = name.replace("LLL", "L").replace("NNN", "N")
        for letter in "TDNRL":
            doubled = doubled.replace(2 * letter, letter)
        assert spelled.get(name, doubled.lower()) == plain, name


def test_clusters_of_languages_that_share_words_in_latin_letters(program: Program) -> None:
    """Four scripts, two languages: transliteration brings together what was written apart."""
    module = program("indic_study/clusters.py")
    devanagari = {"नमक": 40, "जल": 30, "कमल": 20, "गगन": 25}
    words = {
        "hi": Counter(devanagari),
        "gu": Counter({"નમક": 40, "જલ": 30, "કમલ": 20, "ગગન": 25}),
        "ta": Counter({"தமிழ்": 40, "நீர்": 30, "வீடு": 20, "மரம்": 25}),
        "ml": Counter({"തമിഴ്": 40, "നീര്": 30, "വീടു": 20, "മരമ്": 25}),
    }
    latin = module.in_latin(words)
    assert latin["hi"] == latin["gu"] == {"namaka": 40, "jala": 30, "kamala": 20, "gagana": 25}
    options = program("indic_study/clusters.py").ClusterOptions(language_vocab_size=330)
    with pytest.raises(ValueError, match="different vocabularies"):
        module.clusters_of(latin, [4], options)
    clusters, _ = module.clusters_of(latin, [2], options)
    assert "hi, gu · ta, ml" == module.written(clusters[2])


def test_overlap_by_script_is_a_share_of_the_smaller_vocabulary(
    program: Program, tmp_path: Path
) -> None:
    """Of whole characters: the bytes of Devanagari that both have are no tokens of a script."""
    module = program("indic_study/tables.py")
    texts = {"one": ["जल जल घर घर"], "two": ["जल जल वन वन वन"]}
    for name, lines in texts.items():
        trainer = vs.BpeTrainer(vocab_size=268)
        trainer.train(vs.Corpus.from_texts({"hi": lines})).save_pretrained(tmp_path / name)
    found = module._overlaps(tmp_path / "one", tmp_path / "two")
    spelled = [
        {
            data.decode()
            for data in vs.load_tokenizer(tmp_path / name).token_bytes.values()
            if "\u0900" <= data.decode(errors="ignore").strip()[:1] <= "\u097f"
            and data.decode(errors="ignore").encode() == data
        }
        for name in texts
    ]
    both = 100 * len(spelled[0] & spelled[1]) / min(map(len, spelled))
    assert both == pytest.approx(found["Devanagari"])
    assert 0 < both < 100
    assert {"Devanagari", "Other"} == found.keys()
