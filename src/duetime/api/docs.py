"""/docs: the routes on one page without scripts or external files."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from starlette.responses import HTMLResponse

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code{background:#8882;padding:.1rem .3rem;border-radius:3px}h2{margin-top:2rem}"
    "details{border-bottom:1px solid #8884;padding:.3rem "
    "0}summary{cursor:pointer}b{display:inline-block;width:4.5rem}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8bf}}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


def page(document: dict[str, Any]) -> HTMLResponse:
    parts = "".join(_sections(document))
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    text = (
        f"<!doctype html><html lang=en><meta "
        f"charset=utf-8><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>"
        f"<p>{escape(document['info']['description'])} For programs: <a "
        f"href=/openapi.json>openapi.json</a>.</p>{parts}</html>"
    )
    return HTMLResponse(text, headers={"Content-Security-Policy": POLICY})


def _sections(document: dict[str, Any]) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            by_tag.setdefault(operation.get("tags", ["other"])[0], []).append(
                _operation(path, method, operation)
            )
    for tag, entries in by_tag.items():
        yield f"<h2>{escape(tag)}</h2>{''.join(entries)}"


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    parameters = "".join(
        f"<li><code>{escape(one['name'])}</code> {escape(_about(one))}"
        for one in operation.get("parameters", [])
    )
    body = _reference(
        operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    )
    takes = f"<p>Takes <code>{escape(body)}</code>.</p>" if body else ""
    statuses = ", ".join(sorted(operation["responses"]))
    head = f"<b>{method.upper()}</b> <code>{escape(path)}</code> {escape(operation.get('summary', ''))}"
    return (
        f"<details><summary>{head}</summary><ul>{parameters}</ul>{takes}<p>Answers "
        f"{escape(statuses)}.</p></details>"
    )


def _about(parameter: dict[str, Any]) -> str:
    text = parameter.get("description") or parameter.get("schema", {}).get("description") or ""
    return f"({parameter['in']}) {text}"


def _reference(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]
