"""Sentences about what one does, is doing, did, will do, can and must do: an English rule above its Hindi rule.

The first lesson is the order: English is subject, verb, object; Hindi is subject, object, verb.
The letters of a rule: s the subject; o another person or thing; e a verb with its object; v a verb; n a noun phrase;
a an adjective; p a place; t a time; m a measure ("very"); c someone called.
"""

from __future__ import annotations

from plainformer.data.phrasebook import slots as slot
from plainformer.data.phrasebook.pattern import Pattern, apart, apna, asks, says
from plainformer.data.phrasebook.words import VERBS, agree

WANT = VERBS["want"]

DOING: dict[str, Pattern] = {
    # What one does: the participle in -ता agrees with the subject.
    "habit": says(
        (slot.PEOPLE, slot.HABITS, slot.OFTEN),
        lambda s, e, t: f"{s.en} {s.does(e.v)} {e.en} {t.en}",
        lambda s, e, t: f"{s.hi} {t.hi} {e.hi} {s.ta(e.v)} {s.hai}",
    ),
    "habit, not": says(
        (slot.PEOPLE, slot.HABITS),
        lambda s, e: f"{s.en} {s.do} not {e.v.base} {e.en}",
        lambda s, e: f"{s.hi} {e.hi} नहीं {s.ta(e.v)} {s.hai}",
    ),
    "habit, asked": asks(
        (slot.ASKED, slot.HABITS, slot.OFTEN),
        lambda s, e, t: f"{s.do} {s.en} {e.v.base} {e.en} {t.en}",
        lambda s, e, t: f"क्या {s.hi} {t.hi} {e.hi} {s.ta(e.v)} {s.hai}",
    ),
    "habit, two people": says(
        (slot.OWNERS, slot.OWNERS, slot.HABIT_PAIRS),
        lambda s, o, e: f"{s.en} {s.does(e[0].v)} {e[0].en} but {o.en} {o.does(e[1].v)} {e[1].en}",
        lambda s, o, e: f"{s.hi} {e[0].hi} {s.ta(e[0].v)} {s.hai} लेकिन {o.hi} {e[1].hi} {o.ta(e[1].v)} {o.hai}",
        apart,
    ),
    "habit, called": asks(
        (slot.CALLS, slot.HABITS),
        lambda c, e: f"{c.en}, do you {e.v.base} {e.en}",
        lambda c, e: f"{c.hi}, क्या {c.you.hi} {e.hi} {c.you.ta(e.v)} {c.you.hai}",
    ),
    # What one is doing: the stem, then रहा.
    "doing": says(
        (slot.PEOPLE, slot.ACTS, slot.NOW),
        lambda s, e, t: f"{s.en} {s.be} {e.v.ing} {e.en} {t.en}",
        lambda s, e, t: f"{s.hi} {t.hi} {e.hi} {e.v.stem} {s.raha} {s.hai}",
    ),
    "doing, not": says(
        (slot.PEOPLE, slot.DENIED),
        lambda s, e: f"{s.en} {s.be} not {e.v.ing} {e.en}",
        lambda s, e: f"{s.hi} {e.hi} नहीं {e.v.stem} {s.raha} {s.hai}",
    ),
    "doing, asked": asks(
        (slot.ASKED, slot.ACTS, slot.NOW),
        lambda s, e, t: f"{s.be} {s.en} {e.v.ing} {e.en} {t.en}",
        lambda s, e, t: f"क्या {s.hi} {t.hi} {e.hi} {e.v.stem} {s.raha} {s.hai}",
    ),
    "doing then": says(
        (slot.PEOPLE, slot.ACTS, slot.PAST),
        lambda s, e, t: f"{s.en} {s.was} {e.v.ing} {e.en} {t.en}",
        lambda s, e, t: f"{s.hi} {t.hi} {e.hi} {e.v.stem} {s.raha} {s.tha}",
    ),
    "doing somewhere": says(
        (slot.PEOPLE, slot.IDLE, slot.SCENES),
        lambda s, v, p: f"{s.en} {s.be} {v.ing} {p.en}",
        lambda s, v, p: f"{s.hi} {p.hi} {v.pre} {v.stem} {s.raha} {s.hai}",
    ),
    "what doing": asks(
        (slot.ASKED, slot.ASKABLE, slot.NOW),
        lambda s, v, t: f"what {s.be} {s.en} {v.ing} {t.en}",
        lambda s, v, t: f"{s.hi} {t.hi} क्या {v.pre} {v.stem} {s.raha} {s.hai}",
    ),
    "why doing": asks(
        (slot.ASKED, slot.IDLE, slot.NOW),
        lambda s, v, t: f"why {s.be} {s.en} {v.ing} {t.en}",
        lambda s, v, t: f"{s.hi} {t.hi} क्यों {v.pre} {v.stem} {s.raha} {s.hai}",
    ),
    "who doing": asks(
        (slot.ACTS,), lambda e: f"who is {e.v.ing} {e.en}", lambda e: f"{e.o.hi} कौन {e.v.pre} {e.v.stem} रहा है"
    ),
    "because": says(
        ([slot.PRONOUNS], slot.NEEDS, slot.VERY),
        lambda s, e, m: f"{s.en} {s.be} {e.v.ing} {e.en} because {s.en} {s.be} {m.en} {slot.need(e).en}",
        lambda s, e, m: (
            f"{s.hi} {e.hi} {e.v.stem} {s.raha} {s.hai} क्योंकि {s.ko} {m.hi} {slot.need(e).hi} {slot.need(e).comes} है"
        ),
    ),
    # What one did: the subject takes 'ne' and the verb agrees with the object.
    "did": says(
        (slot.PEOPLE, slot.ACTS, slot.PAST),
        lambda s, e, t: f"{s.en} {e.v.ed} {e.en} {t.en}",
        lambda s, e, t: f"{s.ne} {t.hi} {e.hi} {e.perfect}",
    ),
    "did not": says(
        (slot.PEOPLE, slot.DENIED, slot.PAST),
        lambda s, e, t: f"{s.en} did not {e.v.base} {e.en} {t.en}",
        lambda s, e, t: f"{s.ne} {t.hi} {e.hi} नहीं {e.perfect}",
    ),
    "did, asked": asks(
        (slot.ASKED, slot.ACTS, slot.PAST),
        lambda s, e, t: f"did {s.en} {e.v.base} {e.en} {t.en}",
        lambda s, e, t: f"क्या {s.ne} {t.hi} {e.hi} {e.perfect}",
    ),
    "has done": says(
        (slot.PEOPLE, slot.ACTS),
        lambda s, e: f"{s.en} {s.has} {e.v.done} {e.en}",
        lambda s, e: f"{s.ne} {e.hi} {e.has}",
    ),
    "has not done": says(
        (slot.PEOPLE, slot.DENIED),
        lambda s, e: f"{s.en} {s.has} not {e.v.done} {e.en}",
        lambda s, e: f"{s.ne} {e.hi} नहीं {e.has}",
    ),
    "what did": asks(
        (slot.ASKED, slot.ASKABLE, slot.PAST),
        lambda s, v, t: f"what did {s.en} {v.base} {t.en}",
        lambda s, v, t: f"{s.ne} {t.hi} क्या {v.pre} {v.perfect[0]}",
    ),
    "who did": asks(
        (slot.ACTS, slot.PAST),
        lambda e, t: f"who {e.v.ed} {e.en} {t.en}",
        lambda e, t: f"{e.o.hi} {t.hi} किसने {e.v.pre} {e.perfect}",
    ),
    "did to one's own": says(
        (slot.PEOPLE, slot.HANDLED, slot.PAST),
        lambda s, e, t: f"{s.en} {e.v.ed} {s.own} {e.en} {t.en}",
        lambda s, e, t: f"{s.ne} {t.hi} {apna(e.o.agr)} {e.hi} {e.perfect}",
    ),
    "did to another's": says(
        (slot.PEOPLE, slot.OWNERS, slot.HANDLED),
        lambda s, o, e: f"{s.en} {e.v.ed} {o.whose} {e.en}",
        lambda s, o, e: f"{s.ne} {o.kaa(e.o.agr)} {e.hi} {e.perfect}",
        apart,
    ),
    # What one will do: the subjunctive, then -गा.
    "will": says(
        (slot.PEOPLE, slot.ACTS, slot.FUTURE),
        lambda s, e, t: f"{s.en} will {e.v.base} {e.en} {t.en}",
        lambda s, e, t: f"{s.hi} {t.hi} {e.hi} {s.ga(e.v)}",
    ),
    "will not": says(
        (slot.PEOPLE, slot.DENIED, slot.FUTURE),
        lambda s, e, t: f"{s.en} will not {e.v.base} {e.en} {t.en}",
        lambda s, e, t: f"{s.hi} {t.hi} {e.hi} नहीं {s.ga(e.v)}",
    ),
    "will, asked": asks(
        (slot.ASKED, slot.ACTS, slot.FUTURE),
        lambda s, e, t: f"will {s.en} {e.v.base} {e.en} {t.en}",
        lambda s, e, t: f"क्या {s.hi} {t.hi} {e.hi} {s.ga(e.v)}",
    ),
    "will, called": asks(
        (slot.CALLS, slot.ACTS),
        lambda c, e: f"{c.en}, will you {e.v.base} {e.en}",
        lambda c, e: f"{c.hi}, क्या {c.you.hi} {e.hi} {c.you.ga(e.v)}",
    ),
    "when will": asks(
        (slot.ASKED, slot.ORDERS),
        lambda s, e: f"when will {s.en} {e.v.base} {e.en}",
        lambda s, e: f"{s.hi} {e.o.hi} कब {e.v.pre} {s.ga(e.v)}",
    ),
    # What one can, wants to, likes to, has to do.
    "can": says(
        (slot.PEOPLE, slot.ACTS),
        lambda s, e: f"{s.en} can {e.v.base} {e.en}",
        lambda s, e: f"{s.hi} {e.hi} {e.v.stem} {agree('सकत', s.agr)} {s.hai}",
    ),
    "cannot": says(
        (slot.PEOPLE, slot.DENIED),
        lambda s, e: f"{s.en} cannot {e.v.base} {e.en}",
        lambda s, e: f"{s.hi} {e.hi} नहीं {e.v.stem} {agree('सकत', s.agr)} {s.hai}",
    ),
    "can, asked": asks(
        (slot.ASKED, slot.ACTS),
        lambda s, e: f"can {s.en} {e.v.base} {e.en}",
        lambda s, e: f"क्या {s.hi} {e.hi} {e.v.stem} {agree('सकत', s.agr)} {s.hai}",
    ),
    "wants to": says(
        (slot.PEOPLE, slot.ACTS),
        lambda s, e: f"{s.en} {s.does(WANT)} to {e.v.base} {e.en}",
        lambda s, e: f"{s.hi} {e.hi} {e.v.na} {s.ta(WANT)} {s.hai}",
    ),
    "does not want to": says(
        (slot.PEOPLE, slot.DENIED),
        lambda s, e: f"{s.en} {s.do} not want to {e.v.base} {e.en}",
        lambda s, e: f"{s.hi} {e.hi} नहीं {e.v.na} {s.ta(WANT)} {s.hai}",
    ),
    "likes to": says(
        (slot.PEOPLE, slot.HABITS),
        lambda s, e: f"{s.en} {s.likes} to {e.v.base} {e.en}",
        lambda s, e: f"{s.ko} {e.hi} {e.v.na} पसंद है",
    ),
    "has to": says(
        (slot.PEOPLE, slot.ACTS, slot.FUTURE),
        lambda s, e, t: f"{s.en} {s.has} to {e.v.base} {e.en} {t.en}",
        lambda s, e, t: f"{s.ko} {t.hi} {e.hi} {e.must}",
    ),
}
