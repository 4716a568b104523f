"""A plugin that offers one of everything, for the tests of the SDK."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.environ["NOTES_SDK"])
import lashd_plugin as lashd


class Cells:
    def describe(self, call, tools):
        return {"language": "words", "guide": "%d tools" % len(tools)}

    def execute(self, cell):
        if cell.source == "ask":
            one, two = cell.call_tools({"name": "note", "args": {"text": text}} for text in "ab")
            more = cell.now() // 10**9, len(cell.random()), len(cell.history()), len(cell.tools)
            return {"printed": "%s %s %d %d %d %d" % ((one["text"], two["text"]) + more)}
        values = cell.session.__dict__.setdefault("values", {})
        values[cell.source] = values.get(cell.source, "") + cell.source + ";"
        return {"printed": values[cell.source], "changed": [cell.source]}

    def snapshot(self, session):
        values = getattr(session, "values", {})
        return {"changed": {name: text.encode() for name, text in values.items()},
                "globals": [{"name": name, "type": "text", "size": len(text)} for name, text in values.items()]}

    def restore(self, session, values):
        session.values = {name: data.decode() for name, data in values.items()}


plugin = lashd.Plugin(state=list, executor=Cells())


def note(session, text):
    with session.changing() as notes:
        notes.append(text)
        session.artifacts["all"] = "\n".join(notes).encode()


@plugin.tool("note")
def run(call, args):
    args = args or {}
    mode, text = args.get("mode"), args.get("text", "")
    if mode == "print":
        print('{"not":"a message"}', flush=True)
        subprocess.run(["echo", '{"nor":"this"}'], check=True)
        os.write(1, b'{"nor":"that"}\n')
    if mode == "raise":
        raise ValueError("boom")
    if mode == "wait":
        call.progress("waiting")
        call.cancelled.wait()
        note(call.session, "cancelled")
        return lashd.fail("cancelled", "stopped")
    if mode == "host":
        try:
            return json.dumps(call.host(text, **args.get("params", {})))
        except lashd.HostError as e:
            return "refused: " + e.kind
    if mode == "grow":
        call.session.grown = True
        call.session.tools_changed()
    if mode == "bulk":
        call.session.artifacts["bulk"] = b"x" * (3 << 20)
    if mode == "size":
        return str(len(call.session.artifacts.get("bulk", b"")))
    if mode == "finish":
        return lashd.succeed("done", control={"kind": "finish", "value": {"n": 1}})
    call.progress("noting")
    note(call.session, text)
    return text


@plugin.prepare("note")
def prepare(call, args):
    return dict(args, text=args.get("text", "").strip())


@plugin.tool_list
def tools(session):
    names = ["note", "grown"] if getattr(session, "grown", False) else ["note"]
    return [{"name": n, "description": n} for n in names]


@plugin.operation("notes.list")
def list_notes(call, args):
    return call.session.state


@plugin.operation("notes.add")
@plugin.operation("notes.work")
def add(call, args):
    note(call.session, json.dumps(args))
    return lashd.outcome(len(call.session.state), events=[{"type": "noted", "body": args}])


@plugin.task("build")
def build(call, task):
    told = dict(taskId=task["taskId"], name="seen", key="once", payload={"n": 1})
    call.host("taskTell", **told)
    call.host("taskTell", **told)
    return {"attempt": task["attempt"], "payload": task["spec"]["payload"]}


@plugin.hook("prompt")
def prompt(call, context):
    return "%d notes" % len(call.session.state)


@plugin.hook("beforeTurn")
def before_turn(call, context):
    if "curfew" in json.dumps(context.get("input")):
        return lashd.abort("curfew", "go to bed")


@plugin.hook("beforeToolCall")
def before_call(call, context):
    args = json.dumps(context.get("args"))
    if "secret" in args:
        return lashd.replace_args({"text": "masked"})
    if "forbidden" in args:
        return [lashd.deny("no", "forbidden")]


@plugin.hook("afterToolCall")
@plugin.hook("checkpoint")
@plugin.hook("afterTurn")
def traced(call, context):
    return lashd.trace("seen", {"turn": call.turn_id})


@plugin.hook("assistantStream")
def stream(call, context):
    return context["text"].upper()


@plugin.hook("catalog")
def leave_out(call, context):
    return ["hidden", "spare"] if call.session.state else "hidden"


@plugin.hook("projectProse")
def prose(call, context):
    return context["text"].replace("<code>", "")


@plugin.hook("event")
@plugin.hook("streamFinished")
@plugin.hook("assistantResponse")
@plugin.hook("projectToolResult")
@plugin.hook("configChanged")
@plugin.hook("transformContext")
@plugin.hook("compact")
def same(call, context):
    return None


plugin.run()
