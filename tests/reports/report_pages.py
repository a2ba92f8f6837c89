"""Pages taken apart, to ask what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser

from memassay.harness.artefact import Result
from memassay.reports import site
from memassay.reports.given import Given


class Element:
    """A tag with its attributes, and the text directly and deeper in it."""

    def __init__(self, tag: str, attributes: dict[str, str], parents: tuple[Element, ...]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.parents = parents
        self.texts: list[str] = []

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def within(self, id: str) -> bool:
        return any(parent.attributes.get("id") == id for parent in self.parents)


class Page(HTMLParser):
    """A page as a list of elements."""

    APART = frozenset({"td", "th", "li", "dt", "dd", "p"})
    """What a reader sees apart from what is before it."""

    VOID = frozenset({"meta", "input", "wbr", "br", "img", "link"})

    def __init__(self, document: bytes) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.feed(document.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(self.open))
        self.elements.append(element)
        if tag in self.APART:
            self.handle_data(" ")
        if tag not in self.VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.texts.append(data)

    def find(self, tag: str, **attributes: str) -> Iterator[Element]:
        for element in self.elements:
            if element.tag == tag and all(element.attributes.get(name) == value for name, value in attributes.items()):
                yield element

    def within(self, id: str, tag: str) -> list[Element]:
        return [element for element in self.find(tag) if element.within(id)]


def policy(found: Page) -> dict[str, list[str]]:
    """The content security policy, by directive."""
    (meta,) = (m for m in found.find("meta") if m.attributes.get("http-equiv") == "Content-Security-Policy")
    parts = (part.split() for part in meta.attributes["content"].split(";"))
    return {name: values for name, *values in parts}


def documents(*results: Result, cases: str = "cases") -> dict[str, bytes]:
    """The pages of a site of results alone."""
    return site.pages(Given(results=results, folder=cases))


def broken(pages: dict[str, Page]) -> list[str]:
    """References within a site that lead nowhere."""
    ids = {name: {element.attributes.get("id") for element in found.elements} for name, found in pages.items()}
    wrong: list[str] = []
    for name, found in pages.items():
        for attribute in REFERENCES:
            for value in (e.attributes[attribute] for e in found.elements if attribute in e.attributes):
                if re.match("https://github.com/", value):
                    continue
                value = value.partition("?")[0].removesuffix("#")  # a filter names no place
                file, _, target = value.rpartition("#") if attribute == "href" else ("", "", value)
                if attribute == "href" and "#" not in value:
                    file, target = value, ""
                if (file or name) not in pages or (target and target not in ids[file or name]):
                    wrong.append(f"{name}: {attribute}={value}")
    return wrong


REFERENCES: Sequence[str] = ("href", "aria-labelledby", "for", "data-copies")
