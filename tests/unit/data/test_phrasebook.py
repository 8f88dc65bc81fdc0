"""The phrasebook: correct sentences, one translation each, held-out sentences new and of known words."""

import hashlib
import re
import unicodedata
from collections import Counter

import pytest

from plainformer.data.builtin import EMBEDDED, LANGUAGES
from plainformer.data.phrasebook import SPLITS, examples, phrasebook, slots as slot
from plainformer.data.phrasebook.corpus import KNOWN, PATTERNS, SHARE, sentences, spaced, splits, words
from plainformer.data.phrasebook.people import COMMON, HE, ME, NAMES, RELATIVES, SHE, THEY, TUM, WE, YOU
from plainformer.data.phrasebook.things import (
    BARE,
    FIVE,
    MANY,
    NOUN as ALONE,
    SOME,
    THAT,
    THE,
    THESE,
    THIS,
    THREE,
    TWO,
    A,
    Event,
    of,
    thing,
)
from plainformer.data.phrasebook.words import ADJECTIVES, NOUNS, VERBS
from plainformer.errors import InputError

RAVI, MEENA = NAMES[0], NAMES[3]
MY_BROTHER, MY_FATHER, MY_MOTHER = RELATIVES[0], RELATIVES[5], RELATIVES[6]
BOYS, GIRL, GIRLS = COMMON[1], COMMON[2], COMMON[3]
ADJECTIVE = {adjective.en: adjective for adjective in ADJECTIVES}
YESTERDAY, TOMORROW = slot.PAST[1][0], slot.FUTURE[1][0]
EVERY_DAY, NOW, VERY = slot.OFTEN[1][0], slot.NOW[1][0], slot.VERY[1][0]
NONE = slot.NONE


def one(opener, noun, adjective=None):
    return thing(opener, NOUNS[noun], "s", ADJECTIVE[adjective] if adjective else None)


def many(opener, noun, adjective=None):
    return thing(opener, NOUNS[noun], "p", ADJECTIVE[adjective] if adjective else None)


def act(verb, phrase):
    return Event(VERBS[verb], phrase)


def goal(name):
    return next(place for place in slot.GOALS[0] if place.en == name)


def spot(name):
    return next(place for group in slot.SPOTS for place in group if spaced(place.en) == name)


def call(name):
    return next(called for group in slot.CALLS for called in group if called.en == name)


def feeling(name):
    return next(felt for felt in slot.FEELINGS[0] if felt.en == name)


# Worked by hand. One line a rule; the comment names it.
KNOWN_ANSWERS = [
    # the participle agrees with the subject, the auxiliary with its person
    ("habit", (ME, act("eat", many(BARE, "mango")), NONE), "I eat mangoes", "मैं आम खाता हूँ"),
    ("habit", (SHE, act("drink", one(BARE, "tea")), EVERY_DAY), "she drinks tea every day", "वह रोज़ चाय पीती है"),
    ("habit", (GIRLS, act("sing", many(BARE, "song")), NONE), "the girls sing songs", "लड़कियाँ गीत गाती हैं"),
    ("habit", (MY_FATHER, act("read", many(BARE, "book")), NONE), "my father reads books", "मेरे पिता किताबें पढ़ते हैं"),
    ("habit, not", (HE, act("eat", many(BARE, "egg"))), "he does not eat eggs", "वह अंडे नहीं खाता है"),
    ("habit, asked", (YOU, act("drink", one(BARE, "milk")), NONE), "do you drink milk", "क्या आप दूध पीते हैं"),
    # tum and aap
    (
        "habit, called",
        (call("Ravi"), act("drink", one(BARE, "tea"))),
        "Ravi, do you drink tea",
        "रवि, क्या तुम चाय पीते हो",
    ),
    (
        "habit, called",
        (call("Meena"), act("drink", one(BARE, "tea"))),
        "Meena, do you drink tea",
        "मीना, क्या तुम चाय पीती हो",
    ),
    ("habit, called", (call("sir"), act("drink", one(BARE, "tea"))), "sir, do you drink tea", "सर, क्या आप चाय पीते हैं"),
    (
        "will, called",
        (call("Sita"), act("buy", one(A, "sari"))),
        "Sita, will you buy a sari",
        "सीता, क्या तुम एक साड़ी खरीदोगी",
    ),
    # the progressive, and a past auxiliary that marks fp
    (
        "doing",
        (MY_MOTHER, act("make", one(BARE, "tea")), NOW),
        "my mother is making tea now",
        "मेरी माँ अभी चाय बना रही हैं",
    ),
    (
        "doing then",
        (GIRLS, act("read", one(THE, "book")), NONE),
        "the girls were reading the book",
        "लड़कियाँ किताब पढ़ रही थीं",
    ),
    # ne, and the verb agrees with the object in gender and number
    ("did", (ME, act("eat", one(BARE, "bread")), NONE), "I ate bread", "मैंने रोटी खाई"),
    (
        "did",
        (GIRL, act("eat", one(A, "apple", "big")), YESTERDAY),
        "the girl ate a big apple yesterday",
        "लड़की ने कल एक बड़ा सेब खाया",
    ),
    ("did", (BOYS, act("read", many(TWO, "book")), NONE), "the boys read two books", "लड़कों ने दो किताबें पढ़ीं"),
    ("did", (THEY, act("wash", many(THREE, "cup")), NONE), "they washed three cups", "उन्होंने तीन प्याले धोए"),
    (
        "did not",
        (RAVI, act("close", one(THE, "window")), NONE),
        "Ravi did not close the window",
        "रवि ने खिड़की बंद नहीं की",
    ),
    ("has done", (WE, act("read", many(THESE, "story"))), "we have read these stories", "हमने ये कहानियाँ पढ़ी हैं"),
    ("who did", (act("break", one(THAT, "chair")), NONE), "who broke that chair", "वह कुर्सी किसने तोड़ी"),
    # with ko on the object, the verb agrees with nothing
    ("saw", (GIRL, MEENA, NONE), "the girl saw Meena", "लड़की ने मीना को देखा"),
    (
        "saw an animal",
        (ME, many(THE, "goat"), goal("the market")),
        "I saw the goats in the market",
        "मैंने बाज़ार में बकरियों को देखा",
    ),
    # apna when the possessive means the subject, a person's own possessive otherwise
    ("did to one's own", (MEENA, act("sell", one(ALONE, "house")), NONE), "Meena sold her house", "मीना ने अपना घर बेचा"),
    ("did to another's", (MEENA, ME, act("sell", many(ALONE, "shoe"))), "Meena sold my shoes", "मीना ने मेरे जूते बेचे"),
    ("loves", (HE, one(ALONE, "dog")), "he loves his dog", "वह अपने कुत्ते से प्यार करता है"),
    # the future, and what one can, wants to, has to do
    (
        "will",
        (ME, act("drink", one(SOME, "lassi")), TOMORROW),
        "I will drink some lassi tomorrow",
        "मैं कल थोड़ी लस्सी पिऊँगा",
    ),
    (
        "will not",
        (GIRLS, act("play", one(BARE, "chess")), NONE),
        "the girls will not play chess",
        "लड़कियाँ शतरंज नहीं खेलेंगी",
    ),
    ("can", (SHE, act("open", one(THIS, "door"))), "she can open this door", "वह यह दरवाज़ा खोल सकती है"),
    ("wants to", (ME, act("learn", one(BARE, "Hindi"))), "I want to learn Hindi", "मैं हिंदी सीखना चाहता हूँ"),
    (
        "has to",
        (RAVI, act("write", many(MANY, "letter")), NONE),
        "Ravi has to write many letters",
        "रवि को कई चिट्ठियाँ लिखनी हैं",
    ),
    # to whom a thing comes: ko
    ("likes", (ME, one(BARE, "pizza")), "I like pizza", "मुझे पिज़्ज़ा पसंद है"),
    ("likes", (BOYS, many(BARE, "banana")), "the boys like bananas", "लड़कों को केले पसंद हैं"),
    ("likes, not", (RAVI, one(BARE, "coffee")), "Ravi does not like coffee", "रवि को कॉफ़ी पसंद नहीं है"),
    ("wants", (THEY, many(FIVE, "chair"), NONE), "they want five chairs", "उन्हें पाँच कुर्सियाँ चाहिए"),
    ("feels", (YOU, feeling("hungry"), VERY, NONE), "you are very hungry", "आपको बहुत भूख लगी है"),
    # having: near one, or one's
    ("has", (MY_BROTHER, many(TWO, "book", "red")), "my brother has two red books", "मेरे भाई के पास दो लाल किताबें हैं"),
    ("has kin", (RAVI, one(A, "sister")), "Ravi has a sister", "रवि की एक बहन है"),
    ("how many", (YOU, many(BARE, "shirt")), "how many shirts do you have", "आपके पास कितनी कमीज़ें हैं"),
    # where things are: the oblique of noun, adjective, determiner and possessive
    ("there is", (one(A, "cat"), spot("on the table")), "there is a cat on the table", "मेज़ पर एक बिल्ली है"),
    (
        "is somewhere",
        (many(of(YOU), "key"), spot("in this room")),
        "your keys are in this room",
        "आपकी चाबियाँ इस कमरे में हैं",
    ),
    (
        "was somewhere",
        (one(THE, "ball"), spot("under the big bed")),
        "the ball was under the big bed",
        "गेंद बड़े पलंग के नीचे थी",
    ),
    ("where is", (one(of(ME), "bag", "red"),), "where is my red bag", "मेरा लाल थैला कहाँ है"),
    # adjectives, comparison
    ("is like", (many(THE, "mango"), ADJECTIVE["sweet"], VERY), "the mangoes are very sweet", "आम बहुत मीठे हैं"),
    ("was like", (many(THESE, "shirt"), ADJECTIVE["new"], NONE), "these shirts were new", "ये कमीज़ें नई थीं"),
    ("mood", (MY_FATHER, ADJECTIVE["alone"], NONE, NONE), "my father is alone", "मेरे पिता अकेले हैं"),
    ("people compared", (SHE, ADJECTIVE["tall"], ME), "she is taller than me", "वह मुझसे ज़्यादा लंबी है"),
    ("whose", (many(ALONE, "shoe"), (THIS, THESE)), "whose shoes are these", "ये किसके जूते हैं"),
    # between people
    ("gave", (RAVI, VERBS["give"], GIRL, one(A, "book")), "Ravi gave the girl a book", "रवि ने लड़की को एक किताब दी"),
    ("talked", (SHE, BOYS, NONE), "she talked to the boys", "उसने लड़कों से बात की"),
    ("please", (act("open", one(THE, "window")),), "please open the window", "कृपया खिड़की खोलिए"),
    ("please do not", (act("close", one(THE, "door")),), "please do not close the door", "कृपया दरवाज़ा बंद मत कीजिए"),
    ("order", (call("Amit"), act("read", one(THE, "book")), NONE), "Amit, read the book", "अमित, किताब पढ़ो"),
    ("went", (MY_MOTHER, goal("the temple"), YESTERDAY), "my mother went to the temple yesterday", "मेरी माँ कल मंदिर गईं"),
    ("came from", (BOYS, goal("school"), NONE), "the boys came from school", "लड़के स्कूल से आए"),
    ("will go with", (RAVI, goal("home"), ME), "Ravi will go home with me", "रवि मेरे साथ घर जाएगा"),
]


@pytest.mark.parametrize(("name", "filling", "english", "hindi"), KNOWN_ANSWERS)
def test_a_rule_gives_the_sentence_worked_by_hand(name, filling, english, hindi):
    pattern = PATTERNS[name]
    assert pattern.allowed(*filling)
    assert spaced(pattern.english(*filling)) == english
    assert spaced(pattern.hindi(*filling)) == unicodedata.normalize("NFC", hindi)


def test_familiar_you_agrees_with_the_gender_of_the_one_called():
    assert [TUM[gender].ga(VERBS["go"]) for gender in "mf"] == ["जाओगे", "जाओगी"]


def stem(english: str) -> str:
    return english.rstrip(".?")


def everything() -> list[tuple[str, str]]:
    return [pair for split in SPLITS for pair in phrasebook(split)]


def test_the_splits_have_the_promised_sizes():
    sizes = {split: len(phrasebook(split)) for split in SPLITS}
    assert 30_000 <= sum(sizes.values()) <= 60_000
    assert 25_000 <= sizes["train"] <= 40_000
    assert 450 <= sizes["dev"] <= 550
    assert 900 <= sizes["test"] <= 1100


def test_an_english_sentence_occurs_once_with_or_without_its_mark():
    stems = Counter(stem(english) for english, _ in everything())
    assert [each for each, times in stems.items() if times > 1] == []


def test_english_to_hindi_is_a_function_also_beyond_the_sample():
    translation: dict[str, str] = {}
    for name, pattern in PATTERNS.items():
        for each in sentences(name, pattern, count=2 * SHARE).values():
            bare = each.hindi.rstrip("।?")
            assert translation.setdefault(each.stem, bare) == bare, each
    assert len(translation) > 55_000


def test_every_held_out_word_is_known_on_both_sides():
    for side in (0, 1):
        known = Counter(word for pair in phrasebook("train") for word in words(pair[side]))
        held_out = {word for split in ("dev", "test") for pair in phrasebook(split) for word in words(pair[side])}
        assert sorted(word for word in held_out if known[word] < KNOWN) == []


def test_i_like_pizza_is_held_out_and_its_words_are_known():
    assert ("I like pizza", "मुझे पिज़्ज़ा पसंद है") in phrasebook("test")
    train = phrasebook("train")
    assert "I like pizza" not in {stem(english) for english, _ in train}
    known = {word for pair in train for word in words(" ".join(pair))}
    assert {"I", "like", "pizza", "मुझे", "पिज़्ज़ा", "पसंद", "है"} <= known


def test_every_pattern_has_its_fair_share_and_nearly_all_are_tested():
    shares = Counter(each.pattern for split in SPLITS for each in splits()[split])
    assert set(shares) == set(PATTERNS)
    assert max(shares.values()) <= SHARE + 1  # and "I like pizza"
    assert sum(1 for share in shares.values() if share == SHARE) > 0.9 * len(PATTERNS)
    assert len({each.pattern for each in splits()["test"]}) > 0.9 * len(PATTERNS)


def test_a_minority_of_statements_and_no_question_goes_without_its_mark():
    ends = Counter(english[-1] if english[-1] in ".?" else "" for english, _ in everything())
    assert 0.08 < ends[""] / (ends[""] + ends["."]) < 0.17
    for english, hindi in everything():
        assert {".": "।", "?": "?"}.get(english[-1], "") == (hindi[-1] if hindi[-1] in "।?" else ""), (english, hindi)


def test_sentences_are_short_and_clean():
    for english, hindi in everything():
        assert 3 <= len(words(english)) <= 12, english
        assert re.fullmatch(r"[A-Z][A-Za-z',]*( [A-Za-z',]+)*[.?]?", english), english
        assert re.fullmatch(r"[\u0900-\u0963]+( [\u0900-\u0963]+)?,?( [\u0900-\u0963]+)*[।?]?", hindi), hindi
        assert unicodedata.normalize("NFC", hindi) == hindi, hindi


def test_english_articles_and_verbs_agree():
    single = r"(He|She|Ravi|Meena|The (boy|girl|man|woman|child)|My (brother|sister|father|mother))"
    several = r"(You|We|They|The (boys|girls|men|women))"
    wrong = re.compile(
        rf"\b[Aa] [aeiou]|\b[Aa]n [^aeiou]|^I (is|are|were|has|does|likes|wants|goes)\b"
        rf"|^{single} (am|are|were|have|do|like|want|go)\b|^{several} (am|is|was|has|does|likes|wants|goes)\b"
    )
    assert [english for english, _ in everything() if wrong.search(english)] == []


def test_the_vocabulary_is_small():
    assert 250 <= len({word.lower() for english, _ in everything() for word in words(english)}) <= 450


def test_nouns_inflect_by_the_ending_and_gender_of_their_class():
    for noun in NOUNS.values():
        if noun.gender == "m" and noun.hi.endswith("ा") and noun.en != "father":
            assert noun.oblique == noun.hi[:-1] + "े", noun
        else:
            assert noun.oblique == noun.hi, noun
        if noun.mass:
            continue
        if noun.gender == "m":
            assert noun.hi_many == noun.oblique, noun
        elif noun.hi.endswith("ी"):
            assert noun.hi_many == noun.hi[:-1] + "ियाँ", noun
        else:
            assert noun.hi_many.endswith(("ें", "एँ", "ियाँ")), noun
        assert noun.oblique_many.endswith(("ों", "ओं")), noun


def test_adjectives_inflect_like_their_masculine():
    for adjective in ADJECTIVES:
        direct, oblique, feminine = adjective.forms
        if adjective.en == "new":
            assert adjective.forms == ("नया", "नए", "नई")
        elif direct.endswith("ा"):
            assert (oblique, feminine) == (direct[:-1] + "े", direct[:-1] + "ी"), adjective
        else:
            assert direct == oblique == feminine, adjective


def test_examples_are_ten_test_sentences_of_ten_patterns():
    chosen = examples()
    pattern = {each.english: each.pattern for each in splits()["test"]}
    assert len(chosen) == 10
    assert len({pattern[english] for english in chosen}) == 10
    assert chosen[0] == "I like pizza"


def test_the_corpus_never_changes_unnoticed():
    digest = hashlib.sha256()
    for split in SPLITS:
        digest.update("".join(f"{split}\t{english}\t{hindi}\n" for english, hindi in phrasebook(split)).encode())
    assert digest.hexdigest() == "3d75bdecc2dcf0180090c0772d8226d960b1cc230cbe5a5bcd442c59c0c85f8a"


def test_a_caller_cannot_change_the_corpus():
    phrasebook("dev").clear()
    assert len(phrasebook("dev")) > 0


def test_an_unknown_split_is_an_error_that_names_the_splits():
    with pytest.raises(InputError, match="choose train, dev or test"):
        phrasebook("valid")


def test_every_embedded_corpus_loads_and_names_its_languages():
    assert EMBEDDED.keys() == LANGUAGES.keys()
    for load in EMBEDDED.values():
        assert load("dev")
    assert LANGUAGES["phrasebook"] == ("en", "hi")
