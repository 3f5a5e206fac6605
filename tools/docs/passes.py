"""The figure of the decoder passes: what each of the three parsers writes for one request, pass by pass."""

from __future__ import annotations

from collections.abc import Sequence

from tools.docs.canvas import BLUE, BOX, FILLS, GREY, MONO, Canvas, draw_tree, label_width
from tools.docs.example import request, toy_tokenizer
from treepiece.decoding.linearization import TokenVocabulary
from treepiece.trees.frame import Frame

_LEFT, _RIGHT = 28, 772
_PLAIN = "#eceff3"


def draw() -> str:
    """Return the figure."""
    frame = request()
    tokens = _linear(frame)
    canvas = Canvas()
    canvas.text(_LEFT, 34, "the words, and their numbers for pointers (@):", colour=GREY)
    x = _LEFT + 310.0
    for place, word in enumerate(frame.words):
        canvas.text(x, 34, word)
        canvas.text(x, 48, str(place), colour=GREY, size=11)
        x += len(word) * MONO + 10
    y = _heading(canvas, 86, "Autoregressive", f"one token a pass: {len(tokens)} passes")
    y = _flow(canvas, tokens, y, is_numbered=True)
    y = _treepiece(canvas, frame, y + 44)
    y = _heading(canvas, y + 44, "Non-autoregressive", "the length and all tokens at once: 1 pass")
    y = _flow(canvas, tokens, y, is_numbered=False)
    return canvas.finish("What three parsers write for one request", 800, y + 24)


def _linear(frame: Frame) -> list[str]:
    """Return the tokens of a frame as the baselines write them; here a word is a subword."""
    vocabulary = TokenVocabulary(sorted({node.label for node in frame.skeleton.nodes()}))
    texts = []
    for token in vocabulary.write(frame.skeleton, frame.spans):
        if token >= vocabulary.first_pointer:
            texts.append(f"@{token - vocabulary.first_pointer}")
        else:
            texts.append("]" if token == vocabulary.close else f"[{vocabulary.labels[token]}")
    return texts


def _heading(canvas: Canvas, y: float, name: str, remark: str) -> float:
    canvas.text(_LEFT, y, name, bold=True, size=14)
    canvas.text(_LEFT + 176, y, remark, colour=BLUE)
    return y + 16


def _flow(canvas: Canvas, tokens: Sequence[str], y: float, *, is_numbered: bool) -> float:
    """Draw tokens side by side, and go on below where there is no more room; return where they end."""
    x = float(_LEFT)
    row = 50 if is_numbered else 34
    for number, token in enumerate(tokens, start=1):
        width = label_width(token)
        if x + width > _RIGHT:
            x, y = _LEFT, y + row
        canvas.label(x + width / 2, y, token, FILLS[(number - 1) % len(FILLS)] if is_numbered else _PLAIN)
        if is_numbered:
            canvas.text(x + width / 2, y + BOX + 14, str(number), anchor="middle", colour=GREY, size=11)
        x += width + 8
    return y + row - 8


def _treepiece(canvas: Canvas, frame: Frame, y: float) -> float:
    tokenizer = toy_tokenizer()
    unit_ids = tokenizer.encode(frame.skeleton)
    y = _heading(canvas, y, "TreePiece", f"one unit a pass, then all spans at once: {len(unit_ids) + 1} passes")
    x = float(_LEFT)
    height = 0.0
    for place, unit_id in enumerate(unit_ids):
        canvas.text(x, y + 12, f"pass {place + 1}", colour=GREY, size=11)
        layout = draw_tree(canvas, tokenizer.units[unit_id].tree, x, y + 20, fill=FILLS[place])
        x += layout.width + 36
        height = max(height, layout.height + 20)
    spans = [f"{leaf.label} @{leaf.words.start} @{leaf.words.end - 1}" for leaf in frame.leaves]
    y += height + 26
    canvas.text(_LEFT, y - 8, f"pass {len(unit_ids) + 1}", colour=GREY, size=11)
    x = float(_LEFT)
    for text in spans:
        width = label_width(text)
        canvas.label(x + width / 2, y, text, FILLS[2])
        x += width + 8
    return y + BOX
