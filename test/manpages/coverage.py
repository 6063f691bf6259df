#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Looks whether every sentence of the manual pages has a rule that quotes it.

coverage.py FOLDER

FOLDER is where the programs manpage_* are. The pages are those of libibverbs that are installed;
without them the test is skipped. Prints each sentence that neither a rule quotes nor untestable.txt
names, and each quote that stands on no page.
"""
import gzip
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MAN_FOLDERS = ("/usr/local/share/man/man3", "/usr/share/man/man3")
SKIPPED = 77

# Each page, and the programs that try it.
PAGES = {
    "ibv_create_srq": ("create_srq", "destroy_srq"),
    "ibv_create_srq_ex": ("create_srq_ex", "destroy_srq"),
    "ibv_modify_srq": ("modify_srq",),
    "ibv_query_srq": ("query_srq",),
    "ibv_resize_cq": ("resize_cq",),
    "ibv_create_rwq_ind_table": ("create_rwq_ind_table", "destroy_rwq_ind_table"),
}
# Other names of these pages.
ALIASES = {
    "ibv_destroy_srq": "ibv_create_srq",
    "ibv_destroy_rwq_ind_table": "ibv_create_rwq_ind_table",
}


def find_page(name):
    for folder in MAN_FOLDERS:
        for path in sorted(Path(folder).glob(f"{name}.3*")):
            return path
    return None


def read_page(path):
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()


def plain(text):
    """Without the escapes of roff."""
    text = re.sub(r'\\".*', "", text)
    text = re.sub(r"\\f(\[\w*\]|\w)", "", text)
    text = re.sub(r"\\\[(cq|aq)\]", "'", text)
    text = re.sub(r"\\\[(lq|rq|dq)\]", '"', text)
    return text.replace(r"\-", "-").replace(r"\&", "").replace(r"\ ", " ").replace("\\e", "\\")


def macro_text(macro, rest):
    """The text that a font macro prints."""
    words = [quoted if quoted else word
             for quoted, word in re.findall(r'"([^"]*)"|(\S+)', rest)]
    return ("" if len(macro) == 2 else " ").join(words)


class Page:
    """A page as (section, sentence)s."""

    def __init__(self, roff):
        self.sentences = []
        self.section = None
        self.verbatim = False
        self.lines = []
        for line in roff.splitlines():
            self.add(line)
        self.end_paragraph()
        self.text = " ".join(sentence for _, sentence in self.sentences)

    def add(self, line):
        macro = re.match(r"[.'](\w*)\s*(.*)", line)
        if not macro:
            self.lines.append(plain(line))
            return
        name, rest = macro.groups()
        if name == "SH":
            self.end_paragraph()
            self.section = plain(rest).strip('"')
        elif name in ("B", "I", "BI", "BR", "IB", "IR", "RB", "RI"):
            self.lines.append(macro_text(name, plain(rest)))
        elif name in ("nf", "fi"):
            self.end_paragraph()
            self.verbatim = name == "nf"
        elif name in ("PP", "P", "LP", "TP", "IP", "sp", "SS"):
            self.end_paragraph()

    def end_paragraph(self):
        lines, self.lines = self.lines, []
        if self.section is None:
            return
        if not self.verbatim:
            found = re.split(r"(?<=[.;:])\s+", " ".join(lines))
        elif self.section == "SYNOPSIS":
            # Prototypes. That the header has them is what every program relies on.
            text = " ".join(line for line in lines if not line.startswith("#include"))
            found = re.findall(r"[^;]+;", text)
        else:
            found = [field for line in lines for field in self.struct_line(line)]
        self.sentences += [(self.section, normal(s)) for s in found if s.strip()]

    @staticmethod
    def struct_line(line):
        """The sentence of a field: its name and what the comment says of it."""
        if not line.strip() or re.fullmatch(r"\s*struct \w+ \{|\s*\};", line):
            return []
        field = re.search(r"\w+;\s*/\*.*\*/", line)
        return [field.group() if field else line]


def normal(text):
    return re.sub(r"\s+", " ", text).strip()


def read_untestable():
    known, sentence = {}, None
    for line in (HERE / "untestable.txt").read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("\t"):
            known[sentence] = line.strip()
        else:
            sentence = normal(line)
            known[sentence] = None
    return known


def quotes_of(folder, program):
    listed = subprocess.run([Path(folder) / f"manpage_{program}", "--list"], check=True, text=True,
                            capture_output=True).stdout
    return {normal(re.match(r'\d+: "(.*)"', line).group(1)) for line in listed.splitlines()}


def uncovered(sentence, quotes):
    """What of a sentence no quote covers."""
    left = sentence
    for quote in sorted(quotes, key=len, reverse=True):
        if sentence in quote:
            return ""
        left = left.replace(quote, " ")
    return left if re.search(r"\w", left) else ""


def check_page(name, page, quotes, untestable, used):
    wrong = []
    for section, sentence in page.sentences:
        known = {f"SECTION {section}", sentence} & set(untestable)
        used |= known
        if not known and uncovered(sentence, quotes):
            wrong.append(f"{name}, {section}: no rule quotes: {sentence}")
    return wrong


def main():
    folder = sys.argv[1]
    found = {name: find_page(name) for name in [*PAGES, *ALIASES]}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        print(f"manual pages of libibverbs are not installed: {', '.join(missing)}")
        return SKIPPED
    pages = {name: Page(read_page(found[name])) for name in PAGES}
    wrong = [f"{alias} is a page of its own now" for alias, name in ALIASES.items()
             if found[alias].resolve() != found[name].resolve()]
    untestable, used, rules = read_untestable(), set(), 0
    wrong += [f"untestable.txt: no reason for: {s}" for s, why in untestable.items() if not why]
    for name, programs in PAGES.items():
        quotes = set().union(*(quotes_of(folder, program) for program in programs))
        wrong += check_page(name, pages[name], quotes, untestable, used)
    for program in sorted({p for programs in PAGES.values() for p in programs}):
        texts = [pages[name].text for name, programs in PAGES.items() if program in programs]
        quotes = quotes_of(folder, program)
        rules += len(quotes)
        wrong += [f"{program}: on no page of it: {quote}" for quote in sorted(quotes)
                  if not any(quote in text for text in texts)]
    wrong += [f"untestable.txt: on no page: {s}" for s in sorted(set(untestable) - used)]
    for finding in wrong:
        print(finding)
    count = sum(len(page.sentences) for page in pages.values())
    print(f"{len(pages)} pages, {count} sentences, {rules} quoted, {len(wrong)} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
