"""Making names of columns and classes safe for a terminal, a spreadsheet or a page.

Names come from files, and may contain any character.
"""

import re

SURROGATES = re.compile("[\ud800-\udfff]")
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line separators, changes of direction, and lone surrogates."""
FORMULA = re.compile(r"[=+\-@\t\r]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)", re.IGNORECASE)


def printable(text: str) -> str:
    r"""Return a text with control characters escaped, so that a terminal only shows them.

    >>> printable("\x1b[31mred\nline"), printable("naïve tea")
    ('\\x1b[31mred\\nline', 'naïve tea')
    """
    return UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable_lines(text: str) -> str:
    r"""Do the same with a text of several lines, which stay lines; tabs become spaces.

    >>> printable_lines("red:\n\t\x1b[31m")
    'red:\n    \\x1b[31m'
    """
    return "\n".join(printable(line.expandtabs(4)) for line in text.split("\n"))


def without_surrogates(text: str) -> str:
    r"""Return a text that UTF-8 can encode: lone surrogates are replaced.

    >>> without_surrogates("a\ud800b")
    'a\ufffdb'
    """
    return SURROGATES.sub("\ufffd", text)


def not_a_formula(text: str) -> str:
    """Return a cell's text that no spreadsheet reads as a formula; plain numbers stay.

    >>> not_a_formula("=1+1"), not_a_formula("-1.5e3"), not_a_formula("tea")
    ("'=1+1", '-1.5e3', 'tea')
    """
    if FORMULA.match(text) and not NUMBER.fullmatch(text):
        return f"'{text}"
    return text
