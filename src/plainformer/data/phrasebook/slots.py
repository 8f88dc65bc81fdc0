"""What fills the slots of the sentence patterns: people, things, actions, places and times.

A slot is a list of groups. A group is drawn first and then a phrase of it, so a large group does not drown a small one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations, product

from plainformer.data.phrasebook.people import (
    COMMON,
    HE,
    MADAM,
    ME,
    NAMES,
    PRONOUNS,
    RELATIVES,
    SHE,
    THEY,
    TUM,
    WE,
    YOU,
    Person,
)
from plainformer.data.phrasebook.things import (
    BARE,
    COUNTS,
    MANY,
    NOUN,
    POINTING,
    SOME,
    THAT,
    THE,
    THESE,
    THIS,
    THOSE,
    THREE,
    TWO,
    A,
    Adjunct,
    Determiner,
    Event,
    Thing,
    described,
    of,
    thing,
    things,
)
from plainformer.data.phrasebook.words import ADJECTIVES, NOUNS, VERBS, Adjective, group, table

PEOPLE = [[ME], PRONOUNS, PRONOUNS, NAMES, RELATIVES, COMMON]  # a phrasebook speaks of 'I' first
ASKED = [[YOU, HE, SHE, THEY], NAMES, RELATIVES, COMMON]  # of whom one asks; nobody asks what he himself does
OTHERS = [PRONOUNS, NAMES, COMMON]  # as objects: not "my brother", whose 'my' could mean the subject
OWNERS = [[ME, YOU, WE], NAMES, COMMON]  # not "his", which could mean the subject's own
FOOD = ("fruit", "snack", "dish")
USEFUL = ("reading", "clothes", "goods", "furniture")
INANIMATE = (*FOOD, "drink", *USEFUL, "building", "art")
ALIVE = ("animal", "nature")
LARGE = ("car", "bicycle", "horse", "cow", "elephant")
SMALL = [noun for noun in group("fruit", "reading", "clothes", "goods", "animal") if noun.en not in LARGE]
MINE = [of(person) for person in (ME, YOU, HE, SHE, WE, THEY, NAMES[0], NAMES[3], *COMMON[:4], *RELATIVES[:2])]
KINDS = [things(group(*USEFUL, "animal"), BARE)]
GENERIC = [things(group(name), BARE) for name in (*FOOD, "drink", *USEFUL, *ALIVE, "art", "skill")]
GENERIC_PAIRS = [list(permutations(kinds, 2)) for kinds in GENERIC]
NEEDED = [things(group(name), BARE) for name in (*FOOD, "drink", *USEFUL)]
WANTED = [
    *NEEDED,
    things(group(*FOOD, "drink", *USEFUL), A, SOME, *COUNTS, *POINTING),
    described(group(*USEFUL), A, TWO),
]
OWNED = [things(group(*USEFUL, "animal"), A, *COUNTS), described(group(*USEFUL, "animal"), A, TWO, THREE)]
LACKED = [things(group(*USEFUL, "animal"), A)]
KIN = [things(group("kin"), A, TWO, THREE)]
LOVED = [
    [thing(NOUN, NOUNS[en], "s") for en in ("brother", "sister", "friend", "father", "mother")],
    [thing(NOUN, noun, "s") for noun in group("animal")],
]
FAMILY = [*LOVED[:1], things([NOUNS["brother"], NOUNS["sister"], NOUNS["friend"]], NOUN)]
NAMEABLE = [[ME, YOU, HE, SHE], RELATIVES, [person for person in COMMON if person.be == "is"]]
RECEIVERS = [[ME, HE, SHE, WE, THEY], NAMES, COMMON]
FOUND = [things(SMALL, A, *COUNTS), described(SMALL, A, TWO)]
KEPT = [things(SMALL, THE, *POINTING), things(SMALL, *MINE), described(SMALL, THE, *MINE[:3])]
JUDGED = [things(group(*INANIMATE, *ALIVE), THE, *POINTING), things(group(*INANIMATE), *MINE)]
SHOWN = [
    things(group(*USEFUL, "building", "animal"), *MINE),
    described(group(*USEFUL, "building", "animal"), A, *MINE[:3]),
]
NAMED = [things(group(*USEFUL, "building", "animal"), NOUN), described(group(*USEFUL, "building", "animal"), NOUN)]
GIVEN = [
    things(group("fruit", "snack", *USEFUL), A, THE, *COUNTS, *POINTING),
    things(group("dish", "drink"), BARE, SOME, THIS),
    described(group("reading", "clothes", "goods"), A, TWO),
]
ANIMALS = [things(group("animal"), THE, *POINTING), described(group("animal"), THE)]
QUALITIES = [ADJECTIVES]
TRAITS = [[adjective for adjective in ADJECTIVES if "people" in adjective.groups]]
MOODS = [[adjective for adjective in ADJECTIVES if "mood" in adjective.groups]]

_OBJECTS = """
    eat        fruit snack dish
    drink      drink
    read       reading
    write      letter book story poem
    buy        fruit book newspaper magazine clothes goods furniture house shop flower
    sell       fruit book magazine clothes goods furniture house shop cow goat horse
    watch      film cricket football
    open       door window box shop bag letter
    close      door window box shop book umbrella
    clean      room house table window bicycle
    wash       cup plate shirt car apple hat carrot
    cook       rice dal fish soup potato
    make       tea coffee pizza bread samosa toy
    learn      Hindi English music chess
    play       cricket football chess
    sing       song
    listen_to  song story music
    break      cup plate toy chair window clock egg
"""
OBJECTS = {  # verb -> the nouns it takes
    verb: [noun for noun in NOUNS.values() if noun.en in names or noun.group in names]
    for verb, *names in table(_OBJECTS)
}


def events(*verbs: str, openers: Sequence[Determiner], adjectives: Sequence[Determiner] = ()) -> list[list[Event]]:
    """The actions of these verbs, a group a verb, and another with an adjective behind each of `adjectives`."""
    return [
        [Event(VERBS[verb], phrase) for phrase in phrases]
        for verb in verbs
        for phrases in (things(OBJECTS[verb], *openers), described(OBJECTS[verb], *adjectives))
        if phrases
    ]


HABITUAL = [verb for verb in OBJECTS if verb not in ("open", "close", "clean", "break")]
HABITS = events(*HABITUAL, openers=(BARE,))
HABIT_PAIRS = [list(permutations(habits, 2)) for habits in HABITS if len(habits) > 1]  # of one verb
DEEDS = events(*OBJECTS, openers=(A, THE, TWO, THREE, MANY, *POINTING), adjectives=(A, THE, TWO))
SKILLS = events("learn", "play", "listen to", openers=(BARE,))  # what takes no article
ACTS = [*DEEDS, *SKILLS, *events("eat", "drink", "cook", "make", openers=(BARE,))]
ORDERS = events(*OBJECTS, openers=(THE, *POINTING), adjectives=(THE,)) + SKILLS
DENIED = [*events(*OBJECTS, openers=(THE, *POINTING)), *SKILLS, *events("eat", "drink", "cook", openers=(BARE,))]
HANDLED = events(*(verb for verb in OBJECTS if verb != "buy"), openers=(NOUN,))
NEEDS = [*events("eat", openers=(A, TWO, BARE), adjectives=(A,)), *events("drink", openers=(BARE, SOME))]
IDLE = [[VERBS[verb] for verb in ("sleep", "run", "laugh", "cry", "dance", "work")]]
ASKABLE = [[VERBS[verb] for verb in OBJECTS]]
GIVING = [[VERBS[verb] for verb in ("give", "send", "show")]]


@dataclass(frozen=True)
class Goal:
    """A place to go to: Hindi goes there without a postposition (स्कूल जाना), and comes from it with से."""

    en: str
    to: str
    at: str
    hi: str
    at_hi: str


# English, to it, at it | Hindi, at it
_GOALS = """
    school        to_school        at_school        स्कूल      स्कूल_में
    home          home             at_home          घर        घर_पर
    the_market    to_the_market    in_the_market    बाज़ार     बाज़ार_में
    the_office    to_the_office    in_the_office    दफ़्तर     दफ़्तर_में
    the_hospital  to_the_hospital  in_the_hospital  अस्पताल   अस्पताल_में
    the_station   to_the_station   at_the_station   स्टेशन     स्टेशन_पर
    the_temple    to_the_temple    in_the_temple    मंदिर      मंदिर_में
    the_library   to_the_library   in_the_library   पुस्तकालय  पुस्तकालय_में
    the_park      to_the_park      in_the_park      पार्क      पार्क_में
    the_village   to_the_village   in_the_village   गाँव      गाँव_में
    the_city      to_the_city      in_the_city      शहर       शहर_में
    Delhi         to_Delhi         in_Delhi         दिल्ली     दिल्ली_में
    Mumbai        to_Mumbai        in_Mumbai        मुंबई      मुंबई_में
"""
GOALS = [[Goal(*row) for row in table(_GOALS)]]

# English preposition | Hindi postposition | the nouns
_SPOTS = """
    in           में         room house garden box shop
    on           पर         table chair bed
    under        के_नीचे     table chair bed tree
    near         के_पास      door window tree house shop
    behind       के_पीछे     house door tree shop
    in_front_of  के_सामने    house shop garden
"""


def spots(*owners: Determiner) -> list[list[Adjunct]]:
    """On the table: the noun phrase is oblique before its postposition. A group for each, plain and with adjectives."""
    return [
        [Adjunct(f"{en} {spot.en}", f"{spot.oblique} {hi}") for spot in found if not spot.many]
        for en, hi, *names in table(_SPOTS)
        for nouns in [[NOUNS[name] for name in names]]
        for found in (things(nouns, THE, THIS, THAT, *owners), described(nouns, THE, *owners[:1]))
    ]


SPOTS = spots(*MINE)
SCENES = spots()  # for a person, whose own 'my table' would be अपनी मेज़


@dataclass(frozen=True)
class Compared:
    """Two things and the adjective that compares them."""

    x: Thing
    y: Thing
    adjective: Adjective


RIVALS = [*pairwise(MINE[:3]), (MINE[6], MINE[7])]  # my and your, your and his, Ravi's and Meena's


def compared(number: str) -> list[Compared]:
    """Nouns next to each other in a group, and one noun in two hands, by every adjective that is said of both."""
    found = []
    for name in (*FOOD, "drink", *USEFUL, "building", "animal", "art"):
        nouns = [noun for noun in group(name) if number == "s" or not noun.mass]
        twos = [(noun, noun) for noun in nouns] + [two for x, y in pairwise(nouns) for two in ((x, y), (y, x))]
        pointed = (THIS, THAT) if number == "s" else (THESE, THOSE)
        for (x, y), adjective in product(twos, ADJECTIVES):
            if adjective.more and name in adjective.groups:
                hands = [*RIVALS, pointed] if x is y else [*RIVALS, pointed, (THE, THE)]
                found += [Compared(thing(a, x, number), thing(b, y, number), adjective) for a, b in hands]
    return found


COMPARED, COMPARED_MANY = [compared("s")], [compared("p")]


@dataclass(frozen=True)
class Feeling:
    """Hindi feels by having it come to one: मुझे भूख लगी है, to me hunger is attached. All four are feminine."""

    en: str
    hi: str
    comes: str


# English | Hindi noun, and the verb it takes
_FEELINGS = """
    hungry   भूख  लगी
    thirsty  प्यास  लगी
    cold     ठंड  लग_रही
    sleepy   नींद  आ_रही
"""
FEELINGS = [[Feeling(*row) for row in table(_FEELINGS)]]


def need(event: Event) -> Feeling:
    """Why one eats or drinks."""
    return FEELINGS[0][0 if event.v.base == "eat" else 1]


NONE = Adjunct("", "")


def adjuncts(*rows: str) -> list[list[Adjunct]]:
    """A slot of "English = Hindi" phrases, empty half the time."""
    return [[NONE], [Adjunct(*row.split(" = ")) for row in rows]]


OFTEN = adjuncts("every day = रोज़", "in the morning = सुबह", "in the evening = शाम को", "at night = रात को")
NOW = adjuncts("now = अभी", "today = आज")
PAST = adjuncts("yesterday = कल", "this morning = आज सुबह", "last night = कल रात", "today = आज")
FUTURE = adjuncts("tomorrow = कल", "this evening = आज शाम", "today = आज", "tomorrow morning = कल सुबह")
VERY = adjuncts("very = बहुत")
POINTERS = [[(THIS, THESE), (THAT, THOSE)]]
RIDES = [[Adjunct("by bus", "बस से"), Adjunct("by train", "रेलगाड़ी से"), Adjunct("by car", "गाड़ी से")]]


@dataclass(frozen=True)
class Call:
    """Someone spoken to, and the 'you' that goes with it: familiar after a name, polite after sir and madam."""

    en: str
    hi: str
    you: Person


FAMILIAR = [
    [Call(person.en, person.hi, TUM[person.agr[0]]) for person in NAMES] + [Call("my friend", "मेरे दोस्त", TUM["m"])]
]
CALLS = [*FAMILIAR, *FAMILIAR, [Call("sir", "सर", YOU), Call("madam", "मैडम", MADAM)]]
