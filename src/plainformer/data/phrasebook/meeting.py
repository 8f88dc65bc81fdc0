"""Sentences between people: seeing, talking, giving, asking a favour, going together: English above Hindi.

The letters of a rule: s the subject; o another person or thing; e a verb with its object; v a verb; n a noun phrase;
a an adjective; p a place; t a time; m a measure ("very"); c someone called.
"""

from __future__ import annotations

from plainformer.data.phrasebook import slots as slot
from plainformer.data.phrasebook.pattern import Pattern, apart, apna, asks, says
from plainformer.data.phrasebook.words import VERBS, oblique

COME, GIVE, GO, SEE, TALK, WANT = (VERBS[verb] for verb in ("come", "give", "go", "see", "talk", "want"))

MEETING: dict[str, Pattern] = {
    # A person or an animal that is seen takes 'ko', and then the verb agrees with nothing: it is ms.
    "saw": says(
        (slot.PEOPLE, slot.OTHERS, slot.PAST),
        lambda s, o, t: f"{s.en} {SEE.ed} {o.me} {t.en}",
        lambda s, o, t: f"{s.ne} {t.hi} {o.ko} {SEE.perfect[0]}",
        apart,
    ),
    "saw an animal": says(
        (slot.PEOPLE, slot.ANIMALS, slot.GOALS),
        lambda s, n, p: f"{s.en} {SEE.ed} {n.en} {p.at}",
        lambda s, n, p: f"{s.ne} {p.at_hi} {n.oblique} को {SEE.perfect[0]}",
    ),
    # One talks with (से) someone: बात, which is feminine, is what is done.
    "talked": says(
        (slot.PEOPLE, slot.OTHERS, slot.PAST),
        lambda s, o, t: f"{s.en} {TALK.ed} to {o.me} {t.en}",
        lambda s, o, t: f"{s.ne} {t.hi} {o.se} बात की",
        apart,
    ),
    "talking": says(
        (slot.PEOPLE, slot.OTHERS, slot.NOW),
        lambda s, o, t: f"{s.en} {s.be} {TALK.ing} to {o.me} {t.en}",
        lambda s, o, t: f"{s.hi} {t.hi} {o.se} बात कर {s.raha} {s.hai}",
        apart,
    ),
    # To whom one gives takes 'ko'; the verb agrees with what is given.
    "gave": says(
        (slot.PEOPLE, slot.GIVING, slot.OTHERS, slot.GIVEN),
        lambda s, v, o, n: f"{s.en} {v.ed} {o.me} {n.en}",
        lambda s, v, o, n: f"{s.ne} {o.ko} {n.hi} {n.perfect(v)}",
        lambda s, v, o, n: apart(s, o),
    ),
    "will give": says(
        (slot.PEOPLE, slot.GIVING, slot.OTHERS, slot.GIVEN),
        lambda s, v, o, n: f"{s.en} will {v.base} {o.me} {n.en}",
        lambda s, v, o, n: f"{s.hi} {o.ko} {n.hi} {s.ga(v)}",
        lambda s, v, o, n: apart(s, o),
    ),
    "please give": says(
        (slot.GIVING, slot.RECEIVERS, slot.GIVEN),
        lambda v, o, n: f"please {v.base} {o.me} {n.en}",
        lambda v, o, n: f"कृपया {o.ko} {n.hi} {v.polite}",
    ),
    # Requests: polite -इए, familiar -ओ; मत forbids.
    "please": says((slot.ORDERS,), lambda e: f"please {e.v.base} {e.en}", lambda e: f"कृपया {e.hi} {e.v.polite}"),
    "please do not": says(
        (slot.ORDERS,), lambda e: f"please do not {e.v.base} {e.en}", lambda e: f"कृपया {e.hi} मत {e.v.polite}"
    ),
    "order": says(
        (slot.FAMILIAR, slot.ORDERS, slot.NOW),
        lambda c, e, t: f"{c.en}, {e.v.base} {e.en} {t.en}",
        lambda c, e, t: f"{c.hi}, {t.hi} {e.hi} {e.v.order}",
    ),
    "order not": says(
        (slot.FAMILIAR, slot.ORDERS),
        lambda c, e: f"{c.en}, do not {e.v.base} {e.en}",
        lambda c, e: f"{c.hi}, {e.hi} मत {e.v.order}",
    ),
    # Going: the place takes no postposition, and the past agrees with the one who goes.
    "goes": says(
        (slot.PEOPLE, slot.GOALS, slot.OFTEN),
        lambda s, p, t: f"{s.en} {s.does(GO)} {p.to} {t.en}",
        lambda s, p, t: f"{s.hi} {t.hi} {p.hi} {s.ta(GO)} {s.hai}",
    ),
    "going": says(
        (slot.PEOPLE, slot.GOALS, slot.NOW),
        lambda s, p, t: f"{s.en} {s.be} {GO.ing} {p.to} {t.en}",
        lambda s, p, t: f"{s.hi} {t.hi} {p.hi} जा {s.raha} {s.hai}",
    ),
    "going, asked": asks(
        (slot.ASKED, slot.GOALS, slot.NOW),
        lambda s, p, t: f"{s.be} {s.en} {GO.ing} {p.to} {t.en}",
        lambda s, p, t: f"क्या {s.hi} {t.hi} {p.hi} जा {s.raha} {s.hai}",
    ),
    "went": says(
        (slot.PEOPLE, slot.GOALS, slot.PAST),
        lambda s, p, t: f"{s.en} {GO.ed} {p.to} {t.en}",
        lambda s, p, t: f"{s.hi} {t.hi} {p.hi} {s.went(GO)}",
    ),
    "did not go": says(
        (slot.PEOPLE, slot.GOALS, slot.PAST),
        lambda s, p, t: f"{s.en} did not go {p.to} {t.en}",
        lambda s, p, t: f"{s.hi} {t.hi} {p.hi} नहीं {s.went(GO)}",
    ),
    "went by": says(
        (slot.PEOPLE, slot.GOALS, slot.RIDES),
        lambda s, p, t: f"{s.en} {GO.ed} {p.to} {t.en}",
        lambda s, p, t: f"{s.hi} {t.hi} {p.hi} {s.went(GO)}",
    ),
    "will go": says(
        (slot.PEOPLE, slot.GOALS, slot.FUTURE),
        lambda s, p, t: f"{s.en} will go {p.to} {t.en}",
        lambda s, p, t: f"{s.hi} {t.hi} {p.hi} {s.ga(GO)}",
    ),
    "when will go": asks(
        (slot.ASKED, slot.GOALS),
        lambda s, p: f"when will {s.en} go {p.to}",
        lambda s, p: f"{s.hi} {p.hi} कब {s.ga(GO)}",
    ),
    "wants to go": says(
        (slot.PEOPLE, slot.GOALS, slot.FUTURE),
        lambda s, p, t: f"{s.en} {s.does(WANT)} to go {p.to} {t.en}",
        lambda s, p, t: f"{s.hi} {t.hi} {p.hi} जाना {s.ta(WANT)} {s.hai}",
    ),
    "has to go": says(
        (slot.PEOPLE, slot.GOALS, slot.FUTURE),
        lambda s, p, t: f"{s.en} {s.has} to go {p.to} {t.en}",
        lambda s, p, t: f"{s.ko} {t.hi} {p.hi} जाना है",
    ),
    "came from": says(
        (slot.PEOPLE, slot.GOALS, slot.PAST),
        lambda s, p, t: f"{s.en} {COME.ed} from {p.en} {t.en}",
        lambda s, p, t: f"{s.hi} {t.hi} {p.hi} से {s.went(COME)}",
    ),
    # With someone is के साथ; with one's own someone is अपने ... के साथ.
    "will go with": says(
        (slot.PEOPLE, slot.GOALS, slot.OTHERS),
        lambda s, p, o: f"{s.en} will go {p.to} with {o.me}",
        lambda s, p, o: f"{s.hi} {o.ke} साथ {p.hi} {s.ga(GO)}",
        lambda s, p, o: apart(s, o),
    ),
    "going with one's own": says(
        (slot.PEOPLE, slot.GOALS, slot.FAMILY),
        lambda s, p, n: f"{s.en} {s.be} {GO.ing} {p.to} with {s.own} {n.en}",
        lambda s, p, n: f"{s.hi} {apna(oblique(n.agr))} {n.oblique} के साथ {p.hi} जा {s.raha} {s.hai}",
    ),
}
