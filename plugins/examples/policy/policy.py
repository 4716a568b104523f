"""Asks before commands that match a rule, and denies others. See README.md."""
import json
import os
import re
import threading

from lashd_plugin import Plugin, PluginError, ask_first, deny

LISTS = ("deny", "ask", "allow")
ANSWERS = ("allow", "ask", "deny")

plugin = Plugin()


class Rule:
    """A regular expression for the arguments of a tool, or for commands if it names no tool."""

    def __init__(self, given):
        given = {"match": given} if isinstance(given, str) else given
        unknown = set(given) - {"tool", "match", "reason"}
        if unknown or not isinstance(given.get("match"), str):
            raise ValueError("a rule must be a regular expression, or an object with tool, match and reason: %s" % json.dumps(given))
        self.tool = re.compile(given["tool"]) if "tool" in given else None
        self.match = re.compile(given["match"], re.MULTILINE)
        self.reason = given.get("reason") or "the rule %s" % given["match"]

    def fits(self, call, whole):
        if self.tool:
            if not self.tool.fullmatch(call["tool"]):
                return False
            text = json.dumps(call.get("args"), ensure_ascii=False)
        else:
            text = command(call)
        if text is None:
            return False
        return bool(self.match.fullmatch(text) if whole else self.match.search(text))


class Rules:
    def __init__(self, *sources):
        self.lists = {name: [Rule(r) for s in sources for r in s.get(name, ())] for name in LISTS}
        self.otherwise = "allow"
        for source in sources:
            unknown = set(source) - set(LISTS) - {"otherwise"}
            if unknown:
                raise ValueError("unknown field: %s" % ", ".join(sorted(unknown)))
            self.otherwise = source.get("otherwise", self.otherwise)
        if self.otherwise not in ANSWERS:
            raise ValueError("otherwise must be one of %s" % ", ".join(ANSWERS))

    def judge(self, call):
        """Returns the decision for a call, and the reason."""
        for name, whole in (("deny", False), ("allow", True), ("ask", False)):
            for rule in self.lists[name]:
                if rule.fits(call, whole):
                    return name, rule.reason
        return (self.otherwise if command(call) is not None else "allow"), "no rule allows it"


class File:
    """rules.json, reloaded when it changes."""

    def __init__(self):
        self.lock, self.seen, self.rules = threading.Lock(), None, None

    def current(self):
        path = os.path.join(plugin.data_dir, "rules.json")
        with self.lock:
            try:
                info = os.stat(path)
                seen = (info.st_mtime_ns, info.st_size, info.st_ino)
            except FileNotFoundError:
                seen = ()
            if seen != self.seen or self.rules is None:
                self.rules = None  # if loading fails, the next call tries again
                self.rules, self.seen = Rules(plugin.config or {}, load(path) if seen else {}), seen
            return self.rules


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def command(call):
    """Returns the command of a call, or None if it runs none."""
    args = call.get("args")
    if call.get("kind") != "execute" and call["tool"] != "shell":
        return None
    text = args.get("command") if isinstance(args, dict) else None
    return text if isinstance(text, str) else json.dumps(args, ensure_ascii=False)


rules = File()


@plugin.hook("beforeToolCall")
def before(_, call):
    try:
        verdict, reason = rules.current().judge(call)
    except Exception as e:  # any error denies the call
        raise PluginError("cannot read the rules: %s" % e)
    if verdict == "deny":
        return deny("denied by a rule: %s" % reason, "policy")
    if verdict == "ask":
        return ask_first(reason)


if __name__ == "__main__":
    plugin.run()
