r"""The text of a manual page from its source: man(7), mdoc(7), tbl(1), groff(7).

    shown('.SH NAME\n\\fBls\\fP \\- list\n.BI \\-x " file"')      # "NAME\nls - list\n-x file"

Read are arguments of macros as text (joined where the macro joins them), escapes for characters,
strings that the page defines, cells of tables, and what ``.if`` shows on a terminal. Left out are
requests, definitions of macros, comments, and entries of an index. Formulas (eqn) and drawings
(pic) stay as they are written; standard phrases of mdoc (``.Ex -std``) and files that the page
includes (``.so``) are left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

_STARTS = re.compile(r"\s{0,200}(?:['.][ \t]*\\[\"#]|\.(?:TH|Dd|so)[ \t])")
_HEADS = re.compile(r"^\.(?:TH|Dd)[ \t]", re.MULTILINE)
_HEAD_WITHIN = 20_000
"""Characters before the macro that begins a manual page: licences and definitions."""
_MAX_STRING, _MAX_EXPANDED = 1_000, 1_000_000
"""Characters of a string that the page defines, and of all uses of strings."""
_MAX_NESTED = 50  # conditions on one line

_CONTROL = re.compile(r"['.][ \t]*([^\s\\\"]*)[ \t]*(.*)", re.DOTALL)
_ARGUMENT = re.compile(r'"((?:[^"]++|"")*+)"?|((?:\\.|[^\s\\])++|\\$)')
_CONDITION = re.compile(
    r"(!?)[ \t]*(?:([nt])(?=[\s\\.'])|([oe])(?=[\s\\.'])|[cdFmrSv][ \t]*[^\s\\]+(?=\s)"
    r"|'([^'\n]*)'([^'\n]*)'|(?:\\n(?:\[[^\]]{0,60}\]|\(..|.)|\\?[^\s\\])+)[ \t]*(.*)",
    re.DOTALL,
)
_REGISTER = re.compile(r"\\n(?:\[([^\]\n]{0,60})\]|\(([^\n]{2})|([^\n]))")
_COMPARISON = re.compile(r"\(?(\d{1,9})(?:(==?|>=?|<=?)(\d{1,9}))?\)?")
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)\\[\"#].*")
_ESCAPE = re.compile(
    r"\\(?:[fFmMgkVY](?:\[[^\]\n]{0,60}\]|\([^\n]{2}|[^\n])"
    r"|s[-+]?(?:\[[^\]\n]{0,60}\]|\([^\n]{2}|'[^'\n]{0,60}'|[1-3]\d|\d)"
    r"|n[-+]?(?:\[[^\]\n]{0,60}\]|\([^\n]{2}|[^\n])"
    r"|\*(?:\[(?P<string>[^\]\n]{0,60})\]|\((?P<two>[^\n]{2})|(?P<one>[^\n]))"
    r"|\((?P<glyph>[^\n]{2})|\[(?P<name>[^\]\n]{0,60})\]"
    r"|(?P<function>[hvwlLDXxARbBNoZCHS])(?P<quote>[^\w\s\\])(?P<inside>[^\n]{0,200}?)(?P=quote)"
    r"|(?P<char>[^\n])?)"
)
_CHARS = {"e": "\\", "E": "\\", "t": "\t", " ": " ", "~": " ", "0": " "} | dict.fromkeys(
    "&%/,:)|^!?{}acdprui", ""
)
_REQUESTS = frozenset(
    """ab ad af aln als am ami as asciify bd blm bp br break brp c2 cc ce cf cflags ch char close
    color continue cp cs cu da de defcolor dei device di do ds ec ecr ecs eo ev evc ex fam fc fchar
    fi fl fp fschar fspecial ft ftr fzoom gcolor hc hcode hla hlm hpf hpfa hpfcode hw hy hym hys ig
    in it itc kern lc length linetabs lf lg ll lsm ls lt mc mk mso na ne nf nh nm nn nop nr nroff ns
    nx open opena os output pc pev pl pm pn pnr po ps psbb pso ptr pvs rchar rd return rfschar rj rm
    rn rnn rr rs rt schar shc shift sizes so sp special spreadwarn ss stringdown stringup sty
    substring sv sy ta tc ti tkf tl tm tm1 tmc tr trf trin trnt troff uf ul unformat vpt vs warn
    warnscale wh while write writec writem""".split()  # noqa: SIM905
)
_NO_TEXT = _REQUESTS | frozenset(
    """AT BE BS CE CS DE DS DT EE EN EQ EX HP IX LP P PD PE PP PS RE RS SP Sp TE UC UF Vb Ve
    YS""".split()  # noqa: SIM905
)
_JOINED = frozenset(("BI", "BR", "IB", "IR", "RB", "RI", "TR"))

_MDOC = frozenset(
    """Ac Ad An Ao Ap Aq Ar At Bc Bd Bf Bk Bl Bo Bq Brc Bro Brq Bsx Bt Bx Cd Cm D1 Db Dc Dd Dl Do
    Dq Dt Dv Dx Ec Ed Ef Ek El Em En Eo Er Es Ev Ex Fa Fc Fd Fl Fn Fo Fr Ft Fx Hf Ic In It Lb Li
    Lk Lp Ms Mt Nd Nm No Ns Nx Oc Oo Op Os Ot Ox Pa Pc Pf Po Pp Pq Qc Ql Qo Qq Re Rs Rv Sc Sh Sm So
    Sq Ss St Sx Sy Ta Tg Tn Ud Ux Va Vt Xc Xo Xr""".split()  # noqa: SIM905
)
_MDOC_NO_TEXT = frozenset("Bd Bf Bk Bl Db Ed Ef Ek El Ex Lp Pp Re Rs Rv Sm Tg".split())  # noqa: SIM905
_SYSTEMS = {"Bx": "BSD", "Bsx": "BSD/OS", "Fx": "FreeBSD", "Nx": "NetBSD", "Ox": "OpenBSD"} | {
    "Dx": "DragonFly", "Ux": "UNIX", "At": "AT&T UNIX"
}  # fmt: skip
_ENDS = frozenset(".,:;)]?!")

_GLYPHS = dict(
    pair.rsplit("=", 1)
    for pair in """aq=' dq=" rs=\\ ha=^ ti=~ at=@ sh=# Do=$ lB=[ rB=] lC={ rC=} ba=| bv=| br=| sl=/
    hy=- en=– em=— oq=‘ cq=’ lq=“ rq=” Bq=„ bq=‚ Fo=« Fc=» fo=‹ fc=› co=© rg=® tm=™ bu=• ci=○ sq=□
    ct=¢ ps=¶ sc=§ de=° dg=† dd=‡ Eu=€ eu=€ Po=£ Ye=¥ Cs=¤ mc=µ +-=± **=∗ mu=× di=÷ <==≤ >==≥ !==≠
    ===≡ ~~=≈ ~==≅ ->=→ <-=← <>=↔ ua=↑ da=↓ rA=⇒ lA=⇐ hA=⇔ mi=− pl=+ eq== if=∞ ul=_ ru=_ rn=‾ fm=′
    sd=″ 12=½ 14=¼ 34=¾ S1=¹ S2=² S3=³ Of=ª Om=º r!=¡ r?=¿ ss=ß AE=Æ ae=æ OE=Œ oe=œ /L=Ł /l=ł /O=Ø
    /o=ø -D=Ð Sd=ð TP=Þ Tp=þ IJ=Ĳ ij=ĳ .i=ı .j=ȷ ff=ff fi=fi fl=fl Fi=ffi Fl=ffl OK=✓ no=¬ tno=¬
    pc=· md=⋅ la=⟨ ra=⟩ lh=☜ rh=☞ lz=◊ bb=¦ sr=√ is=∫ pd=∂ gr=∇ es=∅ mo=∈ fa=∀ te=∃ *S=Σ coproduct=∐
    product=∏ sum=∑ aa=´ ga=` a^=^ a~=~ cq=’ ho=˛ ad=¨ rt=▷ Im=ℑ Re=ℜ Ah=ℵ mp=∓ sd=″ %0=‰ an=→
    """.split()  # noqa: SIM905
)
_GREEK = dict(zip("abgdezyhiklmncoprstufxqw", "αβγδεζηθικλμνξοπρστυφχψω", strict=True))
_ACCENTS = dict(zip("'`^~:,ov\"-.", "̧́̀̂̃̈̊̌̋̄̇", strict=True)) | {
    "aa": "́", "ga": "̀", "a^": "̂", "a~": "̃", "ad": "̈", "ac": "̧", "ao": "̊", "ah": "̌", "ho": "̨"
}  # fmt: skip


def is_manual(text: str) -> bool:
    """Whether a text is the source of a manual page."""
    if _STARTS.match(text):
        return True
    return text.startswith((".", "'")) and _HEADS.search(text, 0, _HEAD_WITHIN) is not None


def shown(source: str) -> tuple[str, str]:
    """The text, and the line of names and purpose below the first heading, "" without one."""
    page = _Page(source)
    page.read()
    text = "".join(page.pieces)
    if page.heading < 0:
        return text, ""
    title = "".join(page.pieces[page.heading : page.second if page.second > 0 else None])
    return text, " ".join(title.split())


class _Page:
    """A manual page while it is read line by line."""

    def __init__(self, source: str) -> None:
        self.pieces: list[str] = []
        self.heading = self.second = -1
        """The places in ``pieces`` where the first and the second section begin."""
        self._lines = iter(source.replace("\\\n", "").split("\n"))
        self._registers = {".g": 1}
        self._strings = {"lq": "“", "rq": "”", "R": "®", "Tm": "™", "S": "", "q": '"'}
        self._depth = 0
        self._left = _MAX_EXPANDED
        self._else: list[bool] = []
        self._name = ""  # of the command, for .Nm
        self._macros: dict[str, Callable[[list[str]], str]] = {
            "TH": _head_of,
            "IP": lambda args: "".join(args[:1]),
            "OP": lambda args: f"[{' '.join(args)}]",
        }

    def read(self) -> None:
        for line in self._lines:
            self._read(line)

    def _read(self, line: str) -> None:
        if "\\" in line:
            line = _COMMENT.sub(r"\1", line)
        found = _CONTROL.fullmatch(line)
        if found is None or found[0].startswith("..."):
            self._add(line)
            return
        name, rest = found.groups()
        if name in ("if", "ie", "el") and self._depth < _MAX_NESTED:
            self._depth += 1
            self._read_conditional(name, rest)
            self._depth -= 1
        elif name in ("de", "de1", "dei", "am", "ig"):
            self._pass_definition(rest.split() if name != "ig" else ["", *rest.split()])
        elif name == "nr":
            self._set_register(*rest.split()[:2])
        elif name in ("ds", "as"):
            self._define(name, rest)
        elif name == "TS":
            self._read_table()
        elif name in _MDOC or name.startswith("%"):
            self._read_mdoc(name, rest)
        elif name not in _NO_TEXT:
            self._read_macro(name, rest)

    def _read_macro(self, name: str, rest: str) -> None:
        args = _arguments(rest)
        if name in ("SH", "SS"):
            self._begin_section(name)
        if macro := self._macros.get(name):
            text = macro(args)
        else:
            text = ("" if name in _JOINED else " ").join(args)
        self._add(text, is_heading=name in ("SH", "SS", "TH"))

    def _begin_section(self, name: str) -> None:
        if self.heading < 0:
            self.heading = len(self.pieces) + 1
        elif self.second < 0 and name in ("SH", "Sh"):
            self.second = len(self.pieces)

    def _add(self, line: str, *, is_heading: bool = False) -> None:
        end = "" if line.endswith("\\c") else "\n"
        text = self._text(line)
        if text.strip() or is_heading or (text and not end):
            self.pieces.append(text + end)

    def _text(self, line: str) -> str:
        return _ESCAPE.sub(self._replaced, line) if "\\" in line else line

    def _replaced(self, found: re.Match[str]) -> str:
        if (char := found["char"]) is not None:
            return _CHARS.get(char, char)
        if (string := found["string"] or found["two"] or found["one"]) is not None:
            value = self._strings.get(string.partition(" ")[0], "")
            self._left -= len(value)
            return value if self._left > 0 else ""
        if (glyph := found["glyph"] or found["name"]) is not None:
            return _glyph(glyph)
        inside = found["inside"]
        if found["function"] == "C":
            return _glyph(inside)
        if found["function"] == "N" and inside.isdecimal() and int(inside) < 256:
            return chr(int(inside))
        if found["function"] == "o":
            return self._text(inside)[:1]
        return ""

    def _read_conditional(self, name: str, rest: str) -> None:
        if name == "el":
            self._choose(rest, holds=bool(self._else) and self._else.pop())
            return
        found = _CONDITION.fullmatch(rest)
        if found is None:
            return
        negated, terminal, odd, one, other, then = found.groups()
        if terminal:
            holds = terminal == "n"
        elif one is not None:
            holds = self._text(one) == self._text(other)
        else:
            holds = odd == "o" or (not odd and self._is_true(rest[: found.start(6)].strip("! \t")))
        holds ^= bool(negated)
        if name == "ie":
            self._else.append(not holds)
        self._choose(then, holds=holds)

    def _is_true(self, expression: str) -> bool:
        """A register without a value is 0. Other expressions are true: what a page may show is
        text."""
        if expression[:1] in "cdFmrSv":
            return False
        values = _REGISTER.sub(self._value_of, expression)
        found = _COMPARISON.fullmatch(values)
        if found is None:
            return True
        left, operator, right = found.groups()
        if not operator:
            return int(left) > 0
        one, other = int(left), int(right)
        return (one > other if ">" in operator else one < other if "<" in operator else False) or (
            "=" in operator and one == other
        )

    def _value_of(self, found: re.Match[str]) -> str:
        return str(self._registers.get(found[1] or found[2] or found[3], 0))

    def _choose(self, then: str, *, holds: bool) -> None:
        """Read or pass over the line or block after a condition."""
        if not then.startswith("\\{"):
            if holds and then:
                self._read(then)
            return
        if holds:
            if rest := then[2:].lstrip():
                self._read(rest)
            return
        depth = then.count("\\{") - then.count("\\}")
        while depth > 0 and (line := next(self._lines, None)) is not None:
            depth += line.count("\\{") - line.count("\\}")

    def _pass_definition(self, args: list[str]) -> None:
        end = "." + (args[1] if len(args) > 1 else ".")
        for line in self._lines:
            if line.startswith((".", "'")) and "." + line[1:].strip(" \t\\}") == end:
                return

    def _define(self, name: str, rest: str) -> None:
        string, _, value = rest.partition(" ")
        before = self._strings.get(string, "") if name == "as" else ""
        value = value.replace("\\\\", "\\").lstrip(" ").removeprefix('"')
        self._strings[string] = (before + self._text(value))[:_MAX_STRING]

    def _set_register(self, name: str = "", value: str = "") -> None:
        if value.isdecimal() and len(value) < 10:
            self._registers[name] = int(value)

    def _read_table(self) -> None:
        """Cells, from after the lines of formats on (tbl(1))."""
        tab, is_format = "\t", True
        for line in self._lines:
            if line.startswith(".TE"):
                return
            if line.startswith(".T&"):
                is_format = True
            elif is_format:
                if found := re.search(r"\btab *\((.)\)", line):
                    tab = found[1]
                is_format = not line.rstrip().endswith(".")
            elif line.startswith((".", "'")) and line[1:2] not in ("", tab):
                self._read(line)
            elif line.strip("_=-" + tab + " ") or "\\" in line:
                for cell in _COMMENT.sub(r"\1", line).split(tab):
                    cell = cell.strip()
                    self._add(cell.removeprefix("T}").removesuffix("T{").strip())

    def _read_mdoc(self, name: str, rest: str) -> None:
        args = _arguments(rest)
        if name in _MDOC_NO_TEXT:
            return
        if name in ("Sh", "Ss"):
            self._begin_section(name)
        if name == "Nm":
            self._name = self._name or next((arg for arg in args if arg not in _MDOC), "")
        self._add("".join(self._mdoc(name, args)).strip(" "), is_heading=name == "Sh")

    def _mdoc(self, name: str, args: list[str]) -> Iterator[str]:
        macro, space, taken = name, "", 0
        for word in (*args, ""):
            if word in _MDOC or not word:
                if macro == "Fl" and not taken:
                    yield space + "-"
                elif macro == "Nm" and not taken:
                    yield space + self._name
                elif macro in _SYSTEMS and not taken:
                    yield space + _SYSTEMS[macro]
                if word in ("Ns", "Pf", "Ap"):
                    space = ""
                macro, taken = word, 0
                continue
            if len(word) == 1 and word in _ENDS:
                space = ""
            if macro == "Fl" and word not in _ENDS and word != "|":
                word = "-" + word
            elif macro == "Xr" and taken == 1:
                word, space = f"({word})", ""
            elif macro in _SYSTEMS and not taken:
                word = f"{_SYSTEMS[macro]} {word}"
            yield space + word
            taken += 1
            space = "" if macro == "Pf" and taken == 1 else " "


def _head_of(args: list[str]) -> str:
    named = f"{args[0]}({args[1]})" if len(args) > 1 else "".join(args)
    return " ".join((named, *args[2:]))


def _arguments(rest: str) -> list[str]:
    return [word or quoted.replace('""', '"') for quoted, word in _ARGUMENT.findall(rest)]


def _glyph(name: str) -> str:
    """The character of a name (groff_char(7)), a space if there is none."""
    if found := _GLYPHS.get(name):
        return found
    if name.startswith("*") and name[1:].lower() in _GREEK:
        letter = _GREEK[name[1:].lower()]
        return letter if name[1:].islower() else letter.upper()
    if code := re.fullmatch(r"u((?:[0-9A-F]{4,6}_?)+)", name):
        return _composed("".join(map(_char, re.findall("[0-9A-F]{4,6}", code[1]))))
    if code := re.fullmatch(r"char(\d{1,3})", name):
        return chr(int(code[1]))
    base, _, accents = name.partition(" ")
    if accents:
        return _composed((_glyph(base) if len(base) > 1 else base) + _ACCENTS.get(accents, ""))
    if len(name) == 2 and name[0] in _ACCENTS and name[1].isalpha():
        return _composed(name[1] + _ACCENTS[name[0]])
    return name if len(name) == 1 else " "


def _char(code: str) -> str:
    number = int(code, 16)
    return chr(number) if number < 0xD800 or 0xE000 <= number < 0x110000 else " "


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)
