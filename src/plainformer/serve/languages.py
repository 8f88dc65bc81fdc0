"""What languages are called in English, by their codes of ISO 639-1."""

_NAMES = """
af Afrikaans;am Amharic;ar Arabic;az Azerbaijani;be Belarusian;bg Bulgarian;bn Bengali;bs Bosnian;ca Catalan;cs Czech;
cy Welsh;da Danish;de German;el Greek;en English;eo Esperanto;es Spanish;et Estonian;eu Basque;fa Persian;fi Finnish;
fr French;ga Irish;gl Galician;gu Gujarati;he Hebrew;hi Hindi;hr Croatian;hu Hungarian;hy Armenian;id Indonesian;
is Icelandic;it Italian;ja Japanese;ka Georgian;kk Kazakh;km Khmer;kn Kannada;ko Korean;ku Kurdish;ky Kyrgyz;la Latin;
lo Lao;lt Lithuanian;lv Latvian;mk Macedonian;ml Malayalam;mn Mongolian;mr Marathi;ms Malay;mt Maltese;my Burmese;
nb Norwegian Bokmål;ne Nepali;nl Dutch;nn Norwegian Nynorsk;no Norwegian;pa Punjabi;pl Polish;ps Pashto;pt Portuguese;
ro Romanian;ru Russian;si Sinhala;sk Slovak;sl Slovenian;so Somali;sq Albanian;sr Serbian;sv Swedish;sw Swahili;
ta Tamil;te Telugu;tg Tajik;th Thai;tl Tagalog;tr Turkish;uk Ukrainian;ur Urdu;uz Uzbek;vi Vietnamese;xh Xhosa;
yo Yoruba;zh Chinese;zu Zulu
"""
NAMES = {code: name for code, _, name in (entry.strip().partition(" ") for entry in _NAMES.split(";"))}


def name_of(code: str) -> str:
    """As `German`, or `Portuguese (BR)`; a code that is not known is its own name."""
    base, _, region = code.replace("_", "-").partition("-")
    name = NAMES.get(base, base)
    return f"{name} ({region})" if region else name
