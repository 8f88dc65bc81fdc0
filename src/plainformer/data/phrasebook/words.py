"""The words of the phrasebook and how they inflect: English beside Hindi, one word a line.

Hindi agreement in four lines, which is all the machinery below:

* Nouns are masculine or feminine (m, f) and one or many (s, p); `agr` is the pair: "ms", "mp", "fs", "fp".
* Most words that agree end in -ā for ms, -e for mp and -ī for fs and fp (`agree`): adjectives, possessives,
  participles.
* Before a postposition (in, on, of, to, with) a noun phrase is oblique: the noun has forms of its own, and an
  agreeing word in front of a masculine noun ends in -e.
* A present, progressive or future verb agrees with its subject. The past of a transitive verb agrees with its
  object, and its subject takes the postposition 'ne'.

Spelling: NFC; nukta on za, fa, ṛa and ṛha only (खरीदना, not ख़रीदना); candrabindu wherever the sign fits, else anusvara.
"""

from __future__ import annotations

from dataclasses import dataclass

VOWELS = {"ms": "ा", "mp": "े", "fs": "ी", "fp": "ी"}
ORDER = ("ms", "mp", "fs", "fp")
HAI = ("हूँ", "है", "हैं", "हो")  # am (I), is (one), are (many, or one whom we honour), are (familiar you)


def agree(stem: str, agr: str) -> str:
    """The stem with the vowel of its gender and number: agree("बड़", "fs") is "बड़ी", big."""
    return stem + VOWELS[agr]


def oblique(agr: str) -> str:
    """The agreement that a word in -ā shows before an oblique noun: -e before a masculine one, else -ī."""
    return "mp" if agr[0] == "m" else agr


def tha(agr: str) -> str:
    """Was, were; the only place besides the perfective where fp differs from fs."""
    return "थीं" if agr == "fp" else agree("थ", agr)


@dataclass(frozen=True)
class Noun:
    """A noun: English one and many ("" where it is not counted); Hindi gender; direct and oblique, one and many."""

    en: str
    en_many: str
    gender: str
    hi: str
    hi_many: str
    oblique: str
    oblique_many: str
    group: str
    bare: bool  # never takes an article: Hindi, chess

    @property
    def mass(self) -> bool:
        return not self.en_many


@dataclass(frozen=True)
class Adjective:
    """An adjective: English and its comparative; Hindi for ms, for mp and oblique m, for f; groups it is said of."""

    en: str
    more: str
    forms: tuple[str, str, str]
    groups: tuple[str, ...]

    def hi(self, agr: str) -> str:
        return self.forms[2 if agr[0] == "f" else ORDER.index(agr)]


@dataclass(frozen=True)
class Verb:
    """A verb. English: eat eats eating ate eaten.

    Hindi: `pre`, the noun or adjective of a compound verb (साफ़ in साफ़ करना, to clean); the stem; the perfective for
    ms mp fs fp; the subjunctive for I, he, they and familiar you, from which the future is made; the polite request.
    """

    base: str
    es: str
    ing: str
    ed: str
    done: str
    pre: str
    stem: str
    perfect: tuple[str, ...]
    finite: tuple[str, ...]
    polite: str

    @property
    def na(self) -> str:
        return self.stem + "ना"

    @property
    def order(self) -> str:
        """The familiar imperative is the familiar subjunctive: खाओ."""
        return self.finite[3]


def table(text: str) -> list[list[str]]:
    """The cells of each line; '_' stands for a space inside a cell, '-' for an empty one."""
    lines = [line.split("#")[0].split() for line in text.strip().splitlines()]
    return [[("" if cell == "-" else cell.replace("_", " ")) for cell in line] for line in lines if line]


# English one, many ('-' not counted, '=' nor ever with an article) | gender | direct one, many | oblique one, many
_NOUNS = {
    "fruit": """
        mango     mangoes     m  आम       आम         आम       आमों
        apple     apples      m  सेब       सेब         सेब       सेबों
        banana    bananas     m  केला      केले        केले      केलों
        orange    oranges     m  संतरा     संतरे       संतरे     संतरों
        carrot    carrots     f  गाजर     गाजरें       गाजर     गाजरों
        pear      pears       f  नाशपाती  नाशपातियाँ   नाशपाती  नाशपातियों""",
    "snack": """
        egg       eggs        m  अंडा      अंडे        अंडे      अंडों
        samosa    samosas     m  समोसा    समोसे      समोसे     समोसों
        potato    potatoes    m  आलू      आलू        आलू      आलुओं""",
    "dish": """
        rice      -           m  चावल     -          चावल     -
        bread     -           f  रोटी      -          रोटी      -
        pizza     -           m  पिज़्ज़ा    -          पिज़्ज़े    -
        fish      -           f  मछली     -          मछली     -
        dal       -           f  दाल      -          दाल      -
        soup      -           m  सूप      -          सूप      -""",
    "drink": """
        tea       -           f  चाय      -          चाय      -
        coffee    -           f  कॉफ़ी     -          कॉफ़ी     -
        water     -           m  पानी     -          पानी     -
        milk      -           m  दूध      -          दूध      -
        juice     -           m  जूस      -          जूस      -
        lassi     -           f  लस्सी     -          लस्सी     -""",
    "reading": """
        book      books       f  किताब    किताबें      किताब    किताबों
        letter    letters     f  चिट्ठी     चिट्ठियाँ     चिट्ठी     चिट्ठियों
        newspaper newspapers  m  अखबार   अखबार     अखबार   अखबारों
        story     stories     f  कहानी    कहानियाँ    कहानी    कहानियों
        poem      poems       f  कविता    कविताएँ     कविता    कविताओं
        magazine  magazines   f  पत्रिका    पत्रिकाएँ     पत्रिका    पत्रिकाओं""",
    "clothes": """
        shirt     shirts      f  कमीज़     कमीज़ें       कमीज़     कमीज़ों
        shoe      shoes       m  जूता     जूते        जूते      जूतों
        hat       hats        f  टोपी     टोपियाँ      टोपी     टोपियों
        coat      coats       m  कोट      कोट        कोट      कोटों
        sari      saris       f  साड़ी      साड़ियाँ      साड़ी      साड़ियों""",
    "goods": """
        bag       bags        m  थैला      थैले        थैले      थैलों
        clock     clocks      f  घड़ी      घड़ियाँ      घड़ी      घड़ियों
        umbrella  umbrellas   m  छाता     छाते       छाते     छातों
        key       keys        f  चाबी     चाबियाँ     चाबी     चाबियों
        ball      balls       f  गेंद      गेंदें        गेंद      गेंदों
        toy       toys        m  खिलौना   खिलौने     खिलौने    खिलौनों
        picture   pictures    f  तस्वीर    तस्वीरें      तस्वीर    तस्वीरों
        pen       pens        m  पेन      पेन        पेन      पेनों
        phone     phones      m  फ़ोन      फ़ोन        फ़ोन      फ़ोनों
        cup       cups        m  प्याला    प्याले      प्याले     प्यालों
        plate     plates      f  थाली     थालियाँ     थाली     थालियों
        bicycle   bicycles    f  साइकिल  साइकिलें    साइकिल  साइकिलों
        car       cars        f  गाड़ी      गाड़ियाँ      गाड़ी      गाड़ियों""",
    "furniture": """
        chair     chairs      f  कुर्सी     कुर्सियाँ     कुर्सी     कुर्सियों
        table     tables      f  मेज़      मेज़ें        मेज़      मेज़ों
        bed       beds        m  पलंग     पलंग       पलंग     पलंगों
        box       boxes       m  डिब्बा    डिब्बे      डिब्बे     डिब्बों""",
    "building": """
        house     houses      m  घर       घर        घर       घरों
        room      rooms       m  कमरा     कमरे       कमरे     कमरों
        door      doors       m  दरवाज़ा   दरवाज़े     दरवाज़े   दरवाज़ों
        window    windows     f  खिड़की    खिड़कियाँ    खिड़की    खिड़कियों
        shop      shops       f  दुकान     दुकानें      दुकान     दुकानों
        garden    gardens     m  बगीचा    बगीचे      बगीचे     बगीचों""",
    "animal": """
        dog       dogs        m  कुत्ता     कुत्ते       कुत्ते      कुत्तों
        cat       cats        f  बिल्ली     बिल्लियाँ     बिल्ली     बिल्लियों
        horse     horses      m  घोड़ा      घोड़े       घोड़े      घोड़ों
        cow       cows        f  गाय      गायें       गाय      गायों
        bird      birds       f  चिड़िया    चिड़ियाँ      चिड़िया    चिड़ियों
        elephant  elephants   m  हाथी     हाथी       हाथी     हाथियों
        monkey    monkeys     m  बंदर     बंदर       बंदर     बंदरों
        goat      goats       f  बकरी     बकरियाँ     बकरी     बकरियों""",
    "nature": """
        tree      trees       m  पेड़      पेड़        पेड़      पेड़ों
        flower    flowers     m  फूल      फूल        फूल      फूलों""",
    "art": """
        song      songs       m  गीत      गीत       गीत      गीतों
        film      films       f  फ़िल्म     फ़िल्में      फ़िल्म     फ़िल्मों""",
    "skill": """
        Hindi     =           f  हिंदी      -          हिंदी      -
        English   =           f  अंग्रेज़ी    -          अंग्रेज़ी    -
        music     =           m  संगीत     -          संगीत     -
        cricket   =           m  क्रिकेट    -          क्रिकेट    -
        football  =           m  फ़ुटबॉल   -          फ़ुटबॉल   -
        chess     =           f  शतरंज    -          शतरंज    -""",
    "kin": """
        brother   brothers    m  भाई      भाई        भाई      भाइयों
        sister    sisters     f  बहन      बहनें       बहन      बहनों
        son       sons        m  बेटा      बेटे        बेटे      बेटों
        daughter  daughters   f  बेटी      बेटियाँ      बेटी      बेटियों
        friend    friends     m  दोस्त     दोस्त      दोस्त     दोस्तों""",
    "people": """
        boy       boys        m  लड़का     लड़के       लड़के     लड़कों
        girl      girls       f  लड़की     लड़कियाँ     लड़की     लड़कियों
        child     children    m  बच्चा     बच्चे       बच्चे      बच्चों
        man       men         m  आदमी    आदमी      आदमी     आदमियों
        woman     women       f  औरत     औरतें      औरत     औरतों""",
    "parent": """
        father    -           m  पिता      -          पिता      -
        mother    -           f  माँ       -          माँ       -""",
}
NOUNS: dict[str, Noun] = {
    en: Noun(en, many.strip("="), gender, hi, hi_many, before, before_many, group, many == "=")
    for group, text in _NOUNS.items()
    for en, many, gender, hi, hi_many, before, before_many in table(text)
}

# English, comparative | Hindi ms, mp and oblique m, f | the groups it is said of
_ADJECTIVES = """
    big        bigger          बड़ा    बड़े    बड़ी    fruit snack goods furniture building animal nature
    small      smaller         छोटा   छोटे   छोटी   fruit snack goods furniture building animal nature
    good       better          अच्छा   अच्छे   अच्छी   snack dish drink reading art
    new        newer           नया    नए    नई     reading clothes goods furniture building art
    old        older           पुराना  पुराने  पुरानी  reading clothes goods furniture building art
    red        -               लाल    लाल   लाल    clothes goods
    blue       -               नीला   नीले   नीली   clothes goods
    black      -               काला   काले   काली   clothes animal
    white      -               सफ़ेद   सफ़ेद   सफ़ेद   clothes building animal
    expensive  more_expensive  महँगा   महँगे   महँगी   clothes goods furniture
    cheap      cheaper         सस्ता   सस्ते   सस्ती   clothes goods furniture fruit
    beautiful  more_beautiful  सुंदर    सुंदर   सुंदर    clothes building animal nature art
    sweet      sweeter         मीठा   मीठे   मीठी   fruit
    hot        hotter          गरम    गरम   गरम    snack dish drink
    cold       colder          ठंडा    ठंडे    ठंडी    dish drink
    fresh      fresher         ताज़ा   ताज़े   ताज़ी   fruit dish
    long       longer          लंबा    लंबे    लंबी    reading art
    heavy      heavier         भारी   भारी   भारी   furniture animal
    tall       taller          लंबा    लंबे    लंबी    people
    clever     cleverer        होशियार होशियार होशियार people
    happy      happier         खुश    खुश    खुश    people mood
    sad        sadder          उदास   उदास   उदास   people mood
    ill        -               बीमार   बीमार   बीमार   mood
    busy       busier          व्यस्त   व्यस्त   व्यस्त   people mood
    alone      -               अकेला  अकेले  अकेली  mood
    ready      -               तैयार   तैयार   तैयार   mood
"""
ADJECTIVES = [Adjective(en, more, (a, e, i), tuple(groups)) for en, more, a, e, i, *groups in table(_ADJECTIVES)]

# English: base, -s, -ing, past, participle | Hindi: pre, stem
_VERBS = """
    eat       eats       eating       ate         eaten        -     खा
    drink     drinks     drinking     drank       drunk        -     पी
    read      reads      reading      read        read         -     पढ़
    write     writes     writing      wrote       written      -     लिख
    buy       buys       buying       bought      bought       -     खरीद
    sell      sells      selling      sold        sold         -     बेच
    watch     watches    watching     watched     watched      -     देख
    open      opens      opening      opened      opened       -     खोल
    close     closes     closing      closed      closed       बंद   कर
    clean     cleans     cleaning     cleaned     cleaned      साफ़   कर
    wash      washes     washing      washed      washed       -     धो
    cook      cooks      cooking      cooked      cooked       -     पका
    make      makes      making       made        made         -     बना
    learn     learns     learning     learned     learned      -     सीख
    play      plays      playing      played      played       -     खेल
    sing      sings      singing      sang        sung         -     गा
    listen_to listens_to listening_to listened_to listened_to  -     सुन
    break     breaks     breaking     broke       broken       -     तोड़
    see       sees       seeing       saw         seen         -     देख
    give      gives      giving       gave        given        -     दे
    send      sends      sending      sent        sent         -     भेज
    show      shows      showing      showed      shown        -     दिखा
    want      wants      wanting      wanted      wanted       -     चाह
    love      loves      loving       loved       loved        प्यार  कर
    talk      talks      talking      talked      talked       बात   कर
    go        goes       going        went        gone         -     जा
    come      comes      coming       came        come         -     आ
    sleep     sleeps     sleeping     slept       slept        -     सो
    run       runs       running      ran         run          -     दौड़
    laugh     laughs     laughing     laughed     laughed      -     हँस
    cry       cries      crying       cried       cried        -     रो
    dance     dances     dancing      danced      danced       -     नाच
    work      works      working      worked      worked       काम   कर
"""

# Endings behind a consonant and behind a vowel: पढ़ा पढ़े, खाया खाए.
_PERFECT = {"consonant": ("ा", "े", "ी", "ीं"), "vowel": ("या", "ए", "ई", "ईं")}
_FINITE = {"consonant": ("ूँ", "े", "ें", "ो"), "vowel": ("ऊँ", "ए", "एँ", "ओ")}
_POLITE = {"consonant": "िए", "vowel": "इए"}

# The four irregular stems: perfective, subjunctive, polite; '-' where the rule holds.
_IRREGULAR = {
    stem: forms
    for stem, *forms in table("""
        पी  पिया_पिए_पी_पीं  पिऊँ_पिए_पिएँ_पियो  पीजिए
        कर  किया_किए_की_कीं  -              कीजिए
        दे   दिया_दिए_दी_दीं   दूँ_दे_दें_दो         दीजिए
        जा  गया_गए_गई_गईं    -              -""")
}


def conjugated(*english: str, pre: str, stem: str) -> Verb:
    """The verb with its Hindi forms, by the rule of its last letter or by the list of irregular stems."""
    sound = "vowel" if stem[-1] in "आाीेो" else "consonant"
    perfect, finite, polite = _IRREGULAR.get(stem, ("", "", ""))
    return Verb(
        *english,
        pre=pre,
        stem=stem,
        perfect=tuple(perfect.split()) or tuple(stem + ending for ending in _PERFECT[sound]),
        finite=tuple(finite.split()) or tuple(stem + ending for ending in _FINITE[sound]),
        polite=polite or stem + _POLITE[sound],
    )


VERBS: dict[str, Verb] = {row[0]: conjugated(*row[:5], pre=row[5], stem=row[6]) for row in table(_VERBS)}


def group(*names: str) -> list[Noun]:
    """The nouns of these groups, in the order of the tables."""
    return [noun for noun in NOUNS.values() if noun.group in names]
