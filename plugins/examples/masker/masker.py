"""Masks secrets in replies and tool results. See README.md."""
import json
import os
import re
import threading

from lashd_plugin import Output, Plugin, short_circuit

WORD = r"[A-Za-z0-9_-]"
# The prefix of each kind of secret, and a pattern for the rest.
SHAPES = [
    ("sk-", WORD + "{16,}"), ("ghp_", WORD + "{20,}"), ("gho_", WORD + "{20,}"), ("ghs_", WORD + "{20,}"),
    ("github_pat_", WORD + "{20,}"), ("glpat-", WORD + "{16,}"), ("AKIA", "[0-9A-Z]{16}"), ("AIza", WORD + "{35}"),
    ("xoxb-", WORD + "{10,}"), ("xoxp-", WORD + "{10,}"), ("npm_", WORD + "{30,}"), ("eyJ", r"[A-Za-z0-9_-]+\.eyJ[A-Za-z0-9_.-]+"),
]
PEM, PEM_END = "-----BEGIN ", r"-----END [A-Z ]*PRIVATE KEY-----"

plugin = Plugin()


class Secrets:
    def __init__(self, literals, mask):
        self.mask = mask
        self.starts = [start for start, _ in SHAPES] + [PEM] + literals
        shapes = [r"(?<![A-Za-z0-9])" + re.escape(start) + rest for start, rest in SHAPES]
        pem = re.escape(PEM) + r"[A-Z ]*PRIVATE KEY-----.*?" + PEM_END
        self.whole = re.compile("|".join([pem] + [re.escape(x) for x in literals] + shapes), re.DOTALL)
        begun = [r"(?<![A-Za-z0-9])" + re.escape(start) + r"[A-Za-z0-9_.-]*" for start, _ in SHAPES]
        self.begun = re.compile("(?:%s)\\Z" % "|".join(begun + [re.escape(PEM) + "(?:(?!%s).)*" % PEM_END]), re.DOTALL)

    def hide(self, text):
        return self.whole.sub(self.mask.replace("\\", "\\\\"), text)

    def split(self, text):
        """Splits streamed text into masked text to show, and text to hold back."""
        begun = self.begun.search(text)
        cut = begun.start() if begun else len(text)
        for start in self.starts:  # the text may end within the prefix of a secret
            for n in range(1, len(start)):
                if text.endswith(start[:n]):
                    cut = min(cut, len(text) - n)
        for secret in self.whole.finditer(text):
            if secret.start() < cut < secret.end():
                cut = secret.start()
        return self.hide(text[:cut]), text[cut:]


def literals():
    """Returns the configured secrets of at least six characters. Shorter ones would match ordinary words."""
    config = plugin.config or {}
    found = [os.environ.get(name, "") for name in config.get("environment", ())]
    for path in config.get("files", ()):
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            found += file.read().splitlines()
    return sorted({x.strip() for x in found if len(x.strip()) >= 6}, key=len, reverse=True)


lock = threading.Lock()
known = []  # the Secrets, created on first use


def secrets():
    with lock:
        if not known:
            known.append(Secrets(literals(), (plugin.config or {}).get("mask", "[masked]")))
        return known[0]


@plugin.on("open")
def opened(session):
    session.held = ""  # text of the current reply that is held back


@plugin.hook("assistantStream")
def stream(call, chunk):
    text, call.session.held = secrets().split(call.session.held + chunk["text"])
    return dict(chunk, text=text)


@plugin.hook("assistantResponse")
def response(call, reply):
    """Adds held-back text to the last text part, and masks the whole reply again."""
    parts = reply.get("parts") or []
    texts = [p for p in parts if p["kind"] in ("prose", "commentary")]
    rest, call.session.held = call.session.held, ""
    if rest and not texts:
        texts = [{"kind": "prose", "text": ""}]
        parts.insert(0, texts[0])
    if rest:
        texts[-1]["text"] = texts[-1].get("text", "") + rest
    for part in texts:
        part["text"] = secrets().hide(part.get("text", ""))
    return dict(reply, parts=parts)


@plugin.hook("streamFinished")
def finished(call, _):
    call.session.held = ""


def hidden(value):
    """Returns a JSON value with secrets masked, also in member names."""
    if isinstance(value, str):
        return secrets().hide(value)
    if isinstance(value, list):
        return [hidden(v) for v in value]
    if isinstance(value, dict):
        return {hidden(k): hidden(v) for k, v in value.items()}
    return value


@plugin.hook("afterToolCall")
def after(_, call):
    output = call["output"]
    masked = hidden({key: value for key, value in output.items() if key != "artifact"})
    if json.dumps(masked) != json.dumps({key: value for key, value in output.items() if key != "artifact"}):
        return short_circuit(Output(masked))


if __name__ == "__main__":
    plugin.run()
