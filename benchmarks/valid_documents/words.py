"""Words that no two places of a file share, in many scripts: a lost place is a lost word.

    make = Words("docx 3")
    make("greek", 3)             # "ξοκαλεμ ..."
    found_of("a caf\u00e9-bar", wanted)   # the words of a text as they are compared

A word is a run of two or more letters, marks and digits, in NFKC and lower case, without soft
hyphens and the like. In NFC it is the same word.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from random import Random

LATIN = ("ascii", "german", "french", "polish", "czech", "turkish", "nordic", "vietnamese")
EASTERN = ("greek", "russian", "ukrainian", "georgian", "armenian")
RIGHT_TO_LEFT = ("arabic", "hebrew", "persian")
ASIAN = ("chinese", "japanese", "korean")
INDIC = ("hindi", "thai", "tamil")
LETTERS = {
    "ascii": "abcdefghijklmnoprstuvwyz",
    "german": "abdefghilmnorstuwzäöüß",
    "french": "abcdefilmnoprstuvéèêçàùôî",
    "polish": "abcdeiklmnoprstuwyząćęłńóśźż",
    "czech": "abdehiklmnoprstuvyzáčďéěíňřšťúůýž",
    "turkish": "abcdeklmnorstuyzçğöşü",
    "nordic": "abdefgiklmnorstuåæøö",
    "vietnamese": "abcdeghiklmnotuvăâđêôơưạấậềộ",
    "greek": "αβγδεζηθικλμνξοπρτυφχψωάέήίόύώ",
    "russian": "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "ukrainian": "абвгґдежзийклмнопрстуфхцчшщьюяіїє",
    "georgian": "აბგდევზთიკლმნოპჟრსტუფქღყშჩც",
    "armenian": "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօ",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "hebrew": "אבגדהוזחטיכלמנסעפצקרשת",
    "persian": "ابپتثجچحخدرزژسشصطعغفقکگلمنوهی",
    "chinese": "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后",
    "japanese": "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをんアイウエオカキクケコサシスセソ日本語文字港船",
    "korean": "가나다라마바사아자차카타파하고노도로모보소오조초코토포호구누두루무부수우주추쿠투푸후",
    "hindi": "कखगघचछजझटठडढतथदधनपफबभमयरलवशषसह",
    "thai": "กขคงจฉชซดตถทนบปผพฟมยรลวสหอ",
    "tamil": "கஙசஞடணதநபமயரலவழளறன",
}
IGNORED = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u200e\u200f\ufeff"))
_TIES = dict(zip(map(ord, "كیىک"), "كييك", strict=True))
_IS_WORD = re.compile(r"[LMN]")


class Words:
    """Words in the order in which ``seed`` gives them."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self.all: list[str] = []

    def __call__(self, script: str = "ascii", count: int = 4) -> str:
        """``count`` new words, with spaces between them."""
        letters = LETTERS[script]
        size = (2, 4) if script in ASIAN else (5, 9)
        made = []
        while len(made) < count:
            word = "".join(self._random.choices(letters, k=self._random.randint(*size)))
            if word not in self.all:
                made.append(word)
                self.all.append(word)
        return " ".join(made)

    def mixed(self, scripts: tuple[str, ...], count: int = 4) -> str:
        return " ".join(self(script, count) for script in scripts)


@cache
def _is_part(char: str) -> bool:
    return unicodedata.category(char)[0] in "LMN"


def plain(text: str) -> str:
    """Without case, ligatures, presentation forms and what is not shown."""
    lower = unicodedata.normalize("NFKC", text.translate(IGNORED)).lower().translate(_TIES)
    return unicodedata.normalize("NFC", lower)


def words_of(text: str) -> set[str]:
    """The words of two letters or more."""
    runs = "".join(char if _is_part(char) else " " for char in plain(text)).split()
    return {run for run in runs if len(run) > 1 and any(map(str.isalpha, run))}
