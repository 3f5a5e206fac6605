"""Requests that wait: how many may, what they count as, and who is told that there is no room."""

import asyncio

import pytest
from serving_tools import ask, block, client_of, expected, plain, until

from treepiece.data.toy import toy_rows
from treepiece.runtime.parser import Parser
from treepiece.serving.app import create_app

TEXTS = list(dict.fromkeys(utterance for _, utterance, _ in toy_rows(60)))


def problem(response):
    assert response.headers["content-type"] == "application/problem+json"
    return response.json()


def test_a_full_queue_refuses_and_forgets(make_app, parser):
    app = make_app(queue=4, batch_size=1)
    gate = block(app)

    async def main():
        async with client_of(app) as client:

            def post(value):
                return asyncio.create_task(client.post("/v1/parse", json=value))

            busy = [post({"text": text}) for text in TEXTS[:2]]
            await until(lambda: app.state.service.batcher._under_way == 2)
            waiting = [post({"texts": TEXTS[2:6]})]
            await until(lambda: app.state.service.batcher.waiting == 4)
            refused = await post({"text": TEXTS[6]})
            assert problem(refused)["type"] == "/docs#queue-full"
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            gate.go.set()
            assert [answer.status_code for answer in await asyncio.gather(*busy, *waiting)] == [200] * 3
            again = await post({"text": TEXTS[6]})
            assert plain(again.json()) == expected(parser, TEXTS[6])

    asyncio.run(main())


def test_a_long_text_takes_more_room_in_the_queue(make_app):
    app = make_app(queue=20, batch_size=1)
    gate = block(app)
    batcher = app.state.service.batcher

    async def main():
        async with client_of(app) as client:

            def post(value):
                return asyncio.create_task(client.post("/v1/parse", json=value))

            busy = [post({"text": text}) for text in TEXTS[:2]]
            await until(lambda: batcher._under_way == 2)
            waiting = [post({"texts": ["a" * 100, "b " * 101], "nbest": 3})]
            await until(lambda: batcher.waiting == 3 + 9)
            tree = post({"tree": "[IN:A " * 500})
            refused = await post({"text": "a" * 801})
            assert problem(refused)["type"] == "/docs#queue-full"
            gate.go.set()
            assert [answer.status_code for answer in await asyncio.gather(*busy, *waiting)] == [200] * 3
            await tree

    asyncio.run(main())


@pytest.mark.parametrize(
    "value", [{"text": TEXTS[0]}, {"text": TEXTS[0], "nbest": 4}, {"texts": ["a " * 60], "nbest": 2}]
)
def test_who_is_alone_has_all_threads(tiny_bundle, monkeypatch, value):
    own = Parser.load(tiny_bundle, threads=2)
    monkeypatch.setattr(own, "try_batch", None)
    assert ask(create_app(own), "POST", "/v1/parse", json=value).status_code == 200


def test_an_answer_that_takes_too_long(make_app):
    app = make_app(answer_seconds=0.05, batch_size=1)
    gate = block(app)

    async def main():
        async with client_of(app) as client:
            answers = await asyncio.gather(*[client.post("/v1/parse", json={"text": text}) for text in TEXTS[:5]])
            assert {problem(answer)["type"] for answer in answers} == {"/docs#no-answer"}
            assert answers[0].headers["retry-after"] == "1"
            assert app.state.service.batcher.waiting == 0
            gate.go.set()
            await until(lambda: app.state.service.batcher._under_way == 0)

    asyncio.run(main())
