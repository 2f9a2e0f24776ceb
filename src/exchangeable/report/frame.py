"""What all pages have in common: head, style, sections, and escaped text."""

import os
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any

from exchangeable.runtime.text import printable, without_surrogates
from exchangeable.storage.files import replacing


def text(value: Any) -> str:
    """Return a text escaped for a page.

    >>> text("a < b")
    'a &lt; b'
    """
    return escape(printable(str(value)))


def scrolling(result: Any) -> str:
    """Return a table that scrolls by itself if the page is too narrow for it."""
    return f'<div class="scroll">{result.to_html()}</div>'


def framed(title: str, sections: Iterable[tuple[str, str]], note: str = "") -> str:
    """Return a page that needs no network.

    Parameters
    ----------
    title : str
        Heading of the page.
    sections : iterable of (str, str)
        The heading and the content (HTML) of each section.
    note : str
        The text below the page's heading.
    """
    style = (files("exchangeable.report") / "classes.css").read_text(encoding="utf-8")
    told = f'<p class="note">{text(note)}</p>' if note else ""
    body = "\n".join(
        f"<section><h2>{text(name)}</h2>{inside}</section>" for name, inside in sections
    )
    return without_surrogates(
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{text(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>\n{style}</style></head><body>\n<h1>{text(title)}</h1>{told}\n"
        f"{body}\n</body></html>\n"
    )


def write_page(page: str, path: str | os.PathLike[str]) -> None:
    """Write a page, replacing the file atomically."""
    with replacing(path, "w") as file:
        file.write(page)
