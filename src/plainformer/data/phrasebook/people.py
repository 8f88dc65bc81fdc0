"""The people of the phrasebook: every one with the English and the Hindi case forms, and what agrees with them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from plainformer.data.phrasebook.words import HAI, NOUNS, ORDER, Noun, Verb, agree, group, oblique, table, tha


@dataclass(frozen=True)
class Person:
    """Someone who can be a subject: English forms, Hindi case forms, and what agrees with them.

    English: I, me, whose (my, Ravi's), own (the possessive that points back: my, his), be (am, is, are).
    Hindi: direct; `ne` in the transitive past; `ko`, to whom; `se`, from whom; `ka`, the possessive without its vowel.
    """

    en: str
    me: str
    whose: str
    own: str
    be: str
    hi: str
    ne: str
    ko: str
    se: str
    ka: str
    agr: str
    hai: str

    def does(self, verb: Verb) -> str:
        return verb.es if self.be == "is" else verb.base

    @cached_property
    def do(self) -> str:
        return "does" if self.be == "is" else "do"

    @cached_property
    def likes(self) -> str:
        return "likes" if self.be == "is" else "like"

    @cached_property
    def has(self) -> str:
        return "has" if self.be == "is" else "have"

    @cached_property
    def was(self) -> str:
        return "were" if self.be == "are" else "was"

    @cached_property
    def tha(self) -> str:
        return tha(self.agr)

    @cached_property
    def raha(self) -> str:
        return agree("रह", self.agr)

    def ta(self, verb: Verb) -> str:
        """The imperfective participle, of what one does by habit: खाता, खाते, खाती."""
        return agree(verb.stem + "त", self.agr)

    def went(self, verb: Verb) -> str:
        """The perfective of a verb without an object, which agrees with the subject: गया, गए, गई, गईं."""
        return verb.perfect[ORDER.index(self.agr)]

    def ga(self, verb: Verb) -> str:
        """The future: the subjunctive of the person, then ग with the vowel of the gender and number: खाऊँगा, खाएँगी."""
        return agree(verb.finite[HAI.index(self.hai)] + "ग", self.agr)

    def kaa(self, agr: str) -> str:
        """The possessive before something of this agreement: मेरा भाई, मेरी बहन, रवि के जूते."""
        return agree(self.ka, agr)

    @cached_property
    def ke(self) -> str:
        """The possessive before a postposition: मेरे पास (near me, which is how one has a thing), रवि के साथ."""
        return self.ka + "े"


# English: I me my am | Hindi: direct, ne, ko, se, possessive stem | agreement | am, is, are.
# Where English does not show gender, 'I', 'you', 'we' and 'they' are masculine, and 'you' is the polite आप.
_PRONOUNS = """
    I    me   my    am   मैं  मैंने      मुझे   मुझसे  मेर   ms  हूँ
    you  you  your  are  आप आपने    आपको आपसे  आपक  mp  हैं
    he   him  his   is   वह  उसने     उसे    उससे  उसक  ms  है
    she  her  her   is   वह  उसने     उसे    उससे  उसक  fs  है
    we   us   our   are  हम  हमने     हमें   हमसे  हमार  mp  हैं
    they them their are  वे   उन्होंने   उन्हें   उनसे   उनक  mp  हैं
"""


def _pronoun(row: list[str]) -> Person:
    en, me, my, be, hi, ne, ko, se, ka, agr, hai = row
    return Person(en, me, my, my, be, hi, ne, ko, se, ka, agr, hai)


PRONOUNS = [_pronoun(row) for row in table(_PRONOUNS)]
ME, YOU, HE, SHE, WE, THEY = PRONOUNS
TUM = {  # the familiar 'you', for someone called by name: masculine and feminine
    gender: Person("you", "you", "your", "your", "are", "तुम", "तुमने", "तुम्हें", "तुमसे", "तुम्हार", gender + "p", "हो")
    for gender in "mf"
}
MADAM = Person("you", "you", "your", "your", "are", "आप", "आपने", "आपको", "आपसे", "आपक", "fp", "हैं")


def named(en: str, hi: str, before: str, agr: str, *, one: bool = True) -> Person:
    """A person named by a noun phrase, of Hindi direct form `hi` and oblique form `before` (a postposition).

    `one` is the English number: "my father" is one in English and, out of respect, many in Hindi.
    """
    own = ("his" if agr[0] == "m" else "her") if one else "their"
    hai = "हैं" if agr[1] == "p" else "है"
    ne, ko, se, ka = (f"{before} {case}" for case in ("ने", "को", "से", "क"))
    whose = en + "'" if en.endswith("s") else en + "'s"
    return Person(en, en, whose, own, "is" if one else "are", hi, ne, ko, se, ka, agr, hai)


NAMES = [
    named(en, hi, hi, agr)
    for en, hi, agr in table("""
        Ravi   रवि    ms
        Amit   अमित   ms
        Arjun  अर्जुन  ms
        Meena  मीना   fs
        Sita   सीता   fs
        Anita  अनीता  fs""")
]


def relative(owner: Person, noun: Noun) -> Person:
    """My brother, your mother: the possessive agrees with the relative; parents are honoured with the plural."""
    agr = noun.gender + ("p" if noun.group == "parent" else "s")
    hi, before = (f"{owner.kaa(agr)} {noun.hi}", f"{owner.kaa(oblique(agr))} {noun.oblique}")
    return named(f"{owner.whose} {noun.en}", hi, before, agr)


def common(noun: Noun) -> list[Person]:
    """The boy, the boys."""
    one = named(f"the {noun.en}", noun.hi, noun.oblique, noun.gender + "s")
    return [one, named(f"the {noun.en_many}", noun.hi_many, noun.oblique_many, noun.gender + "p", one=False)]


RELATIVES = [relative(ME, noun) for noun in group("kin", "parent")] + [
    relative(owner, NOUNS[en]) for owner in (YOU, HE, SHE, WE) for en in ("brother", "sister", "mother")
]
COMMON = [person for noun in group("people") for person in common(noun)]
