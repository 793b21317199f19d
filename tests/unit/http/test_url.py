"""One strict parser: odd spellings are refused, whatever they would mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from duetime.errors import InvalidInput
from duetime.model.url import parse

HOSTILE = [
    # numbers that getaddrinfo reads as 127.0.0.1
    "http://2130706433/",
    "http://0x7f.1/",
    "http://0x7f000001/",
    "http://0x7F.0x0.0x0.0x1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.0.0.01/",
    "http://127.0.0.1./",
    "http://0/",
    "http://0x/",
    "http://1.2.3/",
    "http://1.2.3.4.5/",
    "http://256.1.1.1/",
    "http://1.2.3.0x4/",
    "http://agent.example.0x7f/",
    # who is the host?
    "http://a@b/",
    "http://user:password@agent.example/",
    "http://agent.example@127.0.0.1/",
    "http://agent.example:80@127.0.0.1/",
    "http://127.0.0.1\\@agent.example/",
    "http://agent.example\\.evil.example/",
    "http:\\\\agent.example/",
    "http://agent.example#@127.0.0.1/",
    "http://agent.example/#fragment",
    "http:///127.0.0.1/",
    "http:agent.example",
    "http:/agent.example/",
    "//agent.example/",
    "http://",
    "http://?x",
    "http://:80/",
    # invisible and look-alike characters
    "http://agent.example\t/",
    "http://agent.example/\n",
    "http://agent.example/\r\nX-Evil: 1",
    " http://agent.example/",
    "http://agent.example /",
    "http://agent.example/a b",
    "http://agent.example/\0",
    "http://127\u30020\u30020\u30021/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://\u2460\u2461\u2466.0.0.1/",
    "http://b\u00fccher.example/",
    "http://agent.example/\u00e4",
    "http://agent\u200b.example/",
    # encodings in the host, zone ids, dots
    "http://%31%32%37.0.0.1/",
    "http://127.0.0.1%00.example/",
    "http://agent.example%2f@x/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://agent.example./",
    "http://agent..example/",
    "http://.agent.example/",
    "http://-agent.example/",
    "http://agent-.example/",
    "http://*/",
    # brackets
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::1/",
    "http://::1/",
    "http://[::1]x/",
    "http://[127.0.0.1]/",
    "http://[v1.x]/",
    "http://[]/",
    "http://[::1]:/",
    # ports
    "http://agent.example:/",
    "http://agent.example:0/",
    "http://agent.example:080/",
    "http://agent.example:65536/",
    "http://agent.example:+80/",
    "http://agent.example:80:80/",
    "http://agent.example:eighty/",
    # other schemes
    "ftp://agent.example/",
    "file:///etc/passwd",
    "gopher://agent.example/_",
    "unix:///var/run/docker.sock",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "ws://agent.example/",
    "http+unix://%2Fvar%2Frun/",
    "https",
    "",
    # paths that two programs would read in two ways
    "http://agent.example/%",
    "http://agent.example/%zz",
    "http://agent.example/<x>",
    'http://agent.example/"',
    "http://agent.example/{x}",
    "http://agent.example/a|b",
    "http://" + "a" * 64 + ".example/",
    "http://" + "a." * 127 + "example/",
    "http://agent.example/" + "a" * 2_048,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_spellings_are_refused_by_field(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text, "target.url")
    assert caught.value.field == "target.url"
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("http://user:password@agent.example/", "use a secret header"),
        ("http://[fe80::1%25eth0]/", "without a zone id"),
        ("http://2130706433/", "four plain decimal numbers"),
        ("http://[::ffff:127.0.0.1]/", "write the IPv4 address itself"),
        ("http://agent.example/#x", "never sent"),
        ("http://b\u00fccher.example/", "xn--"),
        ("ftp://agent.example/", "must begin with https:// or http://"),
    ],
)
def test_error_names_the_remedy(text: str, remedy: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text, "target.url")
    assert remedy in str(caught.value)
    assert "password@" not in str(caught.value)


@pytest.mark.parametrize("value", [None, 1, True, b"http://x/", ["http://x/"], {}])
def test_url_must_be_text(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^target.url: must be text"):
        parse(value, "target.url")


@pytest.mark.parametrize(
    ("text", "canonical", "host", "port"),
    [
        ("https://agent.example", "https://agent.example/", "agent.example", 443),
        ("HTTPS://Agent.Example:443/Run?A=b%20c", "https://agent.example/Run?A=b%20c", "agent.example", 443),
        ("http://agent.example/run?", "http://agent.example/run", "agent.example", 80),
        ("http://agent.example?x=1", "http://agent.example/?x=1", "agent.example", 80),
        ("http://127.0.0.1:9000/a/../b", "http://127.0.0.1:9000/a/../b", "127.0.0.1", 9000),
        ("http://[0:0:0:0:0:0:0:1]:80/", "http://[::1]/", "::1", 80),
        ("https://[2606:4700::0001]/x", "https://[2606:4700::1]/x", "2606:4700::1", 443),
        ("http://my_service:8080/", "http://my_service:8080/", "my_service", 8080),
        ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/", "xn--bcher-kva.example", 80),
        ("http://localhost:5000/a@b:c", "http://localhost:5000/a@b:c", "localhost", 5000),
        ("http://1.example/", "http://1.example/", "1.example", 80),
    ],
)
def test_valid_url_is_read_in_canonical_form(text: str, canonical: str, host: str, port: int) -> None:
    found = parse(text, "url")
    assert (str(found), found.host, found.port) == (canonical, host, port)
    assert parse(canonical, "url") == found


def test_shown_url_has_no_query() -> None:
    assert parse("https://agent.example/run?token=canary", "url").shown == "https://agent.example/run"


@given(
    st.text(st.characters(codec="ascii"), max_size=40),
    st.sampled_from(["http://", "https://", "http://127.0.0.1", "http://a.example"]),
)
def test_every_client_reads_the_same_host(tail: str, start: str) -> None:
    """Our parser and the client's never disagree about where a request goes."""
    try:
        found = parse(start + tail, "url")
    except InvalidInput:
        return
    sent = URL(str(found), encoded=True)
    assert (sent.raw_host, sent.port, sent.scheme, sent.raw_path_qs) == (
        found.host,
        found.port,
        found.scheme,
        found.rest,
    )
