"""What systems make of a text that they pass on: encodings and escapes, in which a secret is still one."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

TRANSFORMS = {
    "as it is": str,
    "percent": lambda text: quote(text, safe=""),
    "percent in small letters": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "form": quote_plus,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON of Unicode": lambda text: "".join(f"\\u{ord(character):04x}" for character in text),
    "Python": lambda text: ascii(text)[1:-1],
    "HTML": html.escape,
    "HTML by number": lambda text: "".join(f"&#{ord(character)};" for character in text),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of an address": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 in lines": lambda text: "\r\n ".join(_pieces(base64.b64encode(f"user:{text}".encode()).decode(), 8)),
    "base 16": lambda text: text.encode().hex(),
    "capitals": str.upper,
    "lines": lambda text: "\n".join(_pieces(text, 5)),
}


def _pieces(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]
