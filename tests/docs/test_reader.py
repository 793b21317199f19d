"""The reader of pages fails on wrong pages; otherwise the other tests here would prove nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.docs.page import Reader


async def read(folder: Path, *parts: str) -> Reader:
    page = folder / "page.md"
    page.write_text("\n".join(parts))
    reader = Reader(page, folder)
    await reader.follow()
    return reader


@pytest.mark.parametrize(
    "block",
    [
        "```python\nassert 1 == 2\n```",
        '```python\nimport duetime as dt\n\nassert __name__ != "__main__"\n```',
        "```sh\nduetime job show 01935c2e-7b3a-7000-8000-000000000000\n```",
        "```sh\nduetime serve --app missing:app\n```",
        "```sh\nmake nothing-of-the-kind\n```",
        "```sh\npip install requests\n```",
        "```sh\ncurl example.org\n```",
        "```ruby\nputs 1\n```",
        "```\nno language\n```",
    ],
)
async def test_wrong_block_fails(tmp_path: Path, block: str) -> None:
    with pytest.raises(AssertionError):
        await read(tmp_path, "# A page", "", block)


@pytest.mark.parametrize("first", ["", "# hello.py\n"])
async def test_complete_example_that_cannot_be_a_file_fails(tmp_path: Path, first: str) -> None:
    with pytest.raises(SyntaxError, match="outside"):
        await read(tmp_path, f"```python\n{first}import duetime as dt\nawait dt.App().open()\n```")


@pytest.mark.slow
@pytest.mark.parametrize("comment", ["", "  # 404"])
async def test_unexpected_answer_fails(tmp_path: Path, comment: str) -> None:
    asked = f"curl http://127.0.0.1:8080/api/v1/schedules/missing{comment}"
    parts = ["```sh\nduetime serve", "curl -s http://127.0.0.1:8080/healthz", f"{asked}\n```"]
    if comment:
        await read(tmp_path, *parts)
    else:
        with pytest.raises(AssertionError, match="404"):
            await read(tmp_path, *parts)


@pytest.mark.slow
async def test_page_can_keep_an_answer_in_a_variable(tmp_path: Path) -> None:
    kept = "VERSION=$(curl -s http://127.0.0.1:8080/healthz | jq -r .version)"
    reader = await read(tmp_path, "```sh\nduetime serve", kept, "NAME=$(duetime --version)\n```")
    assert reader.environment["NAME"] == f"duetime {reader.environment['VERSION']}"


async def test_blocks_share_names_and_can_await(tmp_path: Path) -> None:
    reader = await read(
        tmp_path,
        "```python\nimport asyncio\nfirst = 1\n```",
        "",
        "```python\nsecond = first + await asyncio.sleep(0, 1)\n```",
    )
    assert reader.names["second"] == 2


async def test_named_block_is_written_to_a_file(tmp_path: Path) -> None:
    await read(tmp_path, "```python\n# tasks.py\nnumber = 1\n```")
    assert (tmp_path / "tasks.py").read_text() == "# tasks.py\nnumber = 1\n"


async def test_file_of_a_page_is_importable_until_the_page_ends(tmp_path: Path) -> None:
    reader = await read(
        tmp_path,
        "```python\n# shop_of_page/tasks.py\nnumber = 1\n```",
        "",
        "```python\nfrom shop_of_page.tasks import number\n```",
    )
    assert reader.names["number"] == 1
    assert str(tmp_path) not in sys.path
    assert not {"page", "shop_of_page.tasks"} & sys.modules.keys()


async def test_names_of_a_page_are_found_in_its_module(tmp_path: Path) -> None:
    """Dataclasses and type hints rely on it."""
    text = (
        "from dataclasses import dataclass\nimport sys\n@dataclass\nclass Line:\n    sku: 'str'\nkind = "
        "sys.modules[Line.__module__].Line"
    )
    reader = await read(tmp_path, f"```python\n{text}\n```")
    assert reader.names["kind"] is reader.names["Line"]


async def test_marked_block_is_not_run(tmp_path: Path) -> None:
    await read(tmp_path, "<!-- not run: it is wrong on purpose -->", "```python\nassert 1 == 2\n```")
