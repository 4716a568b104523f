"""A plugin that offers one of everything. It needs nothing but the standard library."""
import base64
import json
import sys

rooms = {}  # by instance


def send(message):
    message["jsonrpc"] = "2.0"
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def tell(method, **params):
    send({"method": method, "params": params})


def note(room, text):
    room["notes"].append(text)
    room["revision"] += 1
    tell("snapshot/changed", instance=room["instance"], revision=room["revision"])


def initialize(p):
    return {k: p[k] for k in ("protocolVersion", "pluginId", "nonce", "contributes")}


def open_session(p):
    rooms[p["instance"]] = {"instance": p["instance"], "notes": [], "revision": 0, "cells": ""}


def write_state(p):
    room = rooms[p["instance"]]
    bulk = base64.b64encode("\n".join(room["notes"]).encode()).decode()
    return {"revision": room["revision"], "state": {"notes": room["notes"]}, "artifacts": [{"name": "all", "data": bulk}]}


def restore_state(p):
    room = rooms[p["instance"]]
    room["notes"] = p["meta"]["state"]["notes"]
    room["revision"] = int(p["meta"]["revision"])


def execute_tool(p):
    tell("tool/progress", grant=p["grant"], text="noting") if "grant" in p else None
    note(rooms[p["instance"]], p["args"].get("text", ""))
    return {"output": {"status": "success", "text": p["args"].get("text", "")}}


def command(p):
    room = rooms[p["instance"]]
    note(room, json.dumps(p["args"]))
    return {"output": len(room["notes"]), "events": [{"type": "noted", "body": p["args"]}]}


def execute_code(p):
    room = rooms[p["instance"]]
    room["cells"] += p["source"]
    return {"printed": room["cells"]}


def snapshot_code(p):
    return {"state": base64.b64encode(rooms[p["instance"]]["cells"].encode()).decode()}


def restore_code(p):
    rooms[p["instance"]]["cells"] = base64.b64decode(p.get("state", "")).decode()


def prompt(p):
    count = len(rooms[p["instance"]]["notes"])
    return {"prompts": [{"slot": "guidance", "content": "%d notes" % count}]}


def response(p):
    return {"parts": p["context"]["parts"], "stop": p["context"].get("stop", "")}


def transform(p):
    return {k: v for k, v in p["context"].items() if k != "view"}


methods = {
    "initialize": initialize,
    "session/open": open_session,
    "session/close": lambda p: rooms.pop(p["instance"], None) and None,
    "snapshot/write": write_state,
    "snapshot/restore": restore_state,
    "tool/list": lambda p: {"data": []},
    "tool/execute": execute_tool,
    "operation/query": lambda p: {"output": rooms[p["instance"]]["notes"]},
    "operation/command": command,
    "operation/task": command,
    "code/execute": execute_code,
    "code/snapshot": snapshot_code,
    "code/restore": restore_code,
    "hook/prompt": prompt,
    "hook/assistantStream": lambda p: {"text": p["context"]["text"].upper()},
    "hook/assistantResponse": response,
    "hook/projectToolResult": lambda p: {"output": p["context"]["output"]},
    "hook/configChanged": lambda p: {"config": p["context"]["config"]},
    "hook/transformContext": transform,
    "hook/catalog": lambda p: {"remove": ["hidden"] + rooms[p["instance"]]["notes"]},
    "hook/projectProse": lambda p: {"text": p["context"]["text"].replace("<CODE>", "")},
}


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            continue
        do = methods.get(message["method"], lambda p: {})
        if "id" not in message:
            do(message.get("params", {}))
            continue
        try:
            send({"id": message["id"], "result": do(message["params"]) or {}})
        except Exception as e:  # whatever it is, somebody waits for an answer
            send({"id": message["id"], "error": {"code": 1, "message": repr(e)}})


main()
