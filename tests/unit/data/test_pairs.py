"""Parallel text in every format, whole and broken."""

import gzip
import json
from pathlib import Path

import pytest

from plainformer.data import Pairs, fingerprint, read_lines, read_pairs
from plainformer.data.alignment import first_out_of_step
from plainformer.errors import InputError

ENGLISH = ["a dog", "two cats sleep", "“three” birds"]
GERMAN = ["ein Hund", "zwei Katzen schlafen", "„drei“ Vögel"]


def tmx(body: str, head: str = "") -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}<tmx version="1.4"><header/><body>\n{body}</body></tmx>\n'


def unit(**sentences: str) -> str:
    return "<tu>" + "".join(f'<tuv xml:lang="{k}"><seg>{v}</seg></tuv>' for k, v in sentences.items()) + "</tu>\n"


def write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


FORMATS = {
    ".tsv": "".join(f"{e}\t{g}\n" for e, g in zip(ENGLISH, GERMAN, strict=True)),
    ".jsonl": "".join(
        json.dumps({"translation": {"en": e, "de": g}}) + "\n" for e, g in zip(ENGLISH, GERMAN, strict=True)
    ),
    ".tmx": tmx("".join(unit(en=e, de=g) for e, g in zip(ENGLISH, GERMAN, strict=True))),
}


def refusal(folder: Path, name: str = "train", source: str = "en", target: str = "de", **options) -> str:
    """The one line with which `read_pairs` refuses."""
    with pytest.raises(InputError) as caught:
        read_pairs(folder, name, source, target, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


# Every format reads the same.


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_the_same_pairs_by_stem_and_by_file_name(tmp_path, suffix, packed):
    path = write(tmp_path / f"train{suffix}{packed}", FORMATS[suffix])
    for name in ("train", path.name):
        pairs = read_pairs(tmp_path, name, "en", "de")
        assert (pairs.source, pairs.target) == (ENGLISH, GERMAN)
    first = 3 if suffix == ".tmx" else 1  # the units begin below XML's declaration and the header
    assert list(pairs.origin) == [f"{path}:{first + i}" for i in range(3)]


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_two_line_aligned_files_are_a_corpus(tmp_path, packed):
    write(tmp_path / f"train.en{packed}", "\n".join(ENGLISH))
    write(tmp_path / "train.de", "\n".join(GERMAN) + "\n")
    pairs = read_pairs(tmp_path, "train", "en", "de")
    assert (pairs.source, pairs.target) == (ENGLISH, GERMAN)
    assert pairs.origin[1] == f"{tmp_path}/train.en{packed}:2"
    assert read_pairs(tmp_path, "train", "de", "en").source == GERMAN


def test_a_stem_may_hold_dots_and_a_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub" / "train.lc.tok.en", "a\n")
    write(tmp_path / "sub" / "train.lc.tok.de", "b\n")
    write(tmp_path / "sub" / "train.en", "other\n")
    assert read_pairs(tmp_path, "sub/train.lc.tok", "en", "de").source == ["a"]


def test_a_tmx_is_found_under_its_language_pair_in_either_order(tmp_path):
    write(tmp_path / "all.en-de.tmx", FORMATS[".tmx"])
    assert read_pairs(tmp_path, "all", "en", "de").target == GERMAN
    assert read_pairs(tmp_path, "all", "de", "en").target == ENGLISH


def test_columns_of_a_tsv_are_chosen_and_the_rest_ignored(tmp_path):
    write(tmp_path / "hin.txt", 'one\tएक\tby "someone\ntwo\tदो\tby another\n')
    assert read_pairs(tmp_path, "hin.txt", "en", "hi").target == ["एक", "दो"]
    assert read_pairs(tmp_path, "hin.txt", "hi", "en", columns=(1, 0)).source == ["एक", "दो"]
    assert read_pairs(tmp_path, "hin.txt", "en", "by", columns=(0, 2)).target == ['by "someone', "by another"]


def test_flat_json_objects_are_read_and_line_breaks_inside_become_spaces(tmp_path):
    write(tmp_path / "train.jsonl", '{"id": 1, "en": "a\\n  b", "de": "ä"}\n')
    pairs = read_pairs(tmp_path, "train", "en", "de")
    assert (pairs.source, pairs.target) == (["a b"], ["ä"])


def test_blank_lines_stay_pairs_in_every_format(tmp_path):
    write(tmp_path / "a.tsv", "x\ty\n\nz\tw\n")
    write(tmp_path / "b.jsonl", '{"en": "x", "de": "y"}\n \n{"en": "z", "de": "w"}\n')
    write(tmp_path / "c.tmx", tmx(unit(en="x", de="y") + unit(fr="") + unit(en="z", de="w")))
    for name in ("a", "b", "c"):
        pairs = read_pairs(tmp_path, name, "en", "de")
        assert (pairs.source, pairs.target) == (["x", "", "z"], ["y", "", "w"])


# TMX.


def test_tmx_language_codes_match_by_region_and_case(tmp_path):
    write(tmp_path / "t.tmx", tmx(unit(**{"EN-us": "colour", "de_AT": "Farbe", "end": "no"})))
    assert read_pairs(tmp_path, "t", "en", "de").source == ["colour"]
    assert read_pairs(tmp_path, "t", "en-US", "de-AT").target == ["Farbe"]
    assert "no language 'en-GB'; it has 'EN-us', 'de_AT', 'end'" in refusal(tmp_path, "t", "en-GB", "de")


def test_tmx_variants_give_every_combination_and_a_missing_side_is_empty(tmp_path):
    write(tmp_path / "t.tmx", tmx(unit(**{"en-GB": "lift", "en-US": "elevator", "de": "Aufzug"}) + unit(en="odd")))
    pairs = read_pairs(tmp_path, "t", "en", "de")
    assert pairs.source == ["lift", "elevator", "odd"]
    assert pairs.target == ["Aufzug", "Aufzug", ""]


def test_tmx_segments_lose_inline_codes_and_line_breaks_and_keep_highlights(tmp_path):
    english = (
        "\n  press <bpt i='1'>&lt;b<sub>x</sub>&gt;</bpt>the <hi>red</hi><ept i='1'>&lt;/b></ept>\n  key &amp; go<ph/>"
    )
    write(tmp_path / "t.tmx", tmx(unit(en=english, de="&#228;")))
    pairs = read_pairs(tmp_path, "t", "en", "de")
    assert (pairs.source, pairs.target) == (["press the red key & go"], ["ä"])


def test_tmx_reads_across_chunks_and_in_the_encoding_it_declares(tmp_path):
    body = tmx("".join(unit(en=f"number {i} " + "x" * 97, de=f"Nummer {i} ä") for i in range(1500)))
    write(tmp_path / "t.tmx", body)
    write(tmp_path / "u.tmx", body.replace("UTF-8", "UTF-16").encode("utf-16"))
    pairs, same = (read_pairs(tmp_path, name, "en", "de") for name in ("t", "u"))
    assert len(pairs) == 1500
    assert pairs.target[1499] == "Nummer 1499 ä"
    assert pairs.origin[1499] == f"{tmp_path}/t.tmx:1502"
    assert fingerprint(pairs) == fingerprint(same)


def test_a_tmx_doctype_without_entities_is_read_and_nothing_is_loaded(tmp_path):
    write(tmp_path / "t.tmx", tmx(unit(en="a", de="b"), head='<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'))
    assert read_pairs(tmp_path, "t", "en", "de").source == ["a"]


@pytest.mark.parametrize(
    "head",
    [
        '<!DOCTYPE tmx [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]>\n',
        '<!DOCTYPE tmx [<!ENTITY lol SYSTEM "file:///etc/hostname">]>\n',
        "<!DOCTYPE tmx [<!ENTITY % lol \"<!ENTITY x 'y'>\"> %lol;]>\n",
        '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n',  # the entity is used, and its declaration not loaded
    ],
)
def test_tmx_entities_are_refused(tmp_path, head):
    write(tmp_path / "t.tmx", tmx(unit(en="a &lol; b", de="c"), head=head))
    assert "XML entity 'lol'" in refusal(tmp_path, "t")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (tmx(unit(en="a", de="b"))[:-9], "t.tmx:4: malformed XML"),  # breaks off
        (tmx("<tu>\n</tuv>\n"), "t.tmx:4: malformed XML at column 3: mismatched tag"),
        (tmx(unit(en="a & b", de="c")), "t.tmx:3: malformed XML"),
        (tmx(unit(en="ä", de="c")).encode("latin-1"), "t.tmx:3: malformed XML"),
        (tmx("").replace("UTF-8", "klingon"), "t.tmx: XML that cannot be read: unknown encoding: klingon"),
        ("<html/>", "t.tmx:1: the root element is <html>"),
        (tmx(""), "no language 'en'; it has none"),
        (tmx(unit(en="a", fr="b")), "no language 'de'; it has 'en', 'fr'"),
        ("", "t.tmx: the file is empty"),
        ("plain words", "t.tmx:1: malformed XML"),
    ],
)
def test_a_broken_tmx_is_refused_with_its_line(tmp_path, body, said):
    write(tmp_path / "t.tmx", body)
    assert said in refusal(tmp_path, "t")


# Broken files.


def test_a_missing_file_a_folder_and_a_forbidden_file_are_named_as_such(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="there is no such file"):
        read_lines(tmp_path / "absent.txt")
    (tmp_path / "train.en").mkdir()
    write(tmp_path / "train.de", "a\n")
    assert "train.en: this is a folder, and a file is needed" in refusal(tmp_path)

    def forbid(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", forbid)  # root, who runs some CI, may read everything
    with pytest.raises(InputError, match="permission to read is denied"):
        read_lines(tmp_path / "train.de")


@pytest.mark.parametrize(
    ("content", "columns", "said"),
    [
        ("a\tb\nc\n", (0, 1), "train.tsv:2: the line has 1 tab-separated column, and 2 are needed"),
        ("a\tb\n", (0, 4), "train.tsv:1: the line has 2 tab-separated columns, and 5 are needed"),
        ("a\tb\n", (-1, 0), "columns are counted from 0"),
    ],
)
def test_a_tsv_with_too_few_columns_is_refused(tmp_path, content, columns, said):
    write(tmp_path / "train.tsv", content)
    assert said in refusal(tmp_path, columns=columns)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"en": "a", "de": "b"', "broken JSON at column 22"),
        ('["a", "b"]', "holds a JSON array"),
        ("3", "holds a JSON number"),
        ("9" * 5000, "JSON that cannot be read"),
        ("[" * 99_999, "JSON that cannot be read"),
        ('{"en": "a", "fr": "b"}', "no key 'de'; its keys are 'en', 'fr'"),
        ('{"translation": {"fr": "b"}}', "no key 'en'; its keys are 'fr'"),
        ("{}", "no key 'en'; its keys are none"),
        ('{"en": "a", "de": null}', "'de' holds a JSON null"),
        ('{"en": 1, "de": "b"}', "'en' holds a JSON number"),
        ('{"en": "ab\\ud83d", "de": "b"}', "half of a surrogate pair at character 3"),
    ],
)
def test_a_broken_jsonl_line_is_refused_with_its_place(tmp_path, line, said):
    write(tmp_path / "train.jsonl", f'{{"en": "x", "de": "y"}}\n{line}\n')
    message = refusal(tmp_path)
    assert said in message
    assert message.startswith(f"{tmp_path}/train.jsonl:2: ")


# Finding the files.


def test_several_formats_for_one_stem_are_refused_and_listed(tmp_path):
    for name in ("train.en", "train.de", "train.de.gz", "train.tsv"):
        write(tmp_path / name, "a\tb\n")
    assert "several files could be 'train': train.en, train.de, train.de.gz, train.tsv" in refusal(tmp_path)
    assert len(read_pairs(tmp_path, "train.tsv", "en", "de")) == 1


@pytest.mark.parametrize(
    ("files", "name", "said"),
    [
        (["train.en", "train.fr"], "train", "train.de is missing beside train.en; did you mean 'train.fr'"),
        (["train.en.gz"], "train", "train.de is missing beside train.en.gz; add train.de"),
        (["train.fr", "train.cs"], "train", "the folder has train.cs, train.fr"),
        (["train.en", "train.de"], "trian", "did you mean 'train'"),
        (["train.en", "train.de"], "train.en", "one side of a pair of files; give the name 'train'"),
        (["hin.txt"], "hin", "the folder has hin.txt"),
        (["hin.txt"], "hni.txt", "did you mean 'hin.txt'"),
        (["train.xliff"], "train.xliff", "in no known format"),
        (["x.en"], "validation", "the folder has x.en"),
        ([], "train", "the folder is empty"),
    ],
)
def test_a_missing_corpus_is_refused_with_what_is_close(tmp_path, files, name, said):
    for file in files:
        write(tmp_path / file, "a\n")
    message = refusal(tmp_path, name)
    assert said in message
    assert message.startswith(str(tmp_path))


def test_a_wrong_folder_is_refused_with_what_is_close(tmp_path):
    folder = tmp_path / "multi30k"
    folder.mkdir()
    write(folder / "train.tsv", "a\tb\n")
    assert "there is no such folder; did you mean 'multi30k'?" in refusal(tmp_path / "multi3ok")
    nowhere = tmp_path / "data" / "multi30k"
    assert f"check the path, or run: plainformer data fetch multi30k --folder {nowhere}" in refusal(nowhere)
    assert refusal(tmp_path / "data" / "mine").endswith("there is no such folder; check the path")
    assert "give the folder" in refusal(folder / "train.tsv")
    assert "multi30k is a folder" in refusal(tmp_path, "multi30k")
    assert "must not be empty" in refusal(folder, "train", "en", "")


# Sides of different length.

LONG = [f"{'word ' * (1 + i * i * 7 % 23)}{i}" for i in range(60)]


def test_files_of_different_length_name_both_counts_and_where_they_lose_step(tmp_path):
    write(tmp_path / "train.en", "\n".join(LONG))
    write(tmp_path / "train.de", "\n".join(LONG[:37] + LONG[38:]))
    message = refusal(tmp_path)
    assert "train.en has 60 lines and train.de has 59; near line 38 they lose step" in message
    assert message.startswith(f"{tmp_path}/train.en:38: ")


def test_a_blank_line_on_one_side_is_the_first_suspect(tmp_path):
    write(tmp_path / "train.en", "\n".join(LONG))
    write(tmp_path / "train.de", "\n".join([*LONG[:11], "", *LONG[11:]]))
    assert "train.de:12: train.en has 60 lines and train.de has 61; line 12 is empty in train.de only" in refusal(
        tmp_path
    )


def test_lines_missing_at_the_end_are_said_to_be_at_the_end(tmp_path):
    write(tmp_path / "train.en", "\n".join(LONG[:53]))
    write(tmp_path / "train.de", "\n".join(LONG))
    message = refusal(tmp_path)
    assert "train.de:54:" in message
    assert "all of train.en seems to fit, and the extra lines come at the end" in message


def test_wholly_different_files_are_refused_without_a_guess(tmp_path):
    write(tmp_path / "train.en", "\n".join(LONG))
    write(tmp_path / "train.de", "\n".join(LONG[:7]))
    assert refusal(tmp_path).endswith(
        "has 60 lines and train.de has 7; give two files in which line i translates line i"
    )


@pytest.mark.parametrize("break_at", [0, 1, 29, 58, 60])
@pytest.mark.parametrize("extra", [1, 3])
def test_the_break_is_found_wherever_lines_were_put_in(break_at, extra):
    stray = [f"stray {'x' * (50 + 31 * i)}" for i in range(extra)]
    longer = LONG[:break_at] + stray + LONG[break_at:]
    assert first_out_of_step(longer, LONG) == break_at
    assert first_out_of_step(LONG, longer) == break_at


def test_a_line_deleted_from_real_text_is_found_within_three_lines(shared_data):
    pairs = read_pairs(shared_data / "multi30k", "val", "en", "de")
    for deleted in (5, 301, 777):
        found = first_out_of_step(pairs.source, pairs.target[:deleted] + pairs.target[deleted + 1 :])
        assert found is not None
        assert abs(found - deleted) <= 3


# Pairs.


def test_selected_pairs_keep_their_origins():
    pairs = Pairs(["a", "b", "c"], ["x", "y", "z"], ["f:1", "f:2", "f:9"])
    assert pairs.select([2, 0]) == Pairs(["c", "a"], ["z", "x"], ["f:9", "f:1"])


def test_selected_pairs_of_a_file_keep_their_lines(tmp_path):
    write(tmp_path / "train.tsv", FORMATS[".tsv"])
    chosen = read_pairs(tmp_path, "train", "en", "de").select([2, 1]).select([0])
    assert (chosen.source, list(chosen.origin)) == ([ENGLISH[2]], [f"{tmp_path}/train.tsv:3"])


def test_sides_of_different_length_are_no_pairs():
    with pytest.raises(InputError, match="2 source sentences, 1 target sentences and 2 origins"):
        Pairs(["a", "b"], ["x"], ["f:1", "f:2"])


def test_the_fingerprint_knows_text_and_nothing_else():
    same = fingerprint(Pairs(["ab", "d"], ["c", "e"], ["f:1", "f:2"]))
    assert same == fingerprint(Pairs(["ab", "d"], ["c", "e"], ["g:7", "g:8"]))
    # printf '2:ab1:c' | sha256sum
    assert fingerprint(Pairs(["ab"], ["c"], [""])) == "430fb1b4ac43316eca81fab27a1930ab8eff8fef6a1dc7903dce44bbc2790dc5"
    others = [Pairs(["a"], ["bc"], [""]), Pairs(["c"], ["ab"], [""]), Pairs(["ab"], ["c "], [""]), Pairs([], [], [])]
    assert len({fingerprint(pairs) for pairs in others} | {same}) == 5


# Real files.


@pytest.mark.parametrize(
    ("folder", "name", "target", "count"),
    [
        ("multi30k", "train", "de", 29_000),
        ("multi30k", "val", "de", 1_014),
        ("multi30k", "test_2016_flickr.lc.norm.tok", "de", 1_000),
        ("hvg", "train", "hi", 28_930),
        ("hvg", "val.tsv", "hi", 998),
        ("tatoeba", "hin.txt", "hi", 3_116),
        ("tico19", "all.en-hi.tmx", "hi", 3_071),
    ],
)
def test_real_corpora_have_their_known_counts(shared_data, folder, name, target, count):
    pairs = read_pairs(shared_data / folder, name, "en", target)
    assert len(pairs) == count
    assert not any("\r" in sentence or "\n" in sentence or not sentence for sentence in pairs.source + pairs.target)
