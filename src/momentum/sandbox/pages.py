"""The sandbox's pages: plain HTML that works without JavaScript, in light and dark."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from momentum.sandbox.little_text import Segment

STYLE = (files("momentum.sandbox") / "pages.css").read_text()

# New posts appear by themselves; without JavaScript, on reload.
NEW_POSTS = """<script>
const main = document.querySelector("main");
let shown = main.innerHTML;
setInterval(async () => {
  const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
  const posts = page.querySelector("main").innerHTML;
  if (shown !== posts) main.innerHTML = shown = posts;
}, 2000);
</script>"""

SCOPE_TEXTS = {
    "openid": "Use your name and photo to sign in",
    "profile": "See your name and photo",
    "email": "See your e-mail address",
    "w_member_social": "Create and delete posts in your name",
    "w_organization_social": "Create and delete posts of your organizations",
    "r_organization_social": "See the posts of your organizations",
    "rw_organization_admin": "See and manage your organizations",
}


@dataclass(frozen=True, slots=True)
class Card:
    """A post in the feed."""

    urn: str
    author: str
    name: str
    headline: str
    created_at: float
    segments: Sequence[Segment]
    content: Mapping[str, Any]


def _page(title: str, body: str, script: str = "") -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><style>{STYLE}</style></head>'
        f"<body><header><b>LinkedIn sandbox</b><span>local, for tests and demos</span></header>"
        f"<main>{body}</main>{script}</body></html>"
    )


def error_page(message: str) -> str:
    return _page(
        "Error", f'<section class="card"><h1>Something is wrong</h1><p>{escape(message)}</p></section>'
    )


def consent_page(
    path: str, query: Mapping[str, str], members: Iterable[Mapping[str, str]], scopes: Sequence[str]
) -> str:
    hidden = "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
        for name, value in query.items()
    )
    choices = "".join(
        f'<label class="choice"><input type="radio" name="member" value="{escape(member["id"])}"'
        f'{" checked" if index == 0 else ""}><img src="/pictures/{quote(member["id"])}.svg" alt="">'
        f"<span><b>{escape(member['name'])}</b><br>{escape(member['headline'])}</span></label>"
        for index, member in enumerate(members)
    )
    grants = "".join(
        f'<label class="scope"><input type="checkbox" name="granted" value="{escape(scope)}" checked>'
        f"<span>{escape(SCOPE_TEXTS.get(scope, scope))} <code>{escape(scope)}</code></span></label>"
        for scope in scopes
    )
    return _page(
        "Allow access",
        f'<form class="card" method="post" action="{escape(path)}">{hidden}'
        "<h1>Momentum wants to post for you</h1>"
        f"<fieldset><legend>Continue as</legend>{choices}</fieldset>"
        f"<fieldset><legend>Momentum will be able to</legend>{grants}</fieldset>"
        '<p class="buttons"><button name="decision" value="allow" class="primary">Allow</button>'
        '<button name="decision" value="cancel">Cancel</button></p></form>',
    )


def feed_page(cards: Sequence[Card]) -> str:
    empty = '<p class="card">No posts yet. What Momentum publishes appears here.</p>'
    return _page("Feed", f"<h1>Feed</h1>{''.join(map(_card, cards)) or empty}", NEW_POSTS)


def picture(name: str, hue: int) -> str:
    """An avatar with the initials."""
    initials = "".join(word[0] for word in name.split()[:2]).upper()
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 96">'
        f'<rect width="96" height="96" fill="hsl({hue} 45% 38%)"/><text x="48" y="60" fill="#fff" '
        'font-family="system-ui, sans-serif" font-size="36" text-anchor="middle">'
        f"{escape(initials)}</text></svg>"
    )


def _card(card: Card) -> str:
    moment = time.gmtime(card.created_at)
    link = f"/feed/update/{quote(card.urn)}/"
    return (
        f'<article class="card"><div class="author"><img src="/pictures/{quote(card.author)}.svg" alt="">'
        f"<div><b>{escape(card.name)}</b><br><span>{escape(card.headline)}</span><br>"
        f'<a href="{link}"><time datetime="{time.strftime("%Y-%m-%dT%H:%M:%SZ", moment)}">'
        f"{time.strftime('%d %b %Y, %H:%M:%S', moment)} UTC</time></a></div></div>"
        f'<p class="text">{"".join(map(_segment, card.segments))}</p>{_content(card.content)}</article>'
    )


def _segment(segment: Segment) -> str:
    text = escape(segment.text)
    return text if segment.kind == "text" else f'<span class="{segment.kind}">{text}</span>'


def _content(content: Any) -> str:
    match content:
        case {"media": {"id": urn, **fields}}:
            return _asset(urn, fields)
        case {"multiImage": {"images": images}}:
            return f'<div class="grid">{"".join(_asset(image["id"], image) for image in images)}</div>'
        case {"article": {"source": source, "title": title, **fields}}:
            image = _asset(fields["thumbnail"], {}) if "thumbnail" in fields else ""
            text = f"<b>{escape(title)}</b><br>{escape(str(fields.get('description', '')))}<br>"
            return (
                f'<a class="article" href="{escape(source)}">{image}<span>{text}{escape(source)}</span></a>'
            )
    return ""


def _asset(urn: Any, fields: Mapping[Any, Any]) -> str:
    address = f"/files/{quote(urn)}"
    if ":image:" in urn:
        return f'<img class="media" src="{address}" alt="{escape(fields.get("altText", ""))}">'
    title = escape(fields.get("title", ""))
    if ":video:" in urn:
        return f'<video class="media" controls preload="metadata" src="{address}" title="{title}"></video>'
    return f'<a class="article" href="{address}"><span>Document: <b>{title}</b></span></a>'
