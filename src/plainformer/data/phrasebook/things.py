"""Noun phrases and actions: a determiner, an adjective and a noun put together, English beside Hindi."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from plainformer.data.phrasebook.people import Person
from plainformer.data.phrasebook.words import ADJECTIVES, ORDER, Adjective, Noun, Verb, agree, oblique, tha


@dataclass(frozen=True)
class Adjunct:
    """A phrase that agrees with nothing: a time, a place, a measure."""

    en: str
    hi: str


@dataclass(frozen=True)
class Determiner:
    """What opens a noun phrase.

    `hi` and `oblique` are its Hindi forms, or `stem` takes the vowel of the noun. `count` says which numbers of a
    counted noun follow it (s, p), `mass` whether an uncounted one does.
    """

    en: str
    hi: str = ""
    oblique: str = ""
    count: str = ""
    mass: bool = False
    stem: str = ""

    def forms(self, agr: str) -> tuple[str, str]:
        """Direct and oblique form before a noun of this agreement."""
        return (agree(self.stem, agr), agree(self.stem, oblique(agr))) if self.stem else (self.hi, self.oblique)


BARE = Determiner("", count="p", mass=True)  # books, tea: any of the kind
NOUN = Determiner("", count="sp", mass=True)  # the noun alone, to be put behind an owner
A = Determiner("a", "एक", "एक", "s")
THE = Determiner("the", count="sp", mass=True)
TWO = Determiner("two", "दो", "दो", "p")
THREE = Determiner("three", "तीन", "तीन", "p")
FIVE = Determiner("five", "पाँच", "पाँच", "p")
MANY = Determiner("many", "कई", "कई", "p")
SOME = Determiner("some", mass=True, stem="थोड़")
THIS = Determiner("this", "यह", "इस", "s", mass=True)
THAT = Determiner("that", "वह", "उस", "s", mass=True)
THESE = Determiner("these", "ये", "इन", "p")
THOSE = Determiner("those", "वे", "उन", "p")
COUNTS = (TWO, THREE, FIVE, MANY)
POINTING = (THIS, THAT, THESE, THOSE)


def of(owner: Person) -> Determiner:
    """My, Ravi's: मेरा, रवि का."""
    return Determiner(owner.whose, stem=owner.ka, count="sp", mass=True)


@dataclass(frozen=True)
class Thing:
    """A noun phrase: English; Hindi direct and oblique; its agreement; its noun.

    Spaces may be doubled where a part is missing; the finished sentence sets them right.
    """

    en: str
    hi: str
    oblique: str
    agr: str
    noun: Noun

    @cached_property
    def many(self) -> bool:
        return self.agr[1] == "p"

    @cached_property
    def be(self) -> str:
        return "are" if self.many else "is"

    @cached_property
    def was(self) -> str:
        return "were" if self.many else "was"

    @cached_property
    def hai(self) -> str:
        return "हैं" if self.many else "है"

    @cached_property
    def tha(self) -> str:
        return tha(self.agr)

    def perfect(self, verb: Verb) -> str:
        """The past of a transitive verb agrees with its object: आम खाया, रोटी खाई, किताबें पढ़ीं."""
        return verb.perfect[ORDER.index(self.agr)]


def thing(opener: Determiner, noun: Noun, number: str, adjective: Adjective | None = None) -> Thing:
    """A big house: the adjective agrees, and takes its oblique form with the noun."""
    agr = noun.gender + number
    one = number == "s"
    direct, before = opener.forms(agr)
    en, hi, hi_before = (adjective.en, adjective.hi(agr), adjective.hi(oblique(agr))) if adjective else ("", "", "")
    words = f"{en} {noun.en if one else noun.en_many}".strip()
    return Thing(
        f"{'an' if opener is A and words[0] in 'aeiou' else opener.en} {words}",
        f"{direct} {hi} {noun.hi if one else noun.hi_many}",
        f"{before} {hi_before} {noun.oblique if one else noun.oblique_many}",
        agr,
        noun,
    )


def things(nouns: Sequence[Noun], *openers: Determiner) -> list[Thing]:
    """Every noun behind every determiner that goes with it, in every number that does."""
    return [
        thing(opener, noun, number)
        for noun, opener in product(nouns, openers)
        if opener is BARE or not noun.bare
        for number in (("s" if opener.mass else "") if noun.mass else opener.count)
    ]


def described(nouns: Sequence[Noun], *openers: Determiner) -> list[Thing]:
    """As `things`, with every adjective that is said of the noun."""
    return [
        thing(opener, noun, number, adjective)
        for noun, opener, adjective in product(nouns, openers, ADJECTIVES)
        if noun.group in adjective.groups
        for number in (("s" if opener.mass else "") if noun.mass else opener.count)
    ]


@dataclass(frozen=True)
class Event:
    """A verb with its object; `pre` is the Hindi word of a compound verb, which stands between the two (साफ़ करना)."""

    v: Verb
    o: Thing

    @cached_property
    def en(self) -> str:
        return self.o.en

    @cached_property
    def hi(self) -> str:
        """All that stands before the verb form: the object and `pre`."""
        return f"{self.o.hi} {self.v.pre}"

    @cached_property
    def perfect(self) -> str:
        return self.o.perfect(self.v)

    @cached_property
    def has(self) -> str:
        """The perfective with an auxiliary, which alone shows fp: रोटियाँ खाई हैं."""
        agr = "fs" if self.o.agr == "fp" else self.o.agr
        return f"{self.v.perfect[ORDER.index(agr)]} {self.o.hai}"

    @cached_property
    def must(self) -> str:
        """The infinitive that agrees with the object, and is: किताब पढ़नी है, दो आम खाने हैं."""
        return f"{agree(self.v.stem + 'न', self.o.agr)} {self.o.hai}"
