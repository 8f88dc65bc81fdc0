"""Sentences about liking, wanting, having, being and being somewhere: an English rule above its Hindi rule.

The letters of a rule: s the subject; o another person or thing; e a verb with its object; v a verb; n a noun phrase;
a an adjective; p a place; t a time; m a measure ("very"); c someone called.
"""

from __future__ import annotations

from plainformer.data.phrasebook import slots as slot
from plainformer.data.phrasebook.pattern import Pattern, apart, apna, asks, fits, graded, grown, says
from plainformer.data.phrasebook.people import NAMES
from plainformer.data.phrasebook.words import VERBS, agree, oblique

LOVE, WANT = VERBS["love"], VERBS["want"]

BEING: dict[str, Pattern] = {
    # Liking, wanting and feeling come to one: the person takes 'ko' and the verb agrees with the thing.
    "likes": says(
        (slot.PEOPLE, slot.GENERIC), lambda s, n: f"{s.en} {s.likes} {n.en}", lambda s, n: f"{s.ko} {n.hi} पसंद {n.hai}"
    ),
    "likes, not": says(
        (slot.PEOPLE, slot.GENERIC),
        lambda s, n: f"{s.en} {s.do} not like {n.en}",
        lambda s, n: f"{s.ko} {n.hi} पसंद नहीं {n.hai}",
    ),
    "likes, asked": asks(
        (slot.ASKED, slot.GENERIC),
        lambda s, n: f"{s.do} {s.en} like {n.en}",
        lambda s, n: f"क्या {s.ko} {n.hi} पसंद {n.hai}",
    ),
    "likes both": says(
        (slot.PEOPLE, slot.GENERIC_PAIRS),
        lambda s, n: f"{s.en} {s.likes} {n[0].en} and {n[1].en}",
        lambda s, n: f"{s.ko} {n[0].hi} और {n[1].hi} पसंद हैं",
    ),
    "wants": says(
        (slot.PEOPLE, slot.WANTED, slot.NOW),
        lambda s, n, t: f"{s.en} {s.does(WANT)} {n.en} {t.en}",
        lambda s, n, t: f"{s.ko} {t.hi} {n.hi} चाहिए",
    ),
    "wants, not": says(
        (slot.PEOPLE, slot.NEEDED, slot.NOW),
        lambda s, n, t: f"{s.en} {s.do} not want {n.en} {t.en}",
        lambda s, n, t: f"{s.ko} {t.hi} {n.hi} नहीं चाहिए",
    ),
    "wants, asked": asks(
        (slot.ASKED, slot.WANTED), lambda s, n: f"{s.do} {s.en} want {n.en}", lambda s, n: f"क्या {s.ko} {n.hi} चाहिए"
    ),
    "feels": says(
        (slot.PEOPLE, slot.FEELINGS, slot.VERY, slot.NOW),
        lambda s, f, m, t: f"{s.en} {s.be} {m.en} {f.en} {t.en}",
        lambda s, f, m, t: f"{s.ko} {t.hi} {m.hi} {f.hi} {f.comes} है",
    ),
    "feels, not": says(
        (slot.PEOPLE, slot.FEELINGS, slot.NOW),
        lambda s, f, t: f"{s.en} {s.be} not {f.en} {t.en}",
        lambda s, f, t: f"{s.ko} {t.hi} {f.hi} नहीं {f.comes} है",
    ),
    "feels, asked": asks(
        (slot.ASKED, slot.FEELINGS, slot.NOW),
        lambda s, f, t: f"{s.be} {s.en} {f.en} {t.en}",
        lambda s, f, t: f"क्या {s.ko} {t.hi} {f.hi} {f.comes} है",
    ),
    "loves": says(
        (slot.PEOPLE, slot.LOVED),
        lambda s, n: f"{s.en} {s.does(LOVE)} {s.own} {n.en}",
        lambda s, n: f"{s.hi} {apna(oblique(n.agr))} {n.oblique} से प्यार {s.ta(LOVE)} {s.hai}",
    ),
    # Having: a thing is near one (के पास), a relative is one's (का).
    "has": says(
        (slot.PEOPLE, slot.OWNED), lambda s, n: f"{s.en} {s.has} {n.en}", lambda s, n: f"{s.ke} पास {n.hi} {n.hai}"
    ),
    "has not": says(
        (slot.PEOPLE, slot.LACKED),
        lambda s, n: f"{s.en} {s.do} not have {n.en}",
        lambda s, n: f"{s.ke} पास {n.noun.hi} नहीं है",
    ),
    "has, asked": asks(
        (slot.ASKED, slot.LACKED),
        lambda s, n: f"{s.do} {s.en} have {n.en}",
        lambda s, n: f"क्या {s.ke} पास {n.noun.hi} है",
    ),
    "how many": asks(
        (slot.ASKED, slot.KINDS),
        lambda s, n: f"how many {n.en} {s.do} {s.en} have",
        lambda s, n: f"{s.ke} पास {agree('कितन', n.agr)} {n.hi} {n.hai}",
    ),
    "has kin": says(
        (slot.PEOPLE, slot.KIN),
        lambda s, n: f"{s.en} {s.has} {n.en}",
        lambda s, n: f"{s.kaa(n.agr)} {n.hi} {n.hai}",
        grown,
    ),
    # What there is, and where it is.
    "there is": says(
        (slot.FOUND, slot.SPOTS), lambda n, p: f"there {n.be} {n.en} {p.en}", lambda n, p: f"{p.hi} {n.hi} {n.hai}"
    ),
    "is somewhere": says(
        (slot.KEPT, slot.SPOTS), lambda n, p: f"{n.en} {n.be} {p.en}", lambda n, p: f"{n.hi} {p.hi} {n.hai}"
    ),
    "was somewhere": says(
        (slot.KEPT, slot.SPOTS), lambda n, p: f"{n.en} {n.was} {p.en}", lambda n, p: f"{n.hi} {p.hi} {n.tha}"
    ),
    "where is": asks((slot.KEPT,), lambda n: f"where {n.be} {n.en}", lambda n: f"{n.hi} कहाँ {n.hai}"),
    "is at": says(
        (slot.PEOPLE, slot.GOALS, slot.NOW),
        lambda s, p, t: f"{s.en} {s.be} {p.at} {t.en}",
        lambda s, p, t: f"{s.hi} {t.hi} {p.at_hi} {s.hai}",
    ),
    "was at": says(
        (slot.PEOPLE, slot.GOALS, slot.PAST),
        lambda s, p, t: f"{s.en} {s.was} {p.at} {t.en}",
        lambda s, p, t: f"{s.hi} {t.hi} {p.at_hi} {s.tha}",
    ),
    "is at, asked": asks(
        (slot.ASKED, slot.GOALS, slot.NOW),
        lambda s, p, t: f"{s.be} {s.en} {p.at} {t.en}",
        lambda s, p, t: f"क्या {s.hi} {t.hi} {p.at_hi} {s.hai}",
    ),
    "where is someone": asks(
        (slot.ASKED, slot.NOW), lambda s, t: f"where {s.be} {s.en} {t.en}", lambda s, t: f"{s.hi} {t.hi} कहाँ {s.hai}"
    ),
    # What things and people are like: the adjective agrees.
    "is like": says(
        (slot.JUDGED, slot.QUALITIES, slot.VERY),
        lambda n, a, m: f"{n.en} {n.be} {m.en} {a.en}",
        lambda n, a, m: f"{n.hi} {m.hi} {a.hi(n.agr)} {n.hai}",
        fits,
    ),
    "is not like": says(
        (slot.JUDGED, slot.QUALITIES),
        lambda n, a: f"{n.en} {n.be} not {a.en}",
        lambda n, a: f"{n.hi} {a.hi(n.agr)} नहीं {n.hai}",
        fits,
    ),
    "was like": says(
        (slot.JUDGED, slot.QUALITIES, slot.VERY),
        lambda n, a, m: f"{n.en} {n.was} {m.en} {a.en}",
        lambda n, a, m: f"{n.hi} {m.hi} {a.hi(n.agr)} {n.tha}",
        fits,
    ),
    "is like, asked": asks(
        (slot.JUDGED, slot.QUALITIES),
        lambda n, a: f"{n.be} {n.en} {a.en}",
        lambda n, a: f"क्या {n.hi} {a.hi(n.agr)} {n.hai}",
        fits,
    ),
    "compared": says(
        (slot.COMPARED,),
        lambda n: f"{n.x.en} {n.x.be} {n.adjective.more} than {n.y.en}",
        lambda n: f"{n.x.hi} {n.y.oblique} से {n.adjective.hi(n.x.agr)} {n.x.hai}",
    ),
    "compared, many": says(
        (slot.COMPARED_MANY,),
        lambda n: f"{n.x.en} {n.x.be} {n.adjective.more} than {n.y.en}",
        lambda n: f"{n.x.hi} {n.y.oblique} से {n.adjective.hi(n.x.agr)} {n.x.hai}",
    ),
    "people compared": says(
        (slot.PEOPLE, slot.TRAITS, slot.OTHERS),
        lambda s, a, o: f"{s.en} {s.be} {a.more} than {o.me}",
        lambda s, a, o: f"{s.hi} {o.se} ज़्यादा {a.hi(s.agr)} {s.hai}",
        lambda s, a, o: apart(s, o),
    ),
    "trait": says(
        (slot.PEOPLE, slot.TRAITS, slot.VERY),
        lambda s, a, m: f"{s.en} {s.be} {m.en} {a.en}",
        lambda s, a, m: f"{s.hi} {m.hi} {a.hi(s.agr)} {s.hai}",
    ),
    "mood": says(
        (slot.PEOPLE, slot.MOODS, slot.VERY, slot.NOW),
        lambda s, a, m, t: f"{s.en} {s.be} {m.en} {a.en} {t.en}",
        lambda s, a, m, t: f"{s.hi} {t.hi} {m.hi} {a.hi(s.agr)} {s.hai}",
        graded,
    ),
    "mood then": says(
        (slot.PEOPLE, slot.MOODS, slot.VERY, slot.PAST),
        lambda s, a, m, t: f"{s.en} {s.was} {m.en} {a.en} {t.en}",
        lambda s, a, m, t: f"{s.hi} {t.hi} {m.hi} {a.hi(s.agr)} {s.tha}",
        graded,
    ),
    "mood, asked": asks(
        (slot.ASKED, slot.MOODS, slot.NOW),
        lambda s, a, t: f"{s.be} {s.en} {a.en} {t.en}",
        lambda s, a, t: f"क्या {s.hi} {t.hi} {a.hi(s.agr)} {s.hai}",
    ),
    # What this is, whose it is and what someone is called.
    "this is": says(
        (slot.POINTERS, slot.SHOWN),
        lambda d, n: f"{d[n.many].en} {n.be} {n.en}",
        lambda d, n: f"{d[n.many].hi} {n.hi} {n.hai}",
    ),
    "whose": asks(
        (slot.NAMED, slot.POINTERS),
        lambda n, d: f"whose {n.en} {n.be} {d[n.many].en}",
        lambda n, d: f"{d[n.many].hi} {agree('किसक', n.agr)} {n.hi} {n.hai}",
    ),
    "name": says(
        (slot.NAMEABLE, [NAMES]),
        lambda s, o: f"{s.whose} name is {o.en}",
        lambda s, o: f"{s.kaa('ms')} नाम {o.hi} है",
        lambda s, o: s.agr[0] == o.agr[0],
    ),
    "name, asked": asks((slot.NAMEABLE,), lambda s: f"what is {s.whose} name", lambda s: f"{s.kaa('ms')} नाम क्या है"),
}
