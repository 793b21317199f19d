"""What a person types is what readers see: the client's escaping against the sandbox's own parser."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from momentum.platforms.little_text import (
    RESERVED,
    Hashtag,
    Mention,
    Text,
    normalised,
    to_little_text,
    tokens,
)
from momentum.sandbox.little_text import read

characters = st.characters(exclude_categories=["Cs"])
pieces = st.one_of(
    st.text(characters, max_size=30),
    st.text(st.sampled_from(RESERVED), max_size=10),
    st.sampled_from(
        ["👩🏽‍🚀", "🎉", "e\u0301", "\r\n", "日本語", "\u200f", "&amp;", "{hashtag|\\#|x}", "C#", "a_b"]
    ),
    st.from_regex(r"#\w{1,10}", fullmatch=True),
    st.sampled_from(["https://x.org/a_(b)?c=[1]#d~e", "http://y.org/*|<z>"]),
    st.builds(
        "@[{}]({})".format,
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="[]\n"), min_size=1, max_size=20),
        st.sampled_from(["urn:li:organization:123", "urn:li:person:aB_c-9"]),
    ),
)
texts = st.lists(pieces, max_size=12).map("".join)


@given(texts)
@example(RESERVED * 2)
@example("".join(f"x{character}y" for character in RESERVED))
@example("@[Acme (Holding) #1 | a_b](urn:li:organization:42) and @nothing")
@example("\\" * 7 + "#tag\\#tag")
@example("#a#b ##c #_d_ #日本 #x_y_z")
@example((RESERVED + "é🎉") * 200)
def test_readers_see_what_was_typed(typed: str) -> None:
    reading = read(to_little_text(typed))
    assert not reading.truncated
    assert reading.typed == typed


def test_every_reserved_character_fills_a_post_of_3000_characters() -> None:
    typed = ("@[A & B](urn:li:person:x_1) https://x.org/a_b#c #tag 🎉 " + RESERVED) * 60
    typed = typed[: 3000 - 9] + "🎉 the end"
    assert len(typed) == 3000
    assert read(to_little_text(typed)).typed == typed


@given(texts)
def test_tokens_are_the_typed_text_in_parts(typed: str) -> None:
    written = {
        Text: lambda token: token.text,
        Hashtag: lambda token: f"#{token.tag}",
        Mention: lambda token: f"@[{token.name}]({token.urn})",
    }
    assert "".join(written[type(token)](token) for token in tokens(typed)) == typed  # type: ignore[no-untyped-call]


def test_mentions_and_hashtags_are_elements() -> None:
    typed = "Hi @[Acme](urn:li:organization:1), see #News at https://x.org/#part or a#b"
    assert list(tokens(typed)) == [
        Text("Hi "),
        Mention("Acme", "urn:li:organization:1"),
        Text(", see "),
        Hashtag("News"),
        Text(" at https://x.org/#part or a#b"),
    ]
    kinds = [segment.kind for segment in read(to_little_text(typed)).segments]
    assert kinds == ["text", "mention", "text", "hashtag", "text"]


@pytest.mark.parametrize("character", RESERVED)
def test_unescaped_reserved_character_cuts_the_text_off(character: str) -> None:
    """The sandbox does what LinkedIn does: otherwise the tests above would prove nothing."""
    reading = read(f"before {character} after")
    assert (reading.text, reading.truncated) == ("before ", True)


@given(texts)
def test_normalised_text_is_the_same_for_both_sides(typed: str) -> None:
    """LinkedIn may give back a mention as plain text, and other white space."""
    little = to_little_text(typed)
    assert normalised(little.replace(" ", "  ") + "\n") == normalised(little)


def test_normalised_text_keeps_what_readers_see() -> None:
    assert (
        normalised(to_little_text("a_b  #x_y\n@[Acme (X)](urn:li:organization:1) {z}"))
        == "a_b #x_y Acme (X) {z}"
    )
